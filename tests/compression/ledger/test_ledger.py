"""What a model's delta may do to the ledger, and what has to go when it is too long."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compression.exceptions import DraftRejected
from compression.ledger.ledger import (
    Addition,
    Delta,
    Lift,
    Supersession,
    apply_delta,
    evict,
    from_json,
    parse_delta,
    render,
    to_json,
)
from compression.types import Entry, EntryState, Ledger, NarrativeLine, Origin, Section

RULE = Entry(id=1, section=Section.CONSTRAINTS, text="Never use tabs.", sources=(1,))
OPEN = Entry(id=2, section=Section.PENDING, text="write tests", sources=(2,))
FACT = Entry(id=3, section=Section.CONTEXT, text="port = 8080", sources=(3,))
THEIRS = Entry(id=4, section=Section.PENDING, text="ask Bob", sources=(3,), origin=Origin.PERSON)
LEDGER = Ledger(entries=(RULE, OPEN, FACT, THEIRS))


def merge(delta: Delta, ledger: Ledger = LEDGER) -> tuple[Ledger, tuple[str, ...]]:
    return apply_delta(ledger, delta, first_seq=10, through_seq=20, user_seqs=[10, 12])


def by_id(ledger: Ledger) -> dict[int, Entry]:
    return {entry.id: entry for entry in ledger.entries}


def test_it_works() -> None:
    delta = parse_delta(
        {
            "narrative": "They went on.",
            "add": [{"section": "files", "text": "a.py: new", "sources": [12, 11]}],
            "resolve": [2],
            "supersede": [{"id": 3, "text": "port = 9090", "sources": [13]}],
            "lift": [{"id": 1, "source": 12}],
        }
    )
    merged, notes = merge(delta)
    entries = by_id(merged)
    assert notes == ()
    assert entries[1].state is EntryState.LIFTED
    assert (entries[2].section, entries[2].state) == (Section.DONE, EntryState.DONE)
    assert entries[3].state is EntryState.REPLACED
    assert entries[4] == THEIRS
    assert {entries[5].text, entries[6].text} == {"port = 9090", "a.py: new"}
    assert merged.narrative == (NarrativeLine(text="They went on.", first_seq=10, through_seq=20),)


@pytest.mark.parametrize(
    ("delta", "words"),
    [
        (Delta(resolve=(99,)), "no such entry"),
        (Delta(resolve=(3,)), "not pending"),
        (Delta(resolve=(4,)), "person"),
        (Delta(resolve=(1,)), "only be lifted"),
        (Delta(supersede=(Supersession(id=1, text="Use tabs.", sources=(12,)),)), "only be lifted"),
        (Delta(supersede=(Supersession(id=4, text="x", sources=(12,)),)), "person"),
        (Delta(lift=(Lift(id=1, source=11),)), "no user message"),
        (Delta(lift=(Lift(id=1, source=9),)), "no user message"),
        (Delta(lift=(Lift(id=3, source=12),)), "not a constraint"),
        (Delta(add=(Addition(section=Section.FILES, text="x", sources=(9,)),)), "outside"),
        (Delta(add=(Addition(section=Section.FILES, text="x"),)), "outside"),
        (Delta(add=(Addition(section=Section.CONSTRAINTS, text="x", sources=(11,)),)), "user"),
    ],
)
def test_what_is_not_allowed_is_ignored_and_noted(delta: Delta, words: str) -> None:
    """I13, I18. Breaks when: ``_Merge._open`` returns a person's entry or a constraint."""
    merged, notes = merge(delta)
    assert merged == LEDGER
    assert len(notes) == 1
    assert words in notes[0]


def test_duplicates_are_not_added() -> None:
    same = Addition(section=Section.CONTEXT, text="Port =  8080.", sources=(12,))
    assert merge(Delta(add=(same, same)))[0] == LEDGER


@pytest.mark.parametrize("section", [Section.FILES, Section.CONTEXT])
def test_i13_what_a_person_removed_never_comes_back(section: Section) -> None:
    """I13: neither where it stood nor under another heading.

    Breaks when: ``_Merge`` does not look at what a person removed, or only in its section.
    """
    removed = Entry(
        id=1, section=Section.FILES, text="a.py", state=EntryState.LIFTED, origin=Origin.PERSON
    )
    ledger = Ledger(entries=(removed,))
    again = Addition(section=section, text="A.py", sources=(12,))
    assert merge(Delta(add=(again,)), ledger)[0] == ledger


def test_a_lifted_rule_may_be_stated_again() -> None:
    again = Addition(section=Section.CONSTRAINTS, text=RULE.text, sources=(12,))
    merged, _ = merge(Delta(lift=(Lift(id=1, source=10),), add=(again,)))
    assert [entry.state for entry in merged.entries if entry.text == RULE.text] == [
        EntryState.LIFTED,
        EntryState.LIVE,
    ]


