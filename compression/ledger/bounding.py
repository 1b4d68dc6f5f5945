"""A limit on new entries of the kinds that are never evicted. Pure.

Live constraints and pending entries stand in every later request. A model that takes each sentence
for a constraint would fill the window with them, and its whole draft would have to be refused. So
only the strongest new ones are kept, and the others are listed for the reviewer. Earlier entries
and those of a person always stay.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from compression.judging import cues
from compression.judging.salience import normalise
from compression.judging.standing_rules import KEPT_SHARE, is_standing
from compression.ledger.ledger import evict
from compression.ledger.markdown import line_of, render
from compression.types import Entry, EntryState, Item, Ledger, Origin, Section

HEADINGS = 24
"""Ruler tokens of headings that new entries may add."""


def bounded(
    ledger: Ledger,
    before: Ledger,
    items: Sequence[Item],
    *,
    cap_tokens: int,
    most_tokens: int,
    count: Callable[[str], int],
) -> tuple[Ledger, tuple[str, ...]]:
    """The ledger with as many new constraints and pending entries as there is room for, and notes.

    ``cap_tokens`` and ``most_tokens``, both counted by ``count``, are the size that the summary
    should have and the most that it may have. Standing rules (see
    :func:`compression.judging.standing_rules.is_standing`) and pending entries may fill
    ``most_tokens``; other constraints may fill the share ``KEPT_SHARE`` of ``cap_tokens``.
    """
    old = {entry.id for entry in before.entries}
    new = [
        entry
        for entry in ledger.entries
        if entry.id not in old
        and entry.state is EntryState.LIVE
        and entry.origin is Origin.MACHINE
        and entry.section in (Section.CONSTRAINTS, Section.PENDING)
    ]
    ids = {entry.id for entry in new}
    others = tuple(entry for entry in ledger.entries if entry.id not in ids)
    used = HEADINGS + count(render(evict(replace(ledger, entries=others), 0, count)[0]))
    costs = {entry.id: count(line_of(entry)) for entry in new}
    if used + sum(costs.values()) <= min(cap_tokens * KEPT_SHARE, most_tokens):
        return ledger, ()
    gone: set[int] = set()
    for entry in _strongest_first(new, items):
        weak = entry.section is Section.CONSTRAINTS and not is_standing(entry.text)
        cost = costs[entry.id]
        if used + cost > (cap_tokens * KEPT_SHARE if weak else most_tokens):
            gone.add(entry.id)
        else:
            used += cost
    entries = tuple(
        replace(entry, state=EntryState.EVICTED) if entry.id in gone else entry
        for entry in ledger.entries
    )
    notes = tuple(
        f"left out, there is no room: {entry.text:.120}" for entry in new if entry.id in gone
    )
    return replace(ledger, entries=entries), notes


def _strongest_first(new: Sequence[Entry], items: Sequence[Item]) -> list[Entry]:
    """Standing rules first, then the entries said most often, then the latest; pending last."""
    if len(new) < 2:
        return list(new)
    said = Counter(
        normalise(sentence)
        for item in items
        if item.role == "user"
        for line in cues.prose_lines(item.text)
        for sentence in cues.END.split(line)
    )

    def rank(entry: Entry) -> tuple[bool, bool, int, int, int]:
        return (
            entry.section is Section.PENDING,
            not is_standing(entry.text),
            -said[normalise(entry.text)],
            -max(entry.sources, default=0),
            entry.id,
        )

    return sorted(new, key=rank)
