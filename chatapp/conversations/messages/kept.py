"""The messages of requests that this process has read, each under its conversation's change number.

Whatever changes what a model sees counts one more change of the conversation in the same
transaction. So whoever has the conversation's row, from a snapshot or locked, knows by its
``event_no`` whether what was kept is still all there is. What a turn writes while it is open counts
no change: nothing is kept of a conversation with an open turn.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Q

from chatapp.context.request import StoredMessage
from chatapp.conversations.messages.measures import LastRequests, last_requests
from chatapp.conversations.messages.stored import as_values, live, tail
from chatapp.models import Conversation

#: Characters of all that is kept together, and of what is not kept at all.
MOST_CHARACTERS, TOO_LONG = 8_000_000, 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Messages:
    """What a conversation's next request is made of besides its own row and its owner's."""

    mark: tuple[int | None, ...]
    """What the row said of them: :func:`_mark`."""
    last: LastRequests
    pinned: tuple[StoredMessage, ...]
    """Pinned messages from before the boundary."""
    tail: tuple[StoredMessage, ...]
    """Live messages after the boundary."""

    @property
    def characters(self) -> int:
        """The length of the texts."""
        return sum(len(one.text) + len(one.reasoning) for one in (*self.pinned, *self.tail))


# The code is a part of the key, since no other conversation ever has it.
_kept: OrderedDict[tuple[int, UUID], Messages] = OrderedDict()
_total = 0
_lock = threading.Lock()


def messages_of(row: Conversation) -> Messages:
    """The messages of the next request. Expects ``row`` freshly read, or locked."""
    with _lock:
        known = _kept.get((row.pk, row.code))
    if known is not None and known.mark == _mark(row):
        return known
    return Messages(
        mark=_mark(row),
        last=last_requests(row),
        pinned=pinned_before(row.pk, row.compressed_through),
        tail=tuple(tail(row.pk, after_seq=row.compressed_through)),
    )


def _mark(row: Conversation) -> tuple[int | None, ...]:
    """The row's number of changes; the others change only with it, and cost nothing to compare."""
    return row.event_no, row.next_seq, row.compressed_through, row.reasoning_dropped_through


def pinned_before(conversation_id: int, boundary: int) -> tuple[StoredMessage, ...]:
    """The pinned messages up to the boundary."""
    pins = Q(seq__lte=boundary, pinned_at__isnull=False)
    # Few conversations have any, and asking that takes a third of the time.
    if not boundary or not live(conversation_id).filter(pins).exists():
        return ()
    return tuple(as_values(conversation_id, pins))


def keep(row: Conversation, messages: Messages) -> None:
    """Keep what was read. Not within a transaction that writes: what it reads may never be."""
    global _total
    if messages.characters > TOO_LONG or any(one.turn_open for one in messages.tail):
        return
    key = row.pk, row.code
    with _lock:
        _drop(key)
        _kept[key] = messages
        _total += messages.characters
        while _total > MOST_CHARACTERS:
            _drop(next(iter(_kept)))


def forget() -> None:
    """Keep nothing, for tests that write past the product."""
    with _lock:
        for key in list(_kept):
            _drop(key)


def _drop(key: tuple[int, UUID]) -> None:
    global _total
    dropped = _kept.pop(key, None)
    _total -= dropped.characters if dropped else 0
