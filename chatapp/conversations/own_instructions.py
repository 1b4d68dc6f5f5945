"""A person's own instructions, which are part of the requests of all their conversations."""

from __future__ import annotations

from django.db.models import BigIntegerField, QuerySet

from chatapp.models import UserSettings
from compression.store.worded import worded


def own_instructions(user_id: int) -> str:
    """The instructions as they are now; empty for none."""
    return _instructions.first(owner=user_id) or ""


@worded(owner=BigIntegerField)
def _instructions(owner: int) -> QuerySet[UserSettings, str]:
    return UserSettings.objects.filter(user_id=owner).values_list("instructions", flat=True)
