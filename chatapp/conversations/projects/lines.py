"""The lines kept for a project, and a person's changes of them. Pure.

They are the entries of a ledger such as a summary's, all of them a person's. A line that was struck
or refused stays as a lifted entry, so that it is not suggested again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from chatapp.errors import InvalidInput
from chatapp.text.lengths import LINE_LENGTH
from compression.ledger.ledger import VISIBLE, from_json, to_json
from compression.ledger.lines import Act, Line, LineChange, change_lines, lines_of
from compression.ports import TokenCounter
from compression.types import Entry, EntryState, Ledger, Origin, Section

#: Most lines of a project, and most ruler tokens of them; no window needs more.
MOST_LINES, MOST_TOKENS = 200, 6_000
#: Most lines that are remembered as struck or refused.
MOST_LIFTED = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The messages of a conversation that a line comes from."""

    code: str
    seqs: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptLines:
    """The lines of one version."""

    ledger: Ledger = field(default_factory=Ledger)
    sources: Mapping[int, Source] = field(default_factory=dict)
    """By the id of the entry; a line that a person wrote has none."""
    tokens: Mapping[int, int] = field(default_factory=dict)
    """Ruler tokens of each visible line's text."""

    @property
    def lines(self) -> tuple[Line, ...]:
        """The visible lines in their order."""
        return lines_of(self.ledger)

    @property
    def known(self) -> frozenset[str]:
        """The texts of all lines, struck and refused ones included, as they are compared."""
        return frozenset(compared(one.text) for one in self.ledger.entries)

    def has(self, section: Section, text: str) -> bool:
        """Whether there is such a line."""
        return any(
            one.section is section and compared(one.text) == compared(text)
            for one in self.ledger.entries
            if one.state in VISIBLE
        )


def section_kept(line: Line) -> Section:
    """The section under which a project keeps a line of a summary.

    The story of a conversation is a fact for the others.
    """
    return line.section or Section.CONTEXT


def compared(text: str) -> str:
    """A line's text without the differences that a reader does not see."""
    return " ".join(text.casefold().split())


def changed(kept: KeptLines, change: LineChange, source: Source | None = None) -> KeptLines:
    """The lines after a person's change; the same object if nothing changes.

    ``source``: where an added line comes from. A rewritten line keeps its own. Raises InvalidInput
    for too many lines or a text that is too long, and SummaryInvalid as
    :func:`compression.ledger.lines.change_lines` does.
    """
    if len(change.text) > LINE_LENGTH:
        raise InvalidInput.of("text", f"A line has at most {LINE_LENGTH:,} characters.")
    if change.act is Act.ADD and change.section and kept.has(change.section, change.text):
        return kept
    ledger = change_lines(kept.ledger, [change], may_be_empty=True)
    if ledger == kept.ledger:
        return kept
    before = {one.id for one in kept.ledger.entries}
    new = [one.id for one in ledger.entries if one.id not in before]
    if change.act is Act.REWRITE:
        source = kept.sources.get(int(change.key[1:]))
    sources = dict(kept.sources) | ({new[0]: source} if new and source else {})
    return _bounded(replace(kept, ledger=ledger, sources=sources))


def refused(kept: KeptLines, section: Section, text: str) -> KeptLines:
    """The lines with one that is not to be suggested again."""
    if compared(text) in kept.known:
        return kept
    entry = Entry(
        id=max((one.id for one in kept.ledger.entries), default=0) + 1,
        section=section,
        text=text[:LINE_LENGTH],
        origin=Origin.PERSON,
        state=EntryState.LIFTED,
    )
    return _bounded(replace(kept, ledger=Ledger(entries=(*kept.ledger.entries, entry))))


def _bounded(kept: KeptLines) -> KeptLines:
    """The lines without the oldest struck ones, if there are very many."""
    visible = [one for one in kept.ledger.entries if one.state in VISIBLE]
    if len(visible) > MOST_LINES:
        raise InvalidInput.of("text", f"A project keeps at most {MOST_LINES} lines.")
    lifted = [one.id for one in kept.ledger.entries if one.state not in VISIBLE]
    gone = set(lifted[: max(0, len(lifted) - MOST_LIFTED)])
    entries = tuple(one for one in kept.ledger.entries if one.id not in gone)
    known = {one.id for one in entries}
    return replace(
        kept,
        ledger=Ledger(entries=entries),
        sources={id_: one for id_, one in kept.sources.items() if id_ in known},
    )


def counted(kept: KeptLines, counter: TokenCounter) -> KeptLines:
    """The lines with their ruler tokens. Slow: call it in a thread. Raises InvalidInput."""
    tokens = {
        one.id: counter.count(one.text) for one in kept.ledger.entries if one.state in VISIBLE
    }
    total = sum(tokens.values())
    if total > MOST_TOKENS and total > sum(kept.tokens.values()):
        raise InvalidInput.of(
            "text",
            f"The lines would have {total:,} tokens; at most {MOST_TOKENS:,} are allowed.",
        )
    return replace(kept, tokens=tokens)


def as_json(kept: KeptLines) -> dict[str, Any]:
    """The lines as they are stored."""
    entries, _ = to_json(kept.ledger)
    return {
        "entries": entries,
        "sources": {str(id_): [one.code, *one.seqs] for id_, one in kept.sources.items()},
        "tokens": {str(id_): count for id_, count in kept.tokens.items()},
    }


def read(stored: Mapping[str, Any]) -> KeptLines:
    """The lines that :func:`as_json` stored; none for an empty object."""
    sources: Mapping[str, Sequence[Any]] = stored.get("sources", {})
    return KeptLines(
        ledger=from_json(stored.get("entries", []), []),
        sources={
            int(id_): Source(code=code, seqs=tuple(seqs)) for id_, (code, *seqs) in sources.items()
        },
        tokens={int(id_): count for id_, count in stored.get("tokens", {}).items()},
    )
