"""Masking of tool results: the model sees a description, the reader every word."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from chatapp.conversations.messages.paging import for_screen
from chatapp.conversations.messages.reading import message_view
from chatapp.live.view_models import MessageView
from chatapp.models import Conversation, Message, MessageRole
from compression.database import in_database_thread


@dataclass(frozen=True, kw_only=True)
class Masked:
    """Tool results that have just been masked."""

    event_no: int
    messages: tuple[MessageView, ...]


@transaction.atomic
def mask(conversation_id: int, tokens: Mapping[int, int]) -> Masked:
    """Mask the tool results with these seqs, each at most once. Returns those that it changed.

    ``tokens``: seq → ruler tokens of the line that replaces the result, which count from now on
    wherever the conversation's tokens are added up.
    """
    row = Conversation.objects.filter(pk=conversation_id)
    row.update(event_no=F("event_no") + 1)
    event_no = row.values_list("event_no", flat=True).get()
    results = Message.objects.filter(
        conversation_id=conversation_id, role=MessageRole.TOOL, masked_at__isnull=True
    )
    for seq, count in tokens.items():
        results.filter(seq=seq).update(masked_at=Now(), token_count=count, event_no=event_no)
    changed = Message.objects.filter(conversation_id=conversation_id, event_no=event_no)
    return Masked(
        event_no=event_no,
        messages=tuple(message_view(one) for one in for_screen(changed).order_by("seq")),
    )


amask = in_database_thread(mask)
