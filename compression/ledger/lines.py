"""A summary as lines, and a person's changes of single lines. Pure.

A line's key names it within one version of the summary: ``e12`` is the entry 12, ``n0`` the first
line of the narrative. A changed line is the person's own, so no model changes it from then on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import chain

from compression.exceptions import SummaryInvalid
from compression.ledger.ledger import VISIBLE
from compression.ledger.markdown import MOST_SOURCES, line_of
from compression.types import Entry, EntryState, Ledger, NarrativeLine, Origin, Section

MOST_CHANGES = 500
"""Changes that may be made at once."""


class Act(StrEnum):
    """The ways to change a line."""

    STRIKE = "strike"
    """Take it out; no model adds it again."""
    FORGET = "forget"
    """Take it out, and have no model look up the messages that it comes from."""
    REWRITE = "rewrite"
    PIN = "pin"
    """Keep it as it is: it is never evicted, replaced or lifted by a model."""
    UNPIN = "unpin"
    ADD = "add"


@dataclass(frozen=True, slots=True, kw_only=True)
class LineChange:
    """One change of a line by a person."""

    act: Act
    key: str = ""
    """The line; empty for ``add``."""
    text: str = ""
    """The new text, for ``rewrite`` and ``add``."""
    section: Section | None = None
    """The heading of a new line; None: the narrative."""
    sources: tuple[int, ...] = ()
    """The messages that a new line under a heading comes from, if it is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a summary."""

    key: str
    section: Section | None
    """None for narrative."""
    text: str
    sources: tuple[int, ...]
    """``seq`` numbers; for narrative the first and the last."""
    pinned: bool
    """A person wrote or pinned it."""
    markdown: str
    """The line as it stands in the summary's text."""


def lines_of(ledger: Ledger) -> tuple[Line, ...]:
    """The visible lines in the order in which they are rendered."""
    narrative = [
        Line(
            key=f"n{place}",
            section=None,
            text=one.text,
            sources=tuple(dict.fromkeys((one.first_seq, one.through_seq)))
            if one.through_seq
            else (),
            pinned=one.origin is Origin.PERSON,
            markdown=line_of(one),
        )
        for place, one in enumerate(ledger.narrative)
    ]
    entries = [
        Line(
            key=f"e{one.id}",
            section=one.section,
            text=one.text,
            sources=tuple(sorted(set(one.sources))),
            pinned=one.origin is Origin.PERSON,
            markdown=line_of(one),
        )
        for one in ledger.entries
        if one.state in VISIBLE
    ]
    order = {section: place for place, section in enumerate(Section)}
    entries.sort(key=lambda line: order[line.section] if line.section else -1)
    return (*narrative, *entries)


def change_lines(
    ledger: Ledger, changes: Sequence[LineChange], *, may_be_empty: bool = False
) -> Ledger:
    """The ledger with the person's changes.

    A rewritten line keeps its place and its sources. Raises :class:`SummaryInvalid` when a line is
    not there, a text is blank, or nothing would be left unless it ``may_be_empty``.
    """
    if len(changes) > MOST_CHANGES:
        raise SummaryInvalid(f"At most {MOST_CHANGES} lines can be changed at once.")
    editing = _Editing.of(ledger)
    for change in changes:
        editing.apply(change)
    changed = editing.ledger()
    if not may_be_empty and not lines_of(changed):
        raise SummaryInvalid("No line would be left. To go on without a summary, use Clear.")
    return changed


def forgotten(ledger: Ledger) -> frozenset[int]:
    """``seq`` numbers of the messages that no model may look up: a person has them forgotten."""
    entries = (one for one in ledger.entries if one.state is EntryState.FORGOTTEN)
    found = chain.from_iterable(one.sources for one in entries)
    return frozenset(seq for _, seq in zip(range(MOST_SOURCES), found, strict=False))


def remembered(ledger: Ledger) -> Ledger:
    """The ledger for a conversation with other messages: what was forgotten is only struck there.

    The sources are numbers of messages that it does not have.
    """
    return replace(
        ledger,
        entries=tuple(
            replace(one, state=EntryState.LIFTED) if one.state is EntryState.FORGOTTEN else one
            for one in ledger.entries
        ),
    )


