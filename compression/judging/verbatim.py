"""Paths, commands, names and figures that a draft lacks, kept word for word, many to a line. Pure.

Sentences leave out what they do not need: of the paths and commands of coding chats hardly any
outlived a compression. So code adds the best of those that the summary lacks. Time is linear in the
text.

What is left of them after many compressions: ``tests/benchmarks/README.md``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from compression.judging.mentions import Kind, Mention, mentions
from compression.judging.salience import PATH, URL, holds, normalise
from compression.ledger.ledger import VISIBLE, Addition, Delta, apply_delta, evict
from compression.ledger.markdown import line_of, render
from compression.summarizers.extractive import SEPARATOR, line_for
from compression.types import Entry, EntryState, Item, Ledger, Origin, Section

ROOM_SHARE = 0.3
"""Share of the summary's cap that new lines of one compression may take."""
SOURCE_SHARE = 0.1
"""Share of the messages' own tokens that these lines may take."""
SHARES = {Kind.PATH: 0.4, Kind.COMMAND: 0.7, Kind.NAME: 0.85, Kind.FIGURE: 1.0}
"""Share of the room up to which each kind may fill it; the next may use what one leaves."""
STANDING = {Kind.PATH: 0.6, Kind.COMMAND: 0.25}
"""Share of what entries that are never evicted leave of the cap: so much of it all lines of these
kinds keep, before any other entry that can be evicted."""
LONGEST_LINE = 200
"""Characters of a line."""
LINE_SOURCES = 3
"""Different messages that a line cites."""
BESIDES = 3
"""Ruler tokens that a mention costs besides its own: a separator, and its share of the sources."""
LABELS = {Kind.NAME: "Names: ", Kind.FIGURE: "Figures: "}
"""What a line begins with, where its parts alone do not tell what they are."""
HEADINGS = 12
"""Ruler tokens of headings."""

