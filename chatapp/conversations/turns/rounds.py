"""The writes between two rounds of a turn: calls, results, and the next reply.

As in :mod:`chatapp.conversations.turns.progress`, every write names the process that holds the
turn; a process that lost its lease changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now
from django.utils import timezone

from chatapp.conversations.messages.paging import for_screen
from chatapp.conversations.messages.views import message_view
from chatapp.live.view_models import MessageView
from chatapp.models import Conversation, Message, MessageRole, MessageStatus, Turn, TurnStatus
from compression.database import in_database_thread


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """An assistant's message that calls tools."""

    text: str
    reasoning: str
    reasoning_field: str
    """The name under which the server sent the reasoning; empty if it takes none back."""
    reasoning_tokens: int
    tool_calls: Sequence[dict[str, Any]]
    """In OpenAI's form, with our own ids."""
    tokens: int
    """Ruler tokens of the message."""
    seconds: float | None = None
    """The time that the reasoning took; None if there was none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The answer to one call."""

    call_id: str
    name: str
    text: str
    tokens: int
    """Ruler tokens of the message."""
    seconds: float
    """The time that the tool took."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A message of a running turn, as announced to viewers."""

    message_id: int
    event_no: int
    message: MessageView


def _hold(process_id: str, turn_id: int, **changes: Any) -> Conversation | None:
    """Lock the conversation and count a change of it and of its turn, which gets the ``changes``.

    None, with nothing changed, if the process does not hold the turn.
    """
    held = Turn.objects.filter(pk=turn_id, finished_at=None, lease_token=process_id)
    conversation_id = held.values_list("conversation_id", flat=True).first()
    if conversation_id is None:
        return None
    # The conversation first, as everywhere: two locks in another order would wait for each other.
    rows = Conversation.objects.filter(pk=conversation_id)
    rows.update(event_no=F("event_no") + 1, updated_at=Now())
    row = rows.get()
    if not held.update(event_no=row.event_no, **changes):
        transaction.set_rollback(True)
        return None
    return row


def _stored(row: Conversation, message_id: int) -> Stored:
    found = for_screen(Message.objects.filter(pk=message_id)).get()
    return Stored(message_id=message_id, event_no=row.event_no, message=message_view(found))


def _append(row: Conversation, turn_id: int, **fields: Any) -> Stored:
    """Store the conversation's next message. Expects the row locked."""
    message = Message.objects.create(
        conversation=row,
        seq=row.next_seq,
        turn_id=turn_id,
        event_no=row.event_no,
        created_at=timezone.now(),
        **fields,
    )
    Conversation.objects.filter(pk=row.pk).update(next_seq=row.next_seq + 1)
    return _stored(row, message.pk)


@transaction.atomic
def store_calls(process_id: str, turn_id: int, message_id: int, calls: Calls) -> Stored | None:
    """Complete the assistant's message with its calls; None if another process holds the turn."""
    row = _hold(process_id, turn_id, status=TurnStatus.TOOLS, retry_notice=None)
    if row is None:
        return None
    Message.objects.filter(pk=message_id, turn_id=turn_id).update(
        text=calls.text,
        reasoning=calls.reasoning,
        reasoning_field=calls.reasoning_field or None,
        reasoning_tokens=calls.reasoning_tokens,
        tool_calls=list(calls.tool_calls),
        token_count=calls.tokens,
        seconds=calls.seconds,
        status=MessageStatus.COMPLETE,
        event_no=row.event_no,
    )
    return _stored(row, message_id)


@transaction.atomic
def store_result(process_id: str, turn_id: int, result: Result) -> Stored | None:
    """Store the answer to a call; None if another process holds the turn, or it has ended."""
    row = _hold(process_id, turn_id)
    if row is None:
        return None
    return _append(
        row,
        turn_id,
        role=MessageRole.TOOL,
        text=result.text,
        tool_call_id=result.call_id,
        tool_name=result.name,
        token_count=result.tokens,
        seconds=result.seconds,
    )


@transaction.atomic
def begin_reply(process_id: str, turn_id: int) -> Stored | None:
    """Begin the next round's message, still empty; None if another process holds the turn."""
    row = _hold(process_id, turn_id, status=TurnStatus.WAITING)
    if row is None:
        return None
    return _append(row, turn_id, role=MessageRole.ASSISTANT, status=MessageStatus.STREAMING)


@transaction.atomic
def add_notice(process_id: str, turn_id: int, seq: int, notice: str, tokens: int) -> Stored | None:
    """Add a notice to a message of the turn, to be sent with it from now on.

    ``tokens`` are the message's ruler tokens with it. None if another process holds the turn.
    """
    row = _hold(process_id, turn_id)
    if row is None:
        return None
    message = Message.objects.get(turn_id=turn_id, seq=seq)
    message.added_context, message.token_count = notice, tokens
    message.event_no = row.event_no
    message.save(update_fields=["added_context", "token_count", "event_no"])
    return _stored(row, message.pk)


astore_calls = in_database_thread(store_calls)
astore_result = in_database_thread(store_result)
abegin_reply = in_database_thread(begin_reply)
aadd_notice = in_database_thread(add_notice)
