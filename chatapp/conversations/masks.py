"""Marking tool results as masked: the model sees a description, the reader every word."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from chatapp.models import Conversation, Message, MessageRole
from compression.database import across


@transaction.atomic
def mask(conversation_id: int, tokens: Mapping[int, int]) -> None:
    """Mask the tool results with these seqs, each at most once.

    ``tokens``: by seq, ruler tokens of what the model is sent in a result's place from now on;
    every sum of a conversation's tokens goes by them.
    """
    row = Conversation.objects.filter(pk=conversation_id)
    row.update(event_no=F("event_no") + 1)
    results = Message.objects.filter(
        conversation_id=conversation_id, role=MessageRole.TOOL, masked_at__isnull=True
    )
    for seq, count in tokens.items():
        results.filter(seq=seq).update(
            masked_at=Now(), token_count=count, event_no=row.values("event_no")
        )


amask = across(mask)
