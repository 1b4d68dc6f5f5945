"""The chat's models as the host of compression, with as little of the chat as possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, TypeVar, cast

from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from chatapp.models import Conversation, Message, Summary, Turn
from compression.database import in_database_thread
from compression.tokens import CharacterCounter
from compression.types import Item, Role, Sizes

R = TypeVar("R")
COUNTER = CharacterCounter()
SIZES = Sizes(window=4000, reserve=1000, fixed=100, calibration=1.0)
"""B is 3000 tokens; the cap of a summary 300, the landing 1350, the tail 600."""


class MessageTranscript:
    """Compression's view of the chat's messages."""

    def items(
        self, conversation_id: int, *, after_seq: int, through_seq: int | None = None
    ) -> Sequence[Item]:
        rows = Message.objects.filter(
            conversation_id=conversation_id, seq__gt=after_seq, superseded_at=None
        ).select_related("turn")
        if through_seq is not None:
            rows = rows.filter(seq__lte=through_seq)
        return [
            Item(
                seq=row.seq,
                role=cast(Role, row.role),
                text=row.text,
                tokens=row.token_count,
                open=row.turn is not None and row.turn.finished_at is None,
                pinned=row.pinned_at is not None,
            )
            for row in rows.order_by("seq")
        ]


TRANSCRIPT = MessageTranscript()


def new_conversation(messages: int = 0, *, words: int = 60, owner: str = "alice") -> Conversation:
    """A conversation of so many messages, user and assistant in turn, stored at once."""
    user, _ = get_user_model().objects.get_or_create(username=owner)
    conversation = Conversation.objects.create(owner=user, next_seq=messages + 1)
    Message.objects.bulk_create(
        _message(conversation, seq, "user" if seq % 2 else "assistant", words=words)
        for seq in range(1, messages + 1)
    )
    return conversation


def _message(
    conversation: Conversation,
    seq: int,
    role: str,
    text: str = "",
    *,
    words: int = 60,
    turn: Any = None,
) -> Message:
    said = text or f"m{seq} " + "word " * words
    return Message(
        conversation=conversation,
        seq=seq,
        role=role,
        text=said,
        turn=turn,
        token_count=COUNTER.count(said),
        created_at=timezone.now(),
    )


def add(
    conversation: Conversation, role: str, text: str = "", *, words: int = 60, turn: Any = None
) -> Message:
    """The next message, stored as the chat does it: seq and row in one transaction."""
    with transaction.atomic():
        Conversation.objects.filter(pk=conversation.pk).update(next_seq=F("next_seq") + 1)
        seq = Conversation.objects.values_list("next_seq", flat=True).get(pk=conversation.pk) - 1
        message = _message(conversation, seq, role, text, words=words, turn=turn)
        message.save()
        return message


def open_turn(conversation: Conversation) -> Turn:
    return Turn.objects.create(conversation=conversation, status="streaming")


def expire_lease(conversation: Conversation) -> None:
    """As if the lease's time had passed."""
    Conversation.objects.filter(pk=conversation.pk).update(
        compression_lease_expires_at=timezone.now() - timedelta(minutes=1)
    )


def supersede(conversation: Conversation, seq: int) -> None:
    """As an edit or a regeneration does to what it takes back."""
    Message.objects.filter(conversation=conversation, seq=seq).update(superseded_at=timezone.now())


def stored(conversation: Conversation) -> Conversation:
    return Conversation.objects.get(pk=conversation.pk)


def rows(conversation: Conversation) -> list[Summary]:
    return list(Summary.objects.filter(conversation=conversation).order_by("pk"))


async def database(function: Callable[..., R], *args: Any, **kwargs: Any) -> R:
    """A synchronous helper from an async test."""
    return await in_database_thread(function)(*args, **kwargs)
