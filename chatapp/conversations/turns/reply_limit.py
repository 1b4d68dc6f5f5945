"""The limits on a person's replies: how many at once, and how much in a day."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import connection

from chatapp.conversations.turns import spending
from chatapp.errors import TooManyReplies
from chatapp.models import Turn


def within_limit(owner_id: int) -> bool:
    """Whether one more turn may begin. Call it in the transaction that begins the turn."""
    return spending.within_limit(owner_id) and _is_one_free(owner_id)


def _is_one_free(owner_id: int) -> bool:
    if connection.features.has_select_for_update:
        # Without this lock, two turns beginning at once in two conversations both see room.
        owner = get_user_model().objects.filter(pk=owner_id)
        owner.select_for_update(no_key=True).values_list("pk").first()
    opened = Turn.objects.filter(finished_at=None, conversation__owner_id=owner_id)
    return opened.count() < settings.REPLIES_PER_USER


def require_within_limit(owner_id: int, running: int | None = None) -> None:
    """Raise DailyLimit or TooManyReplies unless one more turn may begin.

    ``running``: the person's open turns, if they were counted with the person's row locked.
    """
    spending.require_within_limit(owner_id)
    free = _is_one_free(owner_id) if running is None else running < settings.REPLIES_PER_USER
    if not free:
        raise TooManyReplies(fields={"most": settings.REPLIES_PER_USER})