_SOURCES = re.compile(r"\[[\d, –]+\]$", re.MULTILINE)
_COMMANDS = re.compile(r"`[^`]+`(?:; `[^`]+`)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A ledger with lines of mentions."""

    ledger: Ledger
    lines: tuple[str, ...] = ()
    """The texts of the new lines."""
    evicted: tuple[str, ...] = ()
    """The texts of entries that made way."""


def with_verbatim(
    ledger: Ledger,
    before: Ledger,
    items: Sequence[Item],
    *,
    cap_tokens: int,
    count: Callable[[str], int],
) -> Kept:
    """A draft's ledger with lines of the mentions in ``items`` that it lacks, reduced to its cap.

    ``before`` is the ledger that the draft was made from: new entries of the draft that are nothing
    but a path share lines. What a person took out of the summary stays out. ``cap_tokens``: ruler
    tokens, by ``count``, that the summary may have.
    """
    old = {entry.id for entry in before.entries}
    # The extract has evicted what it had no room for. Of these lines that is decided below.
    lists = {entry.id: entry for entry in before.entries if _kind(entry)}
    entries = [
        lists.get(one.id, one) if one.state is EntryState.EVICTED else one for one in ledger.entries
    ]
    bare = [
        entry
        for entry in entries
        if entry.id not in old and _kind(entry) is Kind.PATH and SEPARATOR not in entry.text
    ]
    ids = {entry.id for entry in bare}
    rest = replace(ledger, entries=tuple(one for one in entries if one.id not in ids))
    source = sum(item.tokens for item in items)
    lines = packed(
        items,
        bare,
        known="\n".join([render(rest), *_taken_out(ledger)]),
        room=int(min(ROOM_SHARE * cap_tokens, SOURCE_SHARE * source)),
        count=count,
    )
    larger, _ = apply_delta(
        rest,
        Delta(add=lines),
        first_seq=items[0].seq,
        through_seq=items[-1].seq,
        user_seqs=(),
    )
    fitted, evicted = _fitted(larger, old, cap_tokens, count)
    return Kept(ledger=fitted, lines=tuple(one.text for one in lines), evicted=evicted)


def _kind(entry: Entry) -> Kind | None:
    """The kind of a line of the machine's that is nothing but paths or nothing but commands."""
    if entry.origin is not Origin.MACHINE or entry.state is not EntryState.LIVE:
        return None
    if entry.section is Section.CONTEXT and _COMMANDS.fullmatch(entry.text):
        return Kind.COMMAND
    parts = entry.text.split(SEPARATOR) if entry.section is Section.FILES else []
    paths = (PATH.fullmatch(part.strip("`")) or URL.fullmatch(part) for part in parts)
    return Kind.PATH if parts and all(paths) else None


def _taken_out(ledger: Ledger) -> Iterator[str]:
    """The texts of entries that a person removed."""
    for entry in ledger.entries:
        if entry.origin is Origin.PERSON and entry.state not in VISIBLE:
            yield entry.text


def _fitted(
    ledger: Ledger, old: set[int], cap_tokens: int, count: Callable[[str], int]
) -> tuple[Ledger, tuple[str, ...]]:
    """The ledger within its cap, if eviction can do it, and the evicted texts.

    Files are evicted after all context: over many compressions paths would take the room of
    everything else, and sentences that of commands. So lines of paths and of commands have room of
    their own; the old ones with the longest parts make way for new ones. The rest goes in its usual
    order.
    """
    if count(render(ledger)) <= cap_tokens:
        return ledger, ()
    firm, _ = evict(replace(ledger, narrative=()), 0, count)
    room = max(0, cap_tokens - count(render(firm)) - HEADINGS)
    gone: dict[int, Entry] = {}
    kept: dict[int, Entry] = {}
    used = 0
    for kind, share in STANDING.items():
        left = share * room
        lines = [entry for entry in ledger.entries if _kind(entry) is kind]
        for entry in sorted(lines, key=lambda one: (one.id in old, _length(one), -one.id)):
            cost = count(line_of(entry)) + 1
            if cost <= left:
                left -= cost
                used += cost
                kept[entry.id] = entry
            else:
                gone[entry.id] = replace(entry, state=EntryState.EVICTED)
    others = tuple(gone.get(one.id, one) for one in ledger.entries if one.id not in kept)
    rest, evicted = evict(replace(ledger, entries=others), cap_tokens - used - HEADINGS, count)
    states = kept | {entry.id: entry for entry in rest.entries}
    whole = replace(rest, entries=tuple(states[entry.id] for entry in ledger.entries))
    return whole, (*(entry.text for entry in gone.values()), *evicted)


def _length(entry: Entry) -> float:
    """Characters of each part of a line."""
    return len(entry.text) / (entry.text.count(SEPARATOR) + 1)


def packed(
    items: Sequence[Item],
    bare: Sequence[Entry],
    *,
    known: str,
    room: int,
    count: Callable[[str], int],
) -> tuple[Addition, ...]:
    """Lines of the mentions in ``items`` that ``known`` lacks, best first, in ``room`` tokens.

    ``bare``: entries of one path each, which are packed too and take no room.
    """
    plain = normalise(_SOURCES.sub("", known))
    first = [
        Mention(text=entry.text, key=normalise(entry.text), seqs=list(entry.sources))
        for entry in bare
        if not holds(plain, normalise(entry.text))
    ]
    plain += "".join(f" {one.key}" for one in first)
    used = 0
    lines: list[Addition] = []
    for kind, ranked in mentions(items).items():
        chosen: list[Mention] = []
        for one in ranked:
            if room * SHARES[kind] - used <= BESIDES:
                break
            if holds(plain, one.key):
                continue
            cost = count(one.text) + BESIDES
            if used + cost <= room * SHARES[kind]:
                used += cost
                chosen.append(one)
                plain += f" {normalise(one.text)}"
        lines += _lines(kind, chosen)
    while lines and sum(count(line_for(one)) for one in lines) > room:
        lines.pop()
    return (*_lines(Kind.PATH, first), *lines)


def _lines(kind: Kind, chosen: Iterable[Mention]) -> list[Addition]:
    """The mentions in the order of the messages; each line cites a few of these."""
    section, label = (Section.FILES if kind is Kind.PATH else Section.CONTEXT), LABELS.get(kind, "")
    groups: list[tuple[list[str], set[int]]] = []
    for one in sorted(chosen, key=lambda one: one.seqs[-1]):
        text = f"`{one.text}`" if kind is Kind.COMMAND else one.text
        texts, seqs = groups[-1] if groups else ([], set())
        length = sum(map(len, texts)) + len(text)
        if not texts or length > LONGEST_LINE or len(seqs | {one.seqs[-1]}) > LINE_SOURCES:
            texts, seqs = [], set()
            groups.append((texts, seqs))
        texts.append(text)
        seqs.add(one.seqs[-1])
    return [
        Addition(section=section, text=label + SEPARATOR.join(texts), sources=tuple(sorted(seqs)))
        for texts, seqs in groups
    ]
