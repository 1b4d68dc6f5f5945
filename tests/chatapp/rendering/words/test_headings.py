"""The headings of a summary as the screen names them."""

from __future__ import annotations

from chatapp.rendering.words import labels
from chatapp.rendering.words.headings import in_screen_words
from compression.ledger.markdown import HEADINGS, render
from compression.types import Entry, EntryState, Ledger, NarrativeLine, Section


def test_each_section_has_the_name_that_it_has_everywhere() -> None:
    """Breaks when: the model's name of a section is shown to a person, or one has two names."""
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
    written = render(Ledger(entries=entries, narrative=narrative))
    shown = in_screen_words(written)
    headings = [line.lstrip("# ") for line in shown.split("\n") if line.startswith("#")]
    assert sorted(headings) == sorted(heading for _, heading in labels.sections())
    assert len(HEADINGS) == len(headings)
    lines = [line for line in written.split("\n") if line.startswith("- ")]
    assert [line for line in shown.split("\n") if line.startswith("- ")] == lines


def test_only_headings_are_named() -> None:
    text = "## Notes\n- ## Constraints\n  ## Constraints\n- Constraints"
    assert in_screen_words(text) == text
