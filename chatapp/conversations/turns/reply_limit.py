"""The limit on replies for a person: how many at once, and how much in a day."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import connection

from chatapp.conversations.turns import spending
from chatapp.errors import TooManyReplies
from chatapp.models import Turn


def within_limit(owner_id: int) -> bool:
    """True where one more turn may begin; part of the transaction that begins it."""
    return spending.within_limit(owner_id) and _is_one_free(owner_id)


def _is_one_free(owner_id: int) -> bool:
    if connection.features.has_select_for_update:
        # Else two that begin at once, in two conversations, do not see each other.
        owner = get_user_model().objects.filter(pk=owner_id)
        owner.select_for_update(no_key=True).values_list("pk").first()
    opened = Turn.objects.filter(finished_at=None, conversation__owner_id=owner_id)
    return opened.count() < settings.REPLIES_PER_USER


def require_within_limit(owner_id: int) -> None:
    """The same check as an error: raises DailyLimit, TooManyReplies."""
    spending.require_within_limit(owner_id)
    if not _is_one_free(owner_id):
        raise TooManyReplies(fields={"most": settings.REPLIES_PER_USER})
