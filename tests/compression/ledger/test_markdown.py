"""Rendering a ledger and reading it back."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compression.exceptions import SummaryInvalid
from compression.ledger.markdown import format_sources, parse_markdown, render
from compression.types import Entry, EntryState, Ledger, NarrativeLine, Section

SAMPLE = Ledger(
    narrative=(NarrativeLine(text="They set up the project.", first_seq=1, through_seq=18),),
    entries=(
        Entry(id=1, section=Section.CONSTRAINTS, text="Never use tabs.", sources=(3,)),
        Entry(id=2, section=Section.DONE, text="wrote a.py", sources=(5,), state=EntryState.DONE),
        Entry(id=3, section=Section.PENDING, text="tests", sources=(12, 15, 16, 17, 18)),
        Entry(id=4, section=Section.FILES, text="gone", sources=(1,), state=EntryState.EVICTED),
    ),
)


def test_it_works() -> None:
    assert render(SAMPLE) == (
        "## Summary\n- They set up the project. [1–18]\n\n"
        "## Constraints\n- Never use tabs. [3]\n\n"
        "## State\n### Done\n- wrote a.py [5]\n\n### Pending\n- tests [12, 15–18]"
    )
    assert render(Ledger()) == ""


TEXTS: Callable[[], st.SearchStrategy[str]] = lambda: st.one_of(  # noqa: E731
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda t: "\0" not in t),
    st.lists(
        st.sampled_from(
            ["## Summary", "\n", "- x", " [12]", "[1–3]", "\\u{a}", "\\", "C:\\new", "  ", "\r\n",
             "\r", "\u2028", "\t", "### Done", "\n\n", "text", " ", "u{5b}", "\\\\", "é", "\x85"]
        ),
        min_size=1,
    ).map("".join),
)  # fmt: skip


@given(
    st.lists(st.tuples(st.sampled_from(list(Section)), TEXTS(), st.sets(st.integers(1, 99)))),
    st.lists(TEXTS()),
)
def test_any_text_comes_back_unchanged(
    entries: list[tuple[Section, str, set[int]]], narrative: list[str]
) -> None:
    """Breaks when: ``_escape`` leaves out the blanks at either end, or the look-alike sources."""
    ledger = Ledger(
        entries=tuple(
            Entry(id=n, section=section, text=text, sources=tuple(sorted(sources)))
            for n, (section, text, sources) in enumerate(entries, 1)
        ),
        narrative=tuple(
            NarrativeLine(text=text, first_seq=n, through_seq=2 * n)
            for n, text in enumerate(narrative, 0)
        ),
    )
    parsed = parse_markdown(render(ledger))
    assert [
        (line.section, line.text, line.sources)
        for section in Section
        for line in parsed
        if line.section is section
    ] == [
        (entry.section, entry.text, entry.sources)
        for section in Section
        for entry in ledger.entries
        if entry.section is section
    ]
    read = [line for line in parsed if line.section is None]
    assert [line.text for line in read] == narrative
    assert all(not line.sources or line.sources[0] * 2 == line.sources[-1] for line in read[1:])


def test_a_path_and_a_rule_stay_readable_as_they_are() -> None:
    text = r"Never write to C:\new\table (see [docs] and \d+)"
    entry = Entry(id=1, section=Section.CONSTRAINTS, text=text, sources=(1,))
    assert text in render(Ledger(entries=(entry,)))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("hello", 1),
        ("## Constraints\n\nno bullet", 3),
        ("## Nonsense\n- x", 1),
        ("## State\n- x", 2),
        ("## Files\n- x [1–99999999]", 2),
    ],
)
def test_what_does_not_parse_is_named_by_its_line(text: str, line: int) -> None:
    with pytest.raises(SummaryInvalid) as invalid:
        parse_markdown(text)
    assert invalid.value.fields["line"] == line


def test_a_person_may_write_the_narrative_as_plain_lines_and_use_windows_line_ends() -> None:
    parsed = parse_markdown("## summary\r\nWe began.\r\n\r\n## Files\r\n* a.py: new [3, 4-6]\r\n")
    assert [(line.text, line.sources) for line in parsed] == [
        ("We began.", ()),
        ("a.py: new", (3, 4, 5, 6)),
    ]


def test_a_model_may_say_more_than_it_was_asked() -> None:
    answer = "Here it is:\n\n# Summary:\nShort.\n## Other\n- no\n## **Pending**\nask Bob [4]"
    parsed = parse_markdown(answer, tolerant=True)
    assert [(line.section, line.text) for line in parsed] == [
        (None, "Short."),
        (Section.PENDING, "ask Bob"),
    ]


def test_sources_are_written_as_people_do() -> None:
    assert format_sources([]) == ""
    assert format_sources([18, 12, 15, 16, 17]) == "12, 15–18"