TEXT = st.text(max_size=9)
IDS = st.integers(0, 6)
SEQS = st.lists(st.integers(8, 22), max_size=3).map(tuple)
DELTAS = st.builds(
    Delta,
    narrative=st.text(max_size=5),
    add=st.lists(
        st.builds(Addition, section=st.sampled_from(Section), text=TEXT, sources=SEQS)
    ).map(tuple),
    resolve=st.lists(IDS).map(tuple),
    supersede=st.lists(st.builds(Supersession, id=IDS, text=st.text(max_size=9), sources=SEQS)).map(
        tuple
    ),
    lift=st.lists(st.builds(Lift, id=IDS, source=st.integers(8, 22))).map(tuple),
)  # fmt: skip


@given(DELTAS)
def test_i18_only_a_lift_by_a_user_message_ends_a_rule(delta: Delta) -> None:
    """I13, I18: a rule and a person's entry stay word for word under any delta.

    Breaks when: ``lift`` no longer asks for a user message of the span.
    """
    merged, _ = merge(delta)
    entries = by_id(merged)
    assert entries[4] == THEIRS
    allowed = any(one.id == 1 and one.source in (10, 12) for one in delta.lift)
    assert entries[1] == RULE or (allowed and entries[1].text == RULE.text)
    named = {*delta.resolve, *(one.id for one in delta.supersede)}
    for entry in LEDGER.entries:
        if entry.id not in named and entry.id != 1:
            assert entries[entry.id] == entry


@pytest.mark.parametrize(
    "value",
    [None, [], "x", 5, {}, {"narrative": " "}, {"narrative": 5}, {"summary": "x"}, {"add": {}},
     {"add": [{"section": "rules", "text": "x", "sources": []}]},
     {"add": [{"section": "files", "text": " ", "sources": [1]}]},
     {"add": [{"section": "files", "text": "x"}]},
     {"add": [{"section": [], "text": "x", "sources": [1]}]},
     {"resolve": [True]}, {"resolve": ["1"]}, {"lift": [{"id": 1}]}, {"lift": [1]},
     {"supersede": [{"id": 1, "text": "x", "sources": "1"}]}],
)  # fmt: skip
def test_any_other_shape_is_refused_with_a_reason(value: Any) -> None:
    with pytest.raises(DraftRejected) as refused:
        parse_delta(value)
    assert refused.value.message.endswith(".")


def words(text: str) -> int:
    return len(text.split())


def full() -> Ledger:
    entries = [
        Entry(id=n, section=list(Section)[n % 6], text=f"entry number {n}", sources=(n,))
        for n in range(1, 61)
    ]
    entries.append(
        Entry(id=61, section=Section.CONTEXT, text="theirs", sources=(), origin=Origin.PERSON)
    )
    narrative = tuple(NarrativeLine(text=f"span {n}", first_seq=n, through_seq=n) for n in (1, 2))
    return Ledger(entries=tuple(entries), narrative=narrative)


@given(st.integers(0, 400))
def test_i18_eviction_never_takes_rules_open_ends_or_a_persons_words(cap: int) -> None:
    """I13, I18. Breaks when: ``EVICTION_ORDER`` gains ``CONSTRAINTS`` or ``PENDING``."""
    before = full()
    after, gone = evict(before, cap, words)
    for old, new in zip(before.entries, after.entries, strict=True):
        if old.section in (Section.CONSTRAINTS, Section.PENDING) or old.origin is Origin.PERSON:
            assert new == old
        else:
            assert new.state in (old.state, EntryState.EVICTED)
    went = sum(entry.state is EntryState.EVICTED for entry in after.entries)
    assert len(gone) == went + 2 - len(after.narrative)
    evictable = [e for e in after.entries if e.section in (Section.FILES, Section.DECISIONS)]
    if any(entry.state is EntryState.LIVE for entry in evictable):
        assert words(render(after)) <= cap


def test_eviction_goes_by_order_and_age() -> None:
    """Narrative, done, context, files, decisions; the oldest first.

    Breaks when: two sections of ``EVICTION_ORDER`` change places.
    """
    before = full()
    _, gone = evict(before, 0, words)
    by_section = [
        entry.text
        for section in (Section.DONE, Section.CONTEXT, Section.FILES, Section.DECISIONS)
        for entry in before.entries
        if entry.section is section and entry.origin is Origin.MACHINE
    ]
    assert gone == ("span 1", "span 2", *by_section)
    _, few = evict(before, words(render(before)) - 12, words)
    assert few == gone[: len(few)]
    assert len(few) == 3


def test_the_last_line_stays() -> None:
    line = NarrativeLine(text="only this", first_seq=1, through_seq=2)
    assert evict(Ledger(narrative=(line,)), 0, words) == (Ledger(narrative=(line,)), ())


def test_json_comes_back_as_it_was() -> None:
    assert from_json(*to_json(full())) == full()
    assert from_json([], []) == Ledger()
