"""A conversation before a message is accepted: its row is locked, and then all else is read.

In two statements, since PostgreSQL answers a locking statement from before its wait: what it asked
besides would be known from before the message that it waited for.
"""

from __future__ import annotations

from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection
from django.db.models import (
    BigIntegerField,
    Count,
    Exists,
    QuerySet,
    Subquery,
    UUIDField,
)

from chatapp.conversations.ownership import parse_code
from chatapp.conversations.tools.servers import allowed
from chatapp.errors import NotFound
from chatapp.models import Conversation, Message, Turn, UserSettings
from compression.store.worded import worded


class Standing(NamedTuple):
    """What is known of a conversation whose row is locked."""

    repeated: int | None
    """The message that came with the same ``client_msg_id`` before."""
    opened: int | None
    """The open turn."""
    running: int | None
    """How many turns of the owner are open, in all conversations; None for none."""
    instructions: str | None
    """The owner's own instructions."""
    tool_servers: bool
    """Whether there is a tool server that the owner may use."""


@worded(owner=BigIntegerField, code=UUIDField)
def _locked(owner: int, code: UUID) -> QuerySet[Conversation]:
    return _mine(owner, code).select_for_update()


@worded(owner=BigIntegerField, code=UUIDField)
def _locked_with_owner(owner: int, code: UUID) -> QuerySet[Conversation]:
    if not connection.features.has_select_for_update:
        return _mine(owner, code)
    # Otherwise two turns that begin at once, in two conversations, would both see room for one.
    # What refers to the rows is no change of them, and need not wait.
    rows = _mine(owner, code).select_related("owner")
    return rows.select_for_update(of=("self", "owner"), no_key=True)


def _mine(owner: int, code: UUID) -> QuerySet[Conversation]:
    return Conversation.objects.filter(owner_id=owner, code=code, deleted_at=None)


@worded(conversation=BigIntegerField, owner=BigIntegerField, client_msg_id=UUIDField)
def _standing(conversation: int, owner: int, client_msg_id: UUID) -> QuerySet[Any, tuple[Any, ...]]:
    sent = Message.objects.filter(conversation_id=conversation, client_msg_id=client_msg_id)
    opened = Turn.objects.filter(finished_at=None)
    here = opened.filter(conversation_id=conversation)
    theirs = opened.filter(conversation__owner_id=owner).values("conversation__owner")
    settings = UserSettings.objects.filter(user_id=owner)
    rows: QuerySet[Any, tuple[Any, ...]] = Conversation.objects.filter(pk=conversation).values_list(
        Subquery(sent.values("pk")[:1]),
        Subquery(here.values("pk")[:1]),
        Subquery(theirs.annotate(count=Count("pk")).values("count")),
        Subquery(settings.values("instructions")[:1]),
        Exists(allowed(owner)),
    )
    return rows


def locked(user_id: int, code: str, *, with_owner: bool = False) -> Conversation:
    """The person's conversation, its row locked until the transaction ends. Raises NotFound.

    ``with_owner`` locks the person's row too, so that their open turns can be counted.
    """
    lock = _locked_with_owner if with_owner else _locked
    row = lock.first(owner=user_id, code=parse_code(code))
    if row is None:
        raise NotFound
    return row


def standing(row: Conversation, client_msg_id: UUID) -> Standing:
    """What is known of the conversation. Expects its row, and its owner's, locked."""
    found = _standing(conversation=row.pk, owner=row.owner_id, client_msg_id=client_msg_id)
    return Standing(*found[0])
