"""What every turn writes, from its message to its end, worded once.

What these leave out is written now and then only, and the ORM words it each time.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db.models import (
    BigIntegerField,
    CharField,
    DateTimeField,
    F,
    Field,
    QuerySet,
    TextField,
    UUIDField,
)
from django.db.models.functions import Coalesce, Now

from chatapp.models import Conversation, Message, MessageRole, MessageStatus, Turn, TurnStatus
from compression.store.worded import worded_insert, worded_update

LEASE = timedelta(seconds=30)

Changes = tuple[QuerySet[Any, Any], dict[str, Any]]


def _of_turn(*names: str) -> dict[str, Field[Any, Any]]:
    return {name: Turn._meta.get_field(name) for name in names}  # type: ignore[misc]


def _of_message(*names: str) -> dict[str, Field[Any, Any]]:
    return {name: Message._meta.get_field(name) for name in names}  # type: ignore[misc]


@worded_update(conversation=BigIntegerField, next_seq=BigIntegerField, event_no=BigIntegerField)
def allocate(conversation: int, next_seq: int, event_no: int) -> Changes:
    """Take seqs and a change number of a conversation whose row is locked; unarchive it."""
    changes = {"next_seq": next_seq, "event_no": event_no}
    rows = Conversation.objects.filter(pk=conversation)
    return rows, {**changes, "updated_at": Now(), "archived_at": None}


@worded_insert(
    conversation=BigIntegerField,
    user_message=BigIntegerField,
    started_at=DateTimeField,
    **_of_turn("model", "lease_token", "event_no"),
)
def open_turn(conversation: int, user_message: int | None, **values: Any) -> list[Turn]:
    """A turn, leased to the process ``lease_token`` that will run it."""
    lease: Any = Now() + LEASE
    return [
        Turn(
            conversation_id=conversation,
            user_message_id=user_message,
            lease_expires_at=lease,
            **values,
        )
    ]


@worded_insert(
    conversation=BigIntegerField,
    **_of_message("seq", "event_no", "created_at"),
    turn=BigIntegerField,
)
def reply(conversation: int, turn: int, **values: Any) -> list[Message]:
    """The empty reply of a turn, to a question that is stored already."""
    return [_reply(conversation, turn, **values)]


@worded_insert(
    conversation=BigIntegerField,
    turn=BigIntegerField,
    reply_seq=BigIntegerField,
    text=TextField,
    client_msg_id=UUIDField,
    **_of_message("seq", "token_count", "event_no", "created_at"),
)
def question_and_reply(
    conversation: int,
    turn: int,
    reply_seq: int,
    event_no: int,
    created_at: Any,
    **values: Any,
) -> list[Message]:
    """A turn's question and its empty reply."""
    same = {"event_no": event_no, "created_at": created_at}
    asked = Message(
        conversation_id=conversation, turn_id=turn, role=MessageRole.USER, **same, **values
    )
    return [asked, _reply(conversation, turn, seq=reply_seq, **same)]


def _reply(conversation: int, turn: int, **values: Any) -> Message:
    return Message(
        conversation_id=conversation,
        turn_id=turn,
        role=MessageRole.ASSISTANT,
        status=MessageStatus.STREAMING,
        **values,
    )


def first_tokens(turns: QuerySet[Turn]) -> Changes:
    """Note the time of the first pieces of these turns' replies."""
    return turns.filter(finished_at=None), {
        "status": TurnStatus.STREAMING,
        "first_token_at": Coalesce(F("first_token_at"), Now()),
        "retry_notice": None,
    }


@worded_update(turn=BigIntegerField)
def first_token(turn: int) -> Changes:
    """The same of one turn."""
    return first_tokens(Turn.objects.filter(pk=turn))


@worded_update(conversation=BigIntegerField, seen=BigIntegerField, event_no=BigIntegerField)
def number(conversation: int, seen: int, event_no: int) -> Changes:
    """Count a stored change of a conversation that has not changed since it was ``seen``."""
    rows = Conversation.objects.filter(pk=conversation, event_no=seen)
    return rows, {"event_no": event_no, "updated_at": Now()}


@worded_update(
    turn=BigIntegerField,
    process=CharField,
    **_of_turn(
        *("status", "error", "error_code", "finish_reason", "prompt_tokens", "completion_tokens"),
        *("cached_tokens", "cost", "manifest", "event_no"),
    ),
)
def end_turn(turn: int, process: str, **values: Any) -> Changes:
    """Give a turn that a process holds its one terminal status."""
    held = Turn.objects.filter(pk=turn, finished_at=None, lease_token=process)
    return held, {**values, "retry_notice": None, "finished_at": Now()}


@worded_update(
    message=BigIntegerField,
    turn=BigIntegerField,
    **_of_message(
        *("text", "reasoning", "reasoning_field", "reasoning_tokens", "seconds", "token_count"),
        *("status", "event_no"),
    ),
)
def end_message(message: int, turn: int, **values: Any) -> Changes:
    """Store the whole text of a turn's reply that is being written."""
    rows = Message.objects.filter(pk=message, turn_id=turn, status=MessageStatus.STREAMING)
    return rows, values
