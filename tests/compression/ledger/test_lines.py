"""A person's changes of single lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compression.exceptions import SummaryInvalid
from compression.judging.judge import _check_kept
from compression.ledger.editing import apply_edit
from compression.ledger.ledger import Addition, Delta, apply_delta, from_json, render, to_json
from compression.ledger.lines import (
    MOST_CHANGES,
    Act,
    LineChange,
    change_lines,
    forgotten,
    lines_of,
    remembered,
)
from compression.types import Entry, EntryState, Ledger, NarrativeLine, Origin, Section

LEDGER = Ledger(
    narrative=(
        NarrativeLine(text="They began.", first_seq=1, through_seq=9),
        NarrativeLine(text="They went on.", first_seq=10, through_seq=19),
    ),
    entries=(
        Entry(id=5, section=Section.CONTEXT, text="A harbour.", sources=(8, 3, 8)),
        Entry(id=1, section=Section.CONSTRAINTS, text="Never use tabs.", sources=(3,)),
        Entry(id=2, section=Section.CONSTRAINTS, text="Answer in Scots.", sources=(4,)),
        Entry(id=3, section=Section.FILES, text="old.py", state=EntryState.EVICTED),
    ),
)


def change(act: Act, key: str = "", text: str = "", section: Section | None = None) -> LineChange:
    return LineChange(act=act, key=key, text=text, section=section)


def texts(ledger: Ledger) -> list[str]:
    return [line.text for line in lines_of(ledger)]


def test_the_lines_are_those_of_the_text_in_its_order() -> None:
    assert [line.key for line in lines_of(LEDGER)] == ["n0", "n1", "e1", "e2", "e5"]
    assert [line.markdown for line in lines_of(LEDGER)] == [
        line for line in render(LEDGER).split("\n") if line.startswith("- ")
    ]
    assert lines_of(LEDGER)[0].sources == (1, 9)
    assert lines_of(LEDGER)[-1].sources == (3, 8)


def test_a_struck_line_is_the_persons_and_never_comes_back() -> None:
    """Breaks when: striking drops the entry, so that nothing says that a person removed it."""
    struck = change_lines(LEDGER, [change(Act.STRIKE, "e1")])
    assert texts(struck) == ["They began.", "They went on.", "Answer in Scots.", "A harbour."]
    again = Delta(add=(Addition(section=Section.CONTEXT, text="never use TABS", sources=(21,)),))
    merged, _ = apply_delta(struck, again, first_seq=20, through_seq=22, user_seqs=[21])
    assert texts(merged) == texts(struck)
    _check_kept(struck, merged)


def test_a_rewritten_line_keeps_its_place_and_its_sources() -> None:
    """Breaks when: a rewritten line is added at the end, or the old text may be added again."""
    rewritten = change_lines(LEDGER, [change(Act.REWRITE, "e1", "  Use\r\ntwo blanks. ")])
    line = lines_of(rewritten)[2]
    assert (line.text, line.sources, line.pinned) == ("Use\ntwo blanks.", (3,), True)
    assert line.key == "e6"
    old = next(one for one in rewritten.entries if one.id == 1)
    assert (old.state, old.origin) == (EntryState.LIFTED, Origin.PERSON)
    assert change_lines(LEDGER, [change(Act.REWRITE, "e1", "Never use tabs.")]) == LEDGER
    story = change_lines(LEDGER, [change(Act.REWRITE, "n1", "They rested.")])
    assert story.narrative[1] == NarrativeLine(
        text="They rested.", first_seq=10, through_seq=19, origin=Origin.PERSON
    )


def test_pinned_and_given_back() -> None:
    for key, place in (("e5", 4), ("n0", 0)):
        pinned = change_lines(LEDGER, [change(Act.PIN, key)])
        assert lines_of(pinned)[place].pinned
        assert change_lines(pinned, [change(Act.UNPIN, key)]) == LEDGER


def test_added_under_a_heading_or_to_the_story() -> None:
    added = change_lines(
        LEDGER,
        [
            change(Act.ADD, text="Ship it.", section=Section.DONE),
            change(Act.ADD, text="Nobody knows why."),
        ],
    )
    done = added.entries[-1]
    assert (done.id, done.state, done.origin) == (6, EntryState.DONE, Origin.PERSON)
    assert texts(added)[2] == "Nobody knows why."


def test_an_added_line_may_say_where_it_comes_from() -> None:
    """Breaks when: its sources are dropped, so that nobody can look the line up."""
    found = LineChange(act=Act.ADD, text="4711 boats.", section=Section.CONTEXT, sources=(7, 2))
    line = lines_of(change_lines(LEDGER, [found]))[-1]
    assert (line.text, line.sources, line.pinned) == ("4711 boats.", (2, 7), True)
    assert line.markdown == "- 4711 boats. [2, 7]"


def test_what_is_forgotten_is_not_looked_up_and_not_carried_elsewhere() -> None:
    """Breaks when: the sources of a line that was only struck are forgotten too."""
    ledger = change_lines(LEDGER, [change(Act.FORGET, "e5"), change(Act.STRIKE, "e1")])
    assert forgotten(ledger) == {3, 8}
    assert from_json(*to_json(ledger)) == ledger
    assert not forgotten(remembered(ledger))
    assert texts(remembered(ledger)) == texts(ledger)
    with pytest.raises(SummaryInvalid, match="struck, not forgotten"):
        change_lines(LEDGER, [change(Act.FORGET, "n0")])


def test_the_keys_of_several_changes_are_those_before_them() -> None:
    """Breaks when: the narrative is numbered anew after each change."""
    changed = change_lines(LEDGER, [change(Act.STRIKE, "n0"), change(Act.STRIKE, "n1")])
    assert not changed.narrative


@pytest.mark.parametrize(
    "wrong",
    [
        change(Act.STRIKE, "e3"),
        change(Act.STRIKE, "e9"),
        change(Act.PIN, "n2"),
        change(Act.STRIKE, ""),
        change(Act.STRIKE, "x1"),
        change(Act.STRIKE, "e²"),
        change(Act.STRIKE, "e" + "9" * 5000),
        change(Act.REWRITE, "e1", " \n "),
        change(Act.ADD, text=""),
        change(Act.ADD, text="a\x00b"),
    ],
)
def test_what_cannot_be_done_says_so(wrong: LineChange) -> None:
    with pytest.raises(SummaryInvalid):
        change_lines(LEDGER, [wrong])


def test_a_summary_is_never_emptied_line_by_line() -> None:
    keys = [line.key for line in lines_of(LEDGER)]
    with pytest.raises(SummaryInvalid, match="Clear"):
        change_lines(LEDGER, [change(Act.STRIKE, key) for key in keys])
    with pytest.raises(SummaryInvalid):
        change_lines(LEDGER, [change(Act.PIN, "e1")] * (MOST_CHANGES + 1))


@given(st.lists(st.tuples(st.sampled_from(list(Act)), st.integers(0, 8), st.text(max_size=20))))
def test_whatever_is_done_the_text_reads_back_as_the_same_lines(
    steps: list[tuple[Act, int, str]],
) -> None:
    """Breaks when: an added text is not written in the form that the source is read in."""
    ledger = LEDGER
    for act, place, text in steps:
        lines = lines_of(ledger)
        key = lines[place % len(lines)].key
        section = list(Section)[place % 6] if act is Act.ADD else None
        try:
            ledger = change_lines(ledger, [change(act, key, text, section)])
        except SummaryInvalid:
            continue
        assert apply_edit(ledger, render(ledger)) == ledger
        assert len({one.id for one in ledger.entries}) == len(ledger.entries)
