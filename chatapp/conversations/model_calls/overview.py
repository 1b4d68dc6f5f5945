"""Everybody's model calls in a few figures, for the front page of the admin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db.models import Count, Q, QuerySet, Sum

from chatapp.models import DailyCalls, ModelCall

#: Days of the longer of the two spans, today included.
WEEK = 7
_SUMS = ("calls", "input_tokens", "output_tokens", "cost")


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """The calls of some days, all people's together."""

    calls: int
    input_tokens: int
    output_tokens: int
    cost: Decimal
    """US dollars, as far as the models' prices are known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failures:
    """Calls of one model that ended with one error."""

    model: str
    error: str
    count: int


def spent(today: date) -> tuple[Spent, Spent]:
    """What was spent today, and in the week that ends today. One query."""
    week = DailyCalls.objects.filter(day__gt=today - timedelta(days=WEEK), day__lte=today)
    found = week.aggregate(
        **{f"week_{name}": Sum(name, default=0) for name in _SUMS},
        **{f"today_{name}": Sum(name, default=0, filter=Q(day=today)) for name in _SUMS},
    )
    return _spent(found, "today"), _spent(found, "week")


def _spent(found: Mapping[str, Any], span: str) -> Spent:
    return Spent(**{name: found[f"{span}_{name}"] for name in _SUMS})


def failures(rows: QuerySet[ModelCall], since: datetime) -> list[Failures]:
    """The failed ones of these calls since then, the most frequent first. One query."""
    failed = rows.filter(failed=True, at__gte=since).order_by()
    counts = failed.values("model", "error").annotate(count=Count("pk"))
    return [Failures(**one) for one in counts.order_by("-count", "model", "error")]
