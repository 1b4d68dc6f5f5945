"""The writes of a running turn: checkpoints, leases, and the one terminal status.

Every write names the process that holds the turn; a process that lost its lease changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import connection, transaction
from django.db.models import Count, F, Sum
from django.db.models.functions import Now

from chatapp.conversations.messages.stored import live
from chatapp.conversations.messages.views import ended_turn
from chatapp.conversations.turns import statements
from chatapp.conversations.turns.statements import LEASE
from chatapp.live.view_models import MessageView, TurnView
from chatapp.models import Conversation, Message, MessageStatus, Turn, TurnStatus
from compression.database import in_database_thread

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """The text of a stream so far."""

    message_id: int
    turn: int
    text: str
    reasoning: str
    seconds: float | None = None
    """The time that the reasoning took, once it is over."""
    first: bool = False
    """Nothing of the reply was stored before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The end of a turn."""

    status: TurnStatus
    text: str = ""
    reasoning: str = ""
    reasoning_field: str = ""
    """The name under which the server sent the reasoning; empty if it takes none back."""
    reasoning_tokens: int = 0
    tokens: int = 0
    """Ruler tokens of the reply."""
    seconds: float | None = None
    """The time that the reasoning took; None if there was none."""
    error: dict[str, Any] | None = None
    finish_reason: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    cost: float | None = None
    """Sums over the turn's calls of the model; None while no call has reported any."""
    manifest: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """An ended turn, as announced to viewers."""

    conversation_id: int
    event_no: int
    turn: TurnView
    message: MessageView | None


# Both databases name the columns of VALUES alike. One statement for all texts, because at each
# statement a thread waits for the interpreter, which a busy event loop gives up every 5 ms.
_CHECKPOINT = """
    UPDATE chatapp_message SET text = grown.column2, reasoning = grown.column3,
        seconds = CAST(grown.column4 AS double precision)
    FROM (VALUES {rows}) AS grown
    WHERE chatapp_message.id = grown.column1 AND chatapp_message.status = 'streaming'
"""


@transaction.atomic
def checkpoint(checkpoints: Sequence[Checkpoint]) -> set[int]:
    """Store the texts of streams. Returns the ids of messages that are no longer streaming.

    Those are not changed: another process ended their turns, and their final text is stored. For
    200 streams of 1,000 characters it takes 1 ms on SQLite and 10 ms on PostgreSQL; 1 and 4 ms of
    that are work of this process.
    """
    values = [
        part
        for one in checkpoints
        for part in (one.message_id, one.text, one.reasoning, one.seconds)
    ]
    statement = _CHECKPOINT.format(rows=", ".join(["(%s, %s, %s, %s)"] * len(checkpoints)))
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        stored = cursor.rowcount
    first_tokens([one.turn for one in checkpoints if one.first])
    if stored == len(checkpoints):
        return set()
    messages = {one.message_id for one in checkpoints}
    streaming = Message.objects.filter(pk__in=messages, status=MessageStatus.STREAMING)
    return messages - set(streaming.values_list("pk", flat=True))


def renew(process_id: str, turn_ids: Sequence[int]) -> set[int]:
    """Renew this process's leases. Returns the turns that it no longer holds."""
    mine = Turn.objects.filter(
        pk__in=turn_ids, lease_token=process_id, finished_at=None, lease_expires_at__gt=Now()
    )
    mine.update(lease_expires_at=Now() + LEASE)
    return set(turn_ids) - set(mine.values_list("pk", flat=True))


def stops_requested(turn_ids: Sequence[int]) -> list[int]:
    """The turns among these that somebody asked to stop."""
    return list(
        Turn.objects.filter(pk__in=turn_ids, stop_requested_at__isnull=False).values_list(
            "pk", flat=True
        )
    )


def store_retry_notice(turn_id: int, error: dict[str, Any]) -> None:
    """Store why a reply is late; its first piece or the turn's end clears that."""
    Turn.objects.filter(pk=turn_id, finished_at=None).update(retry_notice=error)


def first_tokens(turn_ids: Sequence[int]) -> None:
    """Note the time of the first pieces of these turns' replies."""
    if len(turn_ids) == 1:
        statements.first_token(turn=turn_ids[0])
    elif turn_ids:
        # One statement for all, as above.
        turns, changes = statements.first_tokens(Turn.objects.filter(pk__in=turn_ids))
        turns.update(**changes)


def set_truncated(conversation_id: int, through: int) -> None:
    """Leave the messages up to ``through`` out of requests."""
    rows = Conversation.objects.filter(pk=conversation_id)
    rows.update(truncated_through=through, event_no=F("event_no") + 1)
    left_out = live(conversation_id).filter(
        seq__gt=rows.values("compressed_through")[:1], seq__lte=through
    )
    found = left_out.aggregate(count=Count("pk"), tokens=Sum("token_count"))
    logger.warning(
        "Conversation %d: %d messages with %d tokens are left out of requests.",
        conversation_id,
        found["count"],
        found["tokens"] or 0,
    )


def drop_reasoning(conversation_id: int) -> None:
    """Leave the model's reasoning so far out of every later request."""
    Conversation.objects.filter(pk=conversation_id).update(
        event_no=F("event_no") + 1, **Conversation.without_reasoning()
    )


def _number(conversation_id: int) -> int:
    """Count one more stored change of the conversation, whose row stays locked."""
    Conversation.objects.filter(pk=conversation_id).update(
        event_no=F("event_no") + 1, updated_at=Now()
    )
    return Conversation.objects.values_list("event_no", flat=True).get(pk=conversation_id)


