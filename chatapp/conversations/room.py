"""How many replies are written for one person at once, in all conversations and processes."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import connection

from chatapp.errors import TooManyReplies
from chatapp.models import Turn


def has_room(owner_id: int) -> bool:
    """Whether one more turn may begin; part of the transaction that begins it."""
    if connection.features.has_select_for_update:
        # Else two that begin at once, in two conversations, do not see each other.
        owner = get_user_model().objects.filter(pk=owner_id)
        owner.select_for_update(no_key=True).values_list("pk").first()
    opened = Turn.objects.filter(finished_at=None, conversation__owner_id=owner_id)
    return opened.count() < settings.REPLIES_PER_USER


def require_room(owner_id: int) -> None:
    """Raises TooManyReplies."""
    if not has_room(owner_id):
        raise TooManyReplies(fields={"most": settings.REPLIES_PER_USER})
