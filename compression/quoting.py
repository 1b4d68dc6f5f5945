"""What a summariser is given: notes and messages, quoted as data, in parts that fit. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from compression.ledger import evict
from compression.types import Entry, EntryState, Item, Ledger, Origin, Section

SLACK = 16
#: Ruler tokens a message's frame may cost above its own text.


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Messages that go into one call; the pieces of a giant one share its seq."""

    items: tuple[Item, ...]


def quote_item(item: Item, nonce: str) -> str:
    """One message between delimiters that its text cannot forge, since it knows no nonce."""
    calls = "".join(f"\n(calls {call.get('function', call)})" for call in item.tool_calls)
    name = f" tool={item.tool_name!r}" if item.tool_name else ""
    text = (item.text + calls).replace(nonce, "")
    return (
        f'<message-{nonce} seq="{item.seq}" role="{item.role}"{name}>\n{text}\n</message-{nonce}>'
    )


def quote_ledger(ledger: Ledger, nonce: str, *, limit: int, count: Callable[[str], int]) -> str:
    """The present notes with their ids, as many of them as ``limit`` ruler tokens hold.

    Constraints and open ends go in first, since only they need to be lifted or resolved.
    """
    shown, _ = evict(ledger, limit * 2 // 3, count)
    lines: list[str] = []
    used = 0
    first = (Section.CONSTRAINTS, Section.PENDING)
    for entry in sorted(shown.entries, key=lambda entry: entry.section not in first):
        if entry.state not in (EntryState.LIVE, EntryState.DONE):
            continue
        line = _note(entry).replace(nonce, "")
        used += count(line) + 1
        if used > limit:
            break
        lines.append(line)
    body = "\n".join(lines) or "(none yet)"
    return f"<notes-{nonce}>\n{body}\n</notes-{nonce}>"


def _note(entry: Entry) -> str:
    fixed = " (written by a person: fixed)" if entry.origin is Origin.PERSON else ""
    return f"[{entry.id}] {entry.section.value}{fixed}: {' '.join(entry.text.split())}"


def shortened(item: Item, longest: int) -> Item:
    """A tool's result cut to ``longest`` characters, head and tail; other items as they are."""
    if item.role != "tool" or len(item.text) <= longest:
        return item
    head, tail = item.text[: longest * 3 // 4], item.text[-(longest // 4) :]
    left_out = len(item.text) - len(head) - len(tail)
    return replace(item, text=f"{head}\n[… {left_out:,} characters …]\n{tail}")


def chunks(items: Sequence[Item], room: int, count: Callable[[str], int]) -> Iterator[Chunk]:
    """The items in parts of at most ``room`` ruler tokens, cut between messages where possible."""
    waiting: list[Item] = []
    used = 0
    for item in items:
        for piece in _pieces(item, room, count):
            size = count(quote_item(piece, "00000000")) + SLACK
            if waiting and used + size > room:
                yield Chunk(items=tuple(waiting))
                waiting, used = [], 0
            waiting.append(piece)
            used += size
    if waiting:
        yield Chunk(items=tuple(waiting))


def _pieces(item: Item, room: int, count: Callable[[str], int]) -> Iterator[Item]:
    """The item, or parts of its text that each fit into a call of their own."""
    if count(quote_item(item, "00000000")) + SLACK <= room:
        yield item
        return
    frame = count(quote_item(replace(item, text=""), "00000000")) + SLACK
    if frame > room // 2:
        # Its calls alone would fill a call: their beginning has to do.
        item = replace(item, text=f"{item.text}\n{str(item.tool_calls)[:room]}", tool_calls=())
        frame = count(quote_item(replace(item, text=""), "00000000")) + SLACK
    rest = item.text
    length = max(1, room)
    while rest:
        part = rest[:length]
        while len(part) > 1 and count(part) + frame > room:
            part = part[: len(part) // 2]
        rest = rest[len(part) :]
        yield replace(item, text=part)
        item = replace(item, tool_calls=())
        length = max(1, len(part) * 2)
