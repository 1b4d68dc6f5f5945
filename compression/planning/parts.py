"""The division of a span into parts, one model call each, before the first call. Pure.

A part ends at the end of a message, unless that would leave much of its room empty. Then the
message is divided and continues in the next part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from compression.types import Draft, Item

#: Share of a part's room that may stay empty to avoid dividing a message.
MOST_EMPTY = 0.25
#: One in this many calls is reserved for repeated requests.
SPARE = 10
#: Characters: more than one ruler token has in most texts.
CHARACTERS = 8
#: Estimates of how much of a text fits, before the length is halved until it fits.
GUESSES = 6

Size = Callable[[Item], int]
"""Counts the ruler tokens that an item takes in a call, quotation marks and headings included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Messages that go into one call; the pieces of a long one share its seq."""

    items: tuple[Item, ...]
    tokens: int = 0
    """Ruler tokens that the items take in the call."""
    divided_at: int = 0
    """Characters of the last message that were in the parts up to this one, when the message
    continues in the next part; else 0."""

    @property
    def first_seq(self) -> int:
        """Seq of the first message."""
        return self.items[0].seq

    @property
    def through_seq(self) -> int:
        """Seq of the last message."""
        return self.items[-1].seq


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The parts that a model summarises, and the older messages that the extract summarises."""

    chunks: tuple[Chunk, ...]
    oldest: tuple[Item, ...] = ()
    """Messages that no model sees; of the last one perhaps only the beginning."""
    nonce: str = ""
    """The marker that the chunks are quoted with; their sizes are right for no other marker."""
    originals: Mapping[int, Item] = field(default_factory=dict)
    """The whole messages, by seq."""

    @property
    def parts(self) -> int:
        """Number of parts, that of the extract included."""
        return len(self.chunks) + bool(self.oldest)

    def source(self, chunk: Chunk) -> tuple[Item, ...]:
        """The whole messages that a chunk was made from."""
        return tuple(self.originals[seq] for seq in sorted({item.seq for item in chunk.items}))


def bounded(plan: Plan, most_calls: int) -> Plan:
    """The plan with at most ``most_calls`` calls.

    The model gets the newest parts, the extract the others. When the extract gets any, a tenth of
    the calls is reserved for repeated requests.
    """
    if len(plan.chunks) <= most_calls:
        return plan
    most = max(1, most_calls - most_calls // SPARE)
    left_out, chunks = plan.chunks[:-most], plan.chunks[-most:]
    divided = chunks[0].first_seq
    oldest = [item for seq, item in sorted(plan.originals.items()) if seq < divided]
    begun = [item for chunk in left_out for item in chunk.items if item.seq == divided]
    if begun:
        text = "".join(piece.text for piece in begun)
        oldest.append(replace(begun[0], text=text, tokens=sum(one.tokens for one in begun)))
    return replace(plan, chunks=chunks, oldest=tuple(oldest))


def filled(items: Sequence[Item], room: Callable[[int], int], size: Size) -> Iterator[Chunk]:
    """Divide the items into parts; ``room`` gives the ruler tokens of a part by its number, from 0.

    No text is lost: each item is in one part, or in pieces in several.
    """
    number, used, divided_at = 0, 0, 0
    waiting: list[Item] = []
    for item in items:
        rest: Item | None = item
        divided_at = 0
        while rest is not None:
            free = room(number) - used
            if _fits(rest, free, size):
                used += size(rest)
                waiting.append(rest)
                rest = None
                continue
            piece: Item | None = None
            if not waiting:
                piece, rest = _divided(_without_long_calls(rest, free, size), free, size)
            elif free > room(number) * MOST_EMPTY and _frame(rest, size) <= free // 2:
                piece, rest = _divided(rest, free, size)
            if piece is not None:
                used += size(piece)
                waiting.append(piece)
                divided_at = divided_at + len(piece.text) if rest else 0
            yield Chunk(items=tuple(waiting), tokens=used, divided_at=divided_at if piece else 0)
            number, used, waiting = number + 1, 0, []
    if waiting:
        yield Chunk(items=tuple(waiting), tokens=used)


def _fits(item: Item, free: int, size: Size) -> bool:
    """Whether the item fits, without counting a long text whose beginning is already too long."""
    beginning = item.text[: max(1, free) * CHARACTERS]
    if len(beginning) < len(item.text) and size(replace(item, text=beginning)) > free:
        return False
    return size(item) <= free


def _frame(item: Item, size: Size) -> int:
    return size(replace(item, text=""))


def _without_long_calls(item: Item, free: int, size: Size) -> Item:
    """The item with calls that alone would fill a part moved into its text and cut."""
    if _frame(item, size) <= free // 2:
        return item
    return replace(item, text=f"{item.text}\n{str(item.tool_calls)[:free]}", tool_calls=())


def _divided(item: Item, free: int, size: Size) -> tuple[Item, Item | None]:
    """The item with as much of its text as fits, at least one character, and the rest, if any."""
    length = _longest(item, free, size)
    text = item.text
    if length >= len(text):
        return item, None
    earliest = length * 3 // 4
    at = max(text.rfind("\n", earliest, length), text.rfind(" ", earliest, length)) + 1
    length = at or length
    head, tail = replace(item, text=text[:length]), replace(item, text=text[length:])
    tokens = item.tokens * length // len(text)
    return replace(head, tokens=tokens), replace(tail, tokens=item.tokens - tokens, tool_calls=())


def _longest(item: Item, free: int, size: Size) -> int:
    """Characters of the longest beginning of the text that fits, roughly; at least 1."""
    frame = _frame(item, size)
    fits, guess = 0, min(len(item.text), max(1, free * CHARACTERS // 2))
    for _ in range(GUESSES):
        taken = size(replace(item, text=item.text[:guess]))
        if taken <= free:
            fits = max(fits, guess)
            if taken > free * 0.95 or guess == len(item.text):
                break
        scale = 0.98 * max(1, free - frame) / max(1, taken - frame)
        guess = max(1, min(len(item.text), int(guess * scale)))
        if guess <= fits:
            break
    while not fits:
        guess = max(1, guess // 2)
        if guess == 1 or size(replace(item, text=item.text[:guess])) <= free:
            fits = guess
    return fits


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The result of a span's finished parts."""

    draft: Draft
    through_seq: int
    """Seq of the last message that the draft covers."""
    parts: int
    """Number of finished parts."""
    divided_at: int = 0
    """Characters of the last message that the draft covers; 0: all of them."""

    def rest_of(self, items: Sequence[Item]) -> list[Item]:
        """The messages that the draft does not cover; first the rest of a divided message."""
        rest = [item for item in items if item.seq > self.through_seq]
        if not self.divided_at:
            return rest
        divided = next(item for item in items if item.seq == self.through_seq)
        text = divided.text[self.divided_at :]
        tokens = divided.tokens * len(text) // max(1, len(divided.text))
        return [replace(divided, text=text, tokens=tokens, tool_calls=()), *rest]
