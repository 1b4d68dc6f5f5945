"""The daily use of models by a person, and its limit.

Each call is counted when it ends, since stopped replies, refused drafts of a summary and titles
take tokens too, which no turn or summary shows. Without a limit nothing is counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, time, timedelta
from decimal import Decimal

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from chatapp.errors import DailyLimit
from chatapp.models import Conversation, DailyUse
from compression.database import in_database_thread


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """Today's use."""

    tokens: int = 0
    cost: Decimal = Decimal(0)
    """US dollars, as far as the models' prices are known."""


def limited() -> bool:
    """Whether there is a limit."""
    return bool(settings.DAILY_TOKENS_PER_USER or settings.DAILY_COST_PER_USER)


def used_today(owner_id: int) -> Use:
    """The use of a person's calls since midnight in the server's time zone."""
    row = DailyUse.objects.filter(person_id=owner_id, day=timezone.localdate()).first()
    return Use(tokens=row.tokens, cost=row.cost) if row else Use()


def within_limit(owner_id: int) -> bool:
    """Whether a person may make one more call today."""
    if not limited():
        return True
    used = used_today(owner_id)
    tokens, cost = settings.DAILY_TOKENS_PER_USER, settings.DAILY_COST_PER_USER
    return (not tokens or used.tokens < tokens) and (not cost or used.cost < Decimal(str(cost)))


def require_within_limit(owner_id: int) -> None:
    """Raise DailyLimit, with the start of the next day, if the person has reached the limit."""
    if not within_limit(owner_id):
        raise DailyLimit.until(next_day(), timezone.localtime())


def next_day() -> datetime:
    """The next midnight in the server's time zone."""
    tomorrow = timezone.localdate() + timedelta(days=1)
    return timezone.make_aware(datetime.combine(tomorrow, time.min))


def conversation_within_limit(conversation_id: int) -> bool:
    """Whether the owner of a conversation may make one more call today."""
    if not limited():
        return True
    owner = Conversation.objects.filter(pk=conversation_id).values_list("owner_id", flat=True)
    owner_id = owner.first()
    return owner_id is not None and within_limit(owner_id)


@transaction.atomic
def add(conversation_id: int, *, tokens: int, cost: float | None) -> None:
    """Count a call made for a conversation, unless that no longer exists."""
    owner = Conversation.objects.filter(pk=conversation_id).values_list("owner_id", flat=True)
    owner_id = owner.first()
    if owner_id is None:
        return
    today = timezone.localdate()
    DailyUse.objects.get_or_create(person_id=owner_id, day=today)
    DailyUse.objects.filter(person_id=owner_id, day=today).update(
        tokens=F("tokens") + tokens, cost=F("cost") + Decimal(str(round(cost or 0.0, 6)))
    )


aadd = in_database_thread(add)
arequire_within_limit = in_database_thread(require_within_limit)
aconversation_within_limit = in_database_thread(conversation_within_limit)
