"""New constraints and open ends: as many as there is room for, the strongest first."""

from __future__ import annotations

from compression.judging.standing_rules import KEPT_SHARE
from compression.ledger.bounding import bounded
from compression.ledger.markdown import render
from compression.tokens import CharacterCounter
from compression.types import Entry, EntryState, Item, Ledger, Origin, Section

COUNTER = CharacterCounter()
CAP, MOST = 300, 600
STRONG = "Never paint the gadget number {} in colour {}, please."
WEAK = "I prefer the gadget number {} in the lighter colour {}."


def ledger_of(*texts: str, start: int = 1, section: Section = Section.CONSTRAINTS) -> Ledger:
    return Ledger(
        entries=tuple(
            Entry(id=start + n, section=section, text=text, sources=(start + n,))
            for n, text in enumerate(texts)
        )
    )


def both(*ledgers: Ledger) -> Ledger:
    return Ledger(entries=tuple(entry for one in ledgers for entry in one.entries))


def kept(ledger: Ledger, before: Ledger | None = None, items: tuple[Item, ...] = ()) -> list[str]:
    after, notes = bounded(
        ledger,
        before or Ledger(),
        items,
        cap_tokens=CAP,
        most_tokens=MOST,
        count=COUNTER.count,
    )
    gone = [one for one in after.entries if one.state is EntryState.EVICTED]
    assert [note.removeprefix("left out, there is no room: ") for note in notes] == [
        one.text[:120] for one in gone
    ]
    assert [one.id for one in after.entries] == [one.id for one in ledger.entries]
    assert (
        COUNTER.count(render(after)) <= MOST + COUNTER.count("## Constraints\n\n## State\n\n") + 8
    )
    return [one.text for one in after.entries if one.state is EntryState.LIVE]


def test_few_rules_are_all_kept() -> None:
    few = [STRONG.format(1, 2), WEAK.format(3, 4)]
    assert kept(ledger_of(*few)) == few


def test_rules_told_as_such_go_before_wishes() -> None:
    """Breaks when: entries are taken in the order in which the model gave them."""
    wishes = [WEAK.format(n, 7 * n) for n in range(20)]
    rules = [STRONG.format(n, 7 * n) for n in range(20)]
    left = kept(ledger_of(*wishes, *rules))
    strong = [text for text in left if text.startswith("Never")]
    assert len(left) == len(strong) >= 10
    few = kept(ledger_of(*wishes, rules[0]))
    assert rules[0] in few
    assert 2 <= len(few) < 20
    assert sum(COUNTER.count(text) for text in few) <= CAP * KEPT_SHARE


def test_of_equals_the_repeated_and_then_the_later_are_kept() -> None:
    """Breaks when: ``_strongest_first`` ranks by neither."""
    wishes = [WEAK.format(n, 7 * n) for n in range(20)]
    said = tuple(Item(seq=n, role="user", text=wishes[0], tokens=9) for n in (1, 5, 9))
    left = kept(ledger_of(*wishes), items=said)
    assert left[0] == wishes[0]
    assert left[1:] == wishes[-len(left) + 1 :]


def test_i18_what_stood_before_is_never_left_out() -> None:
    """I13, I18. Breaks when: old constraints or a person's entries are ranked with the new."""
    old = ledger_of(*(WEAK.format(n, n) for n in range(30)))
    mine = Entry(id=90, section=Section.CONSTRAINTS, text=WEAK.format(90, 90), origin=Origin.PERSON)
    new = ledger_of(WEAK.format(99, 99), start=99)
    entries = (*old.entries, mine, *new.entries)
    after, notes = bounded(
        Ledger(entries=entries), old, (), cap_tokens=CAP, most_tokens=MOST, count=COUNTER.count
    )
    assert [one.id for one in after.entries if one.state is EntryState.EVICTED] == [99]
    assert len(notes) == 1


def test_open_ends_come_after_the_rules() -> None:
    """Breaks when: pending entries have no bound, or crowd out rules."""
    ends = ledger_of(
        *(f"open end number {n} of the gadget" for n in range(60)), section=Section.PENDING
    )
    rules = ledger_of(*(STRONG.format(n, n) for n in range(5)), start=100)
    left = kept(both(ends, rules))
    assert sum(text.startswith("Never") for text in left) == 5
    assert left[0] != "open end number 0 of the gadget"
    assert "open end number 59 of the gadget" in left
