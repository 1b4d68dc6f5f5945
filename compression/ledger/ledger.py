"""The structured part of a summary. A model proposes changes; only code here makes them.

An entry that no operation names stays the same, word for word. The machine never changes what a
person wrote, and never adds again what a person removed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from compression.exceptions import DraftRejected
from compression.ledger.markdown import line_of, render
from compression.types import Entry, EntryState, Ledger, NarrativeLine, Origin, Section

__all__ = [
    "Addition",
    "Delta",
    "Lift",
    "Supersession",
    "apply_delta",
    "evict",
    "from_json",
    "parse_delta",
    "render",
    "to_json",
]

VISIBLE = (EntryState.LIVE, EntryState.DONE)
#: Evicted in this order, after the narrative. Constraints, pending entries and those of a person
#: are never evicted.
EVICTION_ORDER = (Section.DONE, Section.CONTEXT, Section.FILES, Section.DECISIONS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Addition:
    """A proposed new entry."""

    section: Section
    text: str
    sources: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Supersession:
    """A proposed new text for an existing entry."""

    id: int
    text: str
    sources: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Lift:
    """The proposed end of a constraint, with the user message that ended it."""

    id: int
    source: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """The changes that a model proposes for one span, as operations on the ledger."""

    narrative: str = ""
    add: tuple[Addition, ...] = ()
    resolve: tuple[int, ...] = ()
    supersede: tuple[Supersession, ...] = ()
    lift: tuple[Lift, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether the delta has no operation and no narrative."""
        return not (
            self.narrative.strip() or self.add or self.resolve or self.supersede or self.lift
        )


def parse_delta(value: object) -> Delta:
    """The delta in a decoded JSON value; lists that are absent count as empty.

    Raises :class:`DraftRejected`, which names the first mistake.
    """
    top = _object(value, "The answer", {"narrative", "add", "resolve", "supersede", "lift"})
    delta = Delta(
        narrative=_text(top.get("narrative", ""), "narrative", blank=True),
        add=tuple(_addition(one) for one in _list(top.get("add", []), "add")),
        resolve=tuple(_integer(one, "resolve") for one in _list(top.get("resolve", []), "resolve")),
        supersede=tuple(_supersession(one) for one in _list(top.get("supersede", []), "supersede")),
        lift=tuple(_lift(one) for one in _list(top.get("lift", []), "lift")),
    )
    if delta.empty:
        raise DraftRejected("The model's summary was empty.")
    return delta


def _addition(value: object) -> Addition:
    one = _object(value, "An entry of add", {"section", "text", "sources"})
    section = one.get("section")
    if section not in list(Section):
        raise DraftRejected(f"The model's summary names an unknown section: {section!r:.80}.")
    return Addition(
        section=Section(section),
        text=_text(one.get("text"), "add.text"),
        sources=_sources(one.get("sources"), "add.sources"),
    )


def _supersession(value: object) -> Supersession:
    one = _object(value, "An entry of supersede", {"id", "text", "sources"})
    return Supersession(
        id=_integer(one.get("id"), "supersede.id"),
        text=_text(one.get("text"), "supersede.text"),
        sources=_sources(one.get("sources"), "supersede.sources"),
    )


def _lift(value: object) -> Lift:
    one = _object(value, "An entry of lift", {"id", "source"})
    return Lift(id=_integer(one.get("id"), "lift.id"), source=_integer(one.get("source"), "lift"))


def _object(value: object, what: str, known: set[str]) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise DraftRejected(f"{what} of the model is not a JSON object.")
    unknown = sorted(str(key) for key in value if key not in known)
    if unknown:
        raise DraftRejected(f"{what} of the model has an unknown key: {unknown[0]!r:.80}.")
    return value


def _list(value: object, what: str) -> list[object]:
    if not isinstance(value, list):
        raise DraftRejected(f"In the model's summary {what} is not a list.")
    return value


def _text(value: object, what: str, *, blank: bool = False) -> str:
    if not isinstance(value, str) or not (blank or value.strip()):
        raise DraftRejected(f"In the model's summary {what} is not a text.")
    return value.replace("\x00", "").strip()


