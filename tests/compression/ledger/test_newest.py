"""The lines that are shown while a summary is written."""

from __future__ import annotations

from compression.ledger.newest import newest_lines
from compression.types import Entry, EntryState, Ledger, NarrativeLine, Section


def entry(number: int, section: Section, text: str, state: EntryState = EntryState.LIVE) -> Entry:
    return Entry(id=number, section=section, text=text, sources=(1,), state=state)


def test_it_works() -> None:
    """Breaks when: an old line comes again, or the narrative takes the place of a rule."""
    old = entry(1, Section.CONSTRAINTS, "An old rule")
    story = NarrativeLine(text="They began.", first_seq=1, through_seq=4)
    before = Ledger(entries=(old,), narrative=(story,))
    after = Ledger(
        entries=(
            old,
            entry(2, Section.CONTEXT, "A fact"),
            entry(3, Section.CONSTRAINTS, "A rule\nof two lines"),
            entry(4, Section.DECISIONS, "Gone again", EntryState.EVICTED),
        ),
        narrative=(story, NarrativeLine(text="They went on.", first_seq=5, through_seq=9)),
    )
    assert newest_lines(before, after) == ("A rule of two lines", "A fact", "They went on.")
    assert newest_lines(after, after) == ()


def test_three_short_ones_are_enough() -> None:
    many = Ledger(entries=tuple(entry(n, Section.CONTEXT, "x" * 9999) for n in range(1, 9)))
    lines = newest_lines(Ledger(), many)
    assert [len(one) for one in lines] == [160] * 3