_ENDED_WELL = {TurnStatus.COMPLETE, TurnStatus.TRUNCATED, TurnStatus.FILTERED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A conversation as a process saw it last."""

    conversation_id: int
    event_no: int


def _number_after(seen: Seen | None, turn_id: int) -> tuple[int, int] | None:
    """Count one more stored change of a turn's conversation, whose row stays locked.

    Returns the conversation and the number; None if there is no such turn. Nothing is read if
    nothing has changed since the conversation was ``seen``.
    """
    if seen is not None:
        event_no = seen.event_no + 1
        if statements.number(
            conversation=seen.conversation_id, seen=seen.event_no, event_no=event_no
        ):
            return seen.conversation_id, event_no
    found = Turn.objects.filter(pk=turn_id).values_list("conversation_id", flat=True)
    conversation_id = found.first()
    return None if conversation_id is None else (conversation_id, _number(conversation_id))


@transaction.atomic
def finish(
    process_id: str, turn_id: int, message_id: int, ending: Ending, *, seen: Seen | None = None
) -> Ended | None:
    """Give a turn its one terminal status; None if it had one or another process holds it.

    ``seen`` spares looking for its conversation.
    """
    numbered = _number_after(seen, turn_id)
    if numbered is None:
        return None
    conversation_id, event_no = numbered
    changed = statements.end_turn(
        turn=turn_id,
        process=process_id,
        status=ending.status,
        error=ending.error,
        error_code=(ending.error or {}).get("code", ""),
        finish_reason=ending.finish_reason[:64],
        prompt_tokens=ending.prompt_tokens,
        completion_tokens=ending.completion_tokens,
        cached_tokens=ending.cached_tokens,
        cost=ending.cost,
        manifest=ending.manifest,
        event_no=event_no,
    )
    if not changed:
        transaction.set_rollback(True)
        return None
    _end_message(turn_id, message_id, ending, event_no)
    return _ended(turn_id, conversation_id, event_no)


def _end_message(turn_id: int, message_id: int, ending: Ending, event_no: int) -> None:
    """Store the whole text of the reply."""
    well = ending.status in _ENDED_WELL
    # A message that called tools is complete already, and a turn may end while they run.
    written = statements.end_message(
        message=message_id,
        turn=turn_id,
        text=ending.text,
        reasoning=ending.reasoning,
        reasoning_field=ending.reasoning_field or None,
        reasoning_tokens=ending.reasoning_tokens,
        seconds=ending.seconds,
        token_count=ending.tokens,
        status=MessageStatus.COMPLETE if well and ending.text.strip() else MessageStatus.PARTIAL,
        event_no=event_no,
    )
    if not (well and written):
        streaming = Message.objects.filter(turn_id=turn_id, status=MessageStatus.STREAMING)
        # A next round's reply whose beginning was stored while the turn was being stopped.
        streaming.update(status=MessageStatus.PARTIAL, event_no=event_no)


def _ended(turn_id: int, conversation_id: int, event_no: int) -> Ended:
    turn, message = ended_turn(turn_id)
    return Ended(conversation_id=conversation_id, event_no=event_no, turn=turn, message=message)


INTERRUPTED = "interrupted"


def interruption(*, kept: bool) -> dict[str, Any]:
    """The error of a reply whose process died; ``kept``: it had text, which is stored."""
    return {
        "code": INTERRUPTED,
        "message": "The server stopped while this reply was written. What was stored of it is kept."
        if kept
        else "The server stopped before the reply began. Your message is kept.",
        "retryable": True,
        "retry_after": None,
        "fields": {},
        "partial_kept": kept,
    }


def sweep(count: Callable[[str], int]) -> list[Ended]:
    """End the turns whose process died: status interrupted, text kept.

    ``count`` gives the ruler tokens of a text, message overhead included.
    """
    expired = Turn.objects.filter(finished_at=None, lease_expires_at__lt=Now())
    return [
        ended
        for turn_id, conversation_id in expired.values_list("pk", "conversation_id")
        if (ended := _interrupt(turn_id, conversation_id, count)) is not None
    ]


def expire_open_turns() -> None:
    """Make the next sweep end every open turn, when no process lives that could run one."""
    Turn.objects.filter(finished_at=None).update(lease_expires_at=Now() - LEASE)


@transaction.atomic
def _interrupt(turn_id: int, conversation_id: int, count: Callable[[str], int]) -> Ended | None:
    event_no = _number(conversation_id)
    streaming = Message.objects.filter(turn_id=turn_id, status=MessageStatus.STREAMING)
    called = Message.objects.filter(turn_id=turn_id).exclude(tool_calls=[])
    texts = streaming.values_list("text", flat=True)
    kept = any(text.strip() for text in texts) or called.exists()
    changed = Turn.objects.filter(pk=turn_id, finished_at=None, lease_expires_at__lt=Now()).update(
        status=TurnStatus.INTERRUPTED,
        error=interruption(kept=kept),
        error_code=INTERRUPTED,
        retry_notice=None,
        finished_at=Now(),
        event_no=event_no,
    )
    if not changed:
        transaction.set_rollback(True)
        return None
    for message in streaming:
        message.status, message.event_no = MessageStatus.PARTIAL, event_no
        message.token_count = count(message.text)
        message.save(update_fields=["status", "event_no", "token_count"])
    return _ended(turn_id, conversation_id, event_no)


acheckpoint = in_database_thread(checkpoint, lane="background")
arenew = in_database_thread(renew, lane="background")
astops_requested = in_database_thread(stops_requested, lane="background")
asweep = in_database_thread(sweep, lane="background")
astore_retry_notice = in_database_thread(store_retry_notice, lane="background")
aset_truncated = in_database_thread(set_truncated)
adrop_reasoning = in_database_thread(drop_reasoning)
afinish = in_database_thread(finish)
