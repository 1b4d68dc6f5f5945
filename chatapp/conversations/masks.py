"""Marking tool results as masked: the model sees a description, the reader every word."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from chatapp.models import Conversation, Message, MessageRole
from compression.database import across


@transaction.atomic
def mask(conversation_id: int, seqs: Sequence[int]) -> None:
    """Mask the tool results with these seqs, each at most once."""
    row = Conversation.objects.filter(pk=conversation_id)
    row.update(event_no=F("event_no") + 1)
    Message.objects.filter(
        conversation_id=conversation_id,
        seq__in=seqs,
        role=MessageRole.TOOL,
        masked_at__isnull=True,
    ).update(masked_at=Now(), event_no=row.values("event_no"))


amask = across(mask)