@dataclass(slots=True)
class _Editing:
    """A ledger being changed, whose lines keep their keys until the end."""

    entries: dict[int, list[Entry]]
    """Id of an entry → itself, and what was put in its place."""
    narrative: dict[int, NarrativeLine]
    added: list[Entry] = field(default_factory=list)
    next_id: int = 1
    next_line: int = 0

    @classmethod
    def of(cls, ledger: Ledger) -> _Editing:
        return cls(
            entries={one.id: [one] for one in ledger.entries},
            narrative=dict(enumerate(ledger.narrative)),
            next_id=max((one.id for one in ledger.entries), default=0) + 1,
            next_line=len(ledger.narrative),
        )

    def ledger(self) -> Ledger:
        kept: Iterable[Entry] = chain.from_iterable(self.entries.values())
        return Ledger(entries=(*kept, *self.added), narrative=tuple(self.narrative.values()))

    def apply(self, change: LineChange) -> None:
        text = change.text.replace("\r\n", "\n").strip()
        if change.act in (Act.REWRITE, Act.ADD) and not text:
            raise SummaryInvalid("The line is empty. To take a line out, strike it.")
        if "\x00" in text:
            raise SummaryInvalid("The line holds a NUL character, which cannot be stored.")
        if change.act is Act.ADD:
            self._add(change, text)
        elif change.key.startswith("n"):
            self._narrative(change, text)
        else:
            self._entry(change, text)

    def _add(self, change: LineChange, text: str) -> None:
        section = change.section
        if section is None:
            line = NarrativeLine(text=text, first_seq=0, through_seq=0, origin=Origin.PERSON)
            self.narrative[self.next_line] = line
            self.next_line += 1
            return
        state = EntryState.DONE if section is Section.DONE else EntryState.LIVE
        self.added.append(
            Entry(
                id=self.next_id,
                section=section,
                text=text,
                sources=change.sources,
                origin=Origin.PERSON,
                state=state,
            )
        )
        self.next_id += 1

    def _narrative(self, change: LineChange, text: str) -> None:
        place = _number(change.key)
        line = self.narrative.get(place)
        if line is None:
            raise _missing()
        if change.act is Act.STRIKE:
            del self.narrative[place]
        elif change.act is Act.FORGET:
            # Its sources are all messages of a span.
            raise SummaryInvalid("A sentence about many messages can be struck, not forgotten.")
        elif change.act is Act.REWRITE:
            if text != line.text:
                self.narrative[place] = replace(line, text=text, origin=Origin.PERSON)
        else:
            self.narrative[place] = replace(line, origin=_origin(change.act))

    def _entry(self, change: LineChange, text: str) -> None:
        versions = self.entries.get(_number(change.key), [])
        if not versions or versions[-1].state not in VISIBLE:
            raise _missing()
        entry = versions.pop()
        if change.act is Act.REWRITE and text != entry.text:
            # The old text stays as one that a person removed.
            versions.append(replace(entry, state=EntryState.LIFTED, origin=Origin.PERSON))
            entry = replace(entry, id=self.next_id, text=text, origin=Origin.PERSON)
            self.next_id += 1
        elif change.act is Act.STRIKE:
            entry = replace(entry, state=EntryState.LIFTED, origin=Origin.PERSON)
        elif change.act is Act.FORGET:
            entry = replace(entry, state=EntryState.FORGOTTEN, origin=Origin.PERSON)
        elif change.act in (Act.PIN, Act.UNPIN):
            entry = replace(entry, origin=_origin(change.act))
        versions.append(entry)


def _origin(act: Act) -> Origin:
    return Origin.PERSON if act is Act.PIN else Origin.MACHINE


def _number(key: str) -> int:
    digits = key[1:]
    if key[:1] not in ("e", "n") or not (digits.isascii() and digits.isdigit()) or len(digits) > 18:
        raise _missing()
    return int(digits)


def _missing() -> SummaryInvalid:
    return SummaryInvalid("This line is not there any more.")
