"""The headings of a summary as the screen names them."""

from __future__ import annotations

from chatapp.rendering.words import labels
from chatapp.rendering.words.headings import in_screen_words, in_stored_words
from compression.ledger.markdown import HEADINGS, parse_markdown, render
from compression.types import Entry, EntryState, Ledger, NarrativeLine, Section


def written_summary() -> str:
    """A summary with a line in each section, as it is stored."""
    entries = tuple(
        Entry(
            id=number,
            section=section,
            text=f"Line {number}",
            sources=(1,),
            state=EntryState.DONE if section is Section.DONE else EntryState.LIVE,
        )
        for number, section in enumerate(Section, 1)
    )
    narrative = (NarrativeLine(text="It began.", first_seq=1, through_seq=2),)
    return render(Ledger(entries=entries, narrative=narrative))


def test_each_section_has_the_name_that_it_has_everywhere() -> None:
    """Breaks when: the model's name of a section is shown to a person, or one has two names."""
    written = written_summary()
    shown = in_screen_words(written)
    headings = [line.lstrip("# ") for line in shown.split("\n") if line.startswith("#")]
    assert sorted(headings) == sorted(heading for _, heading in labels.sections())
    assert len(HEADINGS) == len(headings)
    lines = [line for line in written.split("\n") if line.startswith("- ")]
    assert [line for line in shown.split("\n") if line.startswith("- ")] == lines


def test_only_headings_are_named() -> None:
    text = "## Notes\n- ## Constraints\n  ## Constraints\n- Constraints"
    assert in_screen_words(text) == text


def test_what_the_editor_shows_is_read_back_as_it_was() -> None:
    """Breaks when: a heading of the screen is refused, or files its lines elsewhere."""
    written = written_summary()

    def lines(text: str) -> list[tuple[Section | None, str, tuple[int, ...]]]:
        return [(one.section, one.text, one.sources) for one in parse_markdown(text)]

    assert lines(in_stored_words(in_screen_words(written))) == lines(written)
    assert lines(in_stored_words(written)) == lines(written)


def test_a_heading_is_read_however_it_is_written() -> None:
    text = "# rules\n- One\n###TO DO: ##\n- Two\n## Notes\n- Rules\n  ## Rules"
    read = "## Constraints\n- One\n## Pending\n- Two\n## Notes\n- Rules\n  ## Rules"
    assert in_stored_words(text) == read