def _integer(value: object, what: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise DraftRejected(f"In the model's summary {what} is not a whole number.")
    return value


def _sources(value: object, what: str) -> tuple[int, ...]:
    return tuple(sorted({_integer(one, what) for one in _list(value, what)}))


def apply_delta(
    ledger: Ledger,
    delta: Delta,
    *,
    first_seq: int,
    through_seq: int,
    user_seqs: Collection[int],
) -> tuple[Ledger, tuple[str, ...]]:
    """The ledger with the delta of the span ``first_seq`` to ``through_seq`` applied, and notes.

    ``user_seqs`` are the span's user messages. A forbidden operation is ignored, with a note;
    duplicates are dropped silently.
    """
    merge = _Merge(
        entries={entry.id: entry for entry in ledger.entries},
        span=range(first_seq, through_seq + 1),
        user_seqs=frozenset(user_seqs),
    )
    for lift in delta.lift:
        merge.lift(lift)
    for id_ in delta.resolve:
        merge.resolve(id_)
    for supersession in delta.supersede:
        merge.supersede(supersession)
    for addition in delta.add:
        merge.add(addition)
    narrative = ledger.narrative
    if delta.narrative.strip():
        line = NarrativeLine(
            text=delta.narrative.strip(), first_seq=first_seq, through_seq=through_seq
        )
        narrative = (*narrative, line)
    merged = Ledger(entries=tuple(merge.entries.values()), narrative=narrative)
    return merged, tuple(merge.notes)


@dataclass(slots=True)
class _Merge:
    """The application of one delta, with a note for each operation that is forbidden."""

    entries: dict[int, Entry]
    span: range
    user_seqs: frozenset[int]
    notes: list[str] = field(default_factory=list)
    _known: set[tuple[Section, str]] = field(default_factory=set)
    _removed: set[str] = field(default_factory=set)
    """Texts of entries that a person removed; they stay out under any other heading too."""
    _next_id: int = 0

    def __post_init__(self) -> None:
        self._next_id = max(self.entries, default=0) + 1
        for entry in self.entries.values():
            if entry.state in VISIBLE:
                self._known.add(_key(entry.section, entry.text))
            elif entry.origin is Origin.PERSON:
                self._removed.add(_plain(entry.text))

    def _open(self, id_: int, operation: str) -> Entry | None:
        """The live entry if the machine may change it; else None, with a note."""
        entry = self.entries.get(id_)
        if entry is None or entry.state not in VISIBLE:
            self.notes.append(f"{operation} {id_} ignored: there is no such entry.")
        elif entry.origin is Origin.PERSON:
            self.notes.append(f"{operation} {id_} ignored: a person wrote that entry.")
        elif entry.section is Section.CONSTRAINTS and operation != "lift":
            self.notes.append(f"{operation} {id_} ignored: a constraint can only be lifted.")
        else:
            return entry
        return None

    def lift(self, lift: Lift) -> None:
        entry = self._open(lift.id, "lift")
        if entry is None:
            return
        if entry.section is not Section.CONSTRAINTS:
            self.notes.append(f"lift {lift.id} ignored: it is not a constraint.")
        elif lift.source not in self.user_seqs or lift.source not in self.span:
            self.notes.append(f"lift {lift.id} ignored: no user message of the span says so.")
        else:
            self._known.discard(_key(entry.section, entry.text))
            self.entries[entry.id] = replace(entry, state=EntryState.LIFTED)

    def resolve(self, id_: int) -> None:
        entry = self._open(id_, "resolve")
        if entry is None:
            return
        if entry.section is not Section.PENDING:
            self.notes.append(f"resolve {id_} ignored: it is not pending.")
            return
        self.entries[id_] = replace(entry, section=Section.DONE, state=EntryState.DONE)
        self._known.add(_key(Section.DONE, entry.text))

    def supersede(self, new: Supersession) -> None:
        entry = self._open(new.id, "supersede")
        if entry is None:
            return
        if self._insert(entry.section, new.text, new.sources, f"supersede {new.id}"):
            self.entries[entry.id] = replace(entry, state=EntryState.REPLACED)

    def add(self, new: Addition) -> None:
        cites_user = any(seq in self.user_seqs for seq in new.sources)
        if new.section is Section.CONSTRAINTS and not cites_user:
            self.notes.append(f"add ignored: a constraint without a user message: {new.text:.80}")
            return
        self._insert(new.section, new.text, new.sources, "add")

    def _insert(
        self, section: Section, text: str, sources: tuple[int, ...], operation: str
    ) -> bool:
        if not text.strip() or not sources or any(seq not in self.span for seq in sources):
            self.notes.append(f"{operation} ignored: its sources lie outside the span: {text:.80}")
            return False
        key = _key(section, text)
        if key in self._known or key[1] in self._removed:
            return False
        self._known.add(key)
        self.entries[self._next_id] = Entry(
            id=self._next_id,
            section=section,
            text=text,
            sources=tuple(sorted(set(sources))),
            state=EntryState.DONE if section is Section.DONE else EntryState.LIVE,
        )
        self._next_id += 1
        return True


def _key(section: Section, text: str) -> tuple[Section, str]:
    """The key by which entries are compared."""
    return section, _plain(text)


def _plain(text: str) -> str:
    """The text as it is compared: whitespace, case and a last full stop do not matter."""
    return " ".join(text.split()).casefold().rstrip(".。!")


def evict(
    ledger: Ledger, cap_tokens: int, count: Callable[[str], int]
) -> tuple[Ledger, tuple[str, ...]]:
    """The ledger reduced to ``cap_tokens`` ruler tokens, and the evicted texts, in order.

    The oldest narrative is evicted first, then done, context, files and decisions, oldest first.
    Entries that may not be evicted can keep the ledger above the cap. The last remaining line is
    never evicted.
    """
    size = count(render(ledger))
    candidates = _evictable(ledger)
    visible = sum(entry.state in VISIBLE for entry in ledger.entries) + len(ledger.narrative)
    gone: set[int | NarrativeLine] = set()
    texts: list[str] = []
    position = 0
    while size > cap_tokens and position < len(candidates) and len(gone) < visible - 1:
        while size > cap_tokens and position < len(candidates) and len(gone) < visible - 1:
            one = candidates[position]
            position += 1
            gone.add(one.id if isinstance(one, Entry) else one)
            texts.append(one.text)
            size -= count(line_of(one))
        size = count(render(_without(ledger, gone)))
    return _without(ledger, gone), tuple(texts)


def _evictable(ledger: Ledger) -> list[Entry | NarrativeLine]:
    found: list[Entry | NarrativeLine] = [
        line for line in ledger.narrative if line.origin is Origin.MACHINE
    ]
    for section in EVICTION_ORDER:
        found.extend(
            entry
            for entry in ledger.entries
            if entry.section is section
            and entry.state in VISIBLE
            and entry.origin is Origin.MACHINE
        )
    return found


def _without(ledger: Ledger, gone: set[int | NarrativeLine]) -> Ledger:
    return Ledger(
        entries=tuple(
            replace(entry, state=EntryState.EVICTED) if entry.id in gone else entry
            for entry in ledger.entries
        ),
        narrative=tuple(line for line in ledger.narrative if line not in gone),
    )


def to_json(ledger: Ledger) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Entries and narrative as they are stored: lists of JSON objects."""
    entries = [
        {
            "id": entry.id,
            "section": entry.section.value,
            "text": entry.text,
            "sources": list(entry.sources),
            "origin": entry.origin.value,
            "state": entry.state.value,
        }
        for entry in ledger.entries
    ]
    narrative = [
        {
            "text": line.text,
            "first_seq": line.first_seq,
            "through_seq": line.through_seq,
            "origin": line.origin.value,
        }
        for line in ledger.narrative
    ]
    return entries, narrative


def from_json(
    entries: Sequence[Mapping[str, Any]], narrative: Sequence[Mapping[str, Any]]
) -> Ledger:
    """The ledger that :func:`to_json` stored. Raises KeyError or ValueError on anything else."""
    return Ledger(
        entries=tuple(
            Entry(
                id=one["id"],
                section=Section(one["section"]),
                text=one["text"],
                sources=tuple(one["sources"]),
                origin=Origin(one["origin"]),
                state=EntryState(one["state"]),
            )
            for one in entries
        ),
        narrative=tuple(
            NarrativeLine(
                text=one["text"],
                first_seq=one["first_seq"],
                through_seq=one["through_seq"],
                origin=Origin(one["origin"]),
            )
            for one in narrative
        ),
    )
