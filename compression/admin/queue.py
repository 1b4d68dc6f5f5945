"""The queue of what is to be reviewed: why a row is in it, and how many there are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib import admin
from django.db.models import Count, F, Q, QuerySet
from django.db.models.lookups import Exact
from django.http import HttpRequest

from compression import conf
from compression.models import Review
from compression.types import SummaryStatus, Trigger

LOW_RETENTION = 1 / 3
"""The share of details kept below which a summary is in the queue for it: no summary of a long span
has room for most of them."""
SAMPLED = 20
"""Of so many ordinary summaries one is in the queue: those whose keys are multiples of it."""
WAITING, UNSEEN = "waiting", "unseen"
_PEOPLES = (Trigger.EDIT.value, Trigger.RESTORE.value, Trigger.CLEAR.value)


@dataclass(frozen=True, kw_only=True)
class Reason:
    """A part of the queue as the list shows it."""

    name: str
    """Its value in the address."""
    label: str
    count: int
    chosen: bool


def undecided() -> Q:
    """Rows of which no reviewer has said anything."""
    return Q(review__isnull=True) | Q(review=Review.SEEN.value)


def _reviewable() -> Q:
    """The summaries that models are sent now, and drafts that were refused."""
    there = conf.conversation_model()
    some_text = Q(restored_from__isnull=True) | Q(restored_from__gt=0)
    now = Q(status=SummaryStatus.ACTIVE.value) & some_text & ~Q(trigger=Trigger.CLEAR.value)
    return (now | _refused()) & Q(
        conversation__in=there._default_manager.filter(there.compressible())
    )


def _refused() -> Q:
    return Q(status=SummaryStatus.REJECTED.value)


def _degraded() -> Q:
    return Q(degraded=True) | Q(audit__has_key="extracted")


def _ordinary() -> Q:
    """Summaries by a model that nothing else brings into the queue."""
    kept = Q(retention__isnull=True) | Q(retention__gte=LOW_RETENTION)
    return ~_refused() & ~_degraded() & kept & Q(author__isnull=True)


def _reasons() -> dict[str, tuple[str, Q]]:
    """Name → label and condition, in the order of the page."""
    return {
        WAITING: ("all", Q()),
        UNSEEN: ("not yet seen", Q(review__isnull=True)),
        "degraded": ("degraded", _degraded()),
        "low": ("little kept", Q(retention__lt=LOW_RETENTION)),
        "refused": ("refused drafts", _refused()),
        "edited": (
            "edited by a person",
            Q(author__isnull=False) & (Q(trigger=Trigger.EDIT.value) | ~Q(trigger__in=_PEOPLES)),
        ),
        "sampled": ("sampled", _ordinary() & Q(Exact(F("pk") % SAMPLED, 0))),
    }


def queued(rows: QuerySet[Any], reason: str = WAITING) -> QuerySet[Any]:
    """The rows that wait for a reviewer for this reason; all rows if there is no such reason."""
    _, condition = _reasons().get(reason, ("", None))
    if condition is None:
        return rows
    return rows.filter(_reviewable(), undecided(), condition)


def counted(rows: QuerySet[Any], chosen: str) -> list[Reason]:
    """The reasons with the number of rows of each, in one query."""
    reasons = _reasons()
    counts = queued(rows).aggregate(
        **{
            f"number_{name}": Count("pk", filter=condition) if condition else Count("pk")
            for name, (_, condition) in reasons.items()
        }
    )
    return [
        Reason(name=name, label=label, count=counts[f"number_{name}"], chosen=name == chosen)
        for name, (label, _) in reasons.items()
    ]


class QueueFilter(admin.SimpleListFilter):
    """A filter by the reason why a summary is to be reviewed; the links stand above the list."""

    title = "queue"
    parameter_name = "queue"
    template = "admin/compression/above.html"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """The reasons."""
        return [(name, label) for name, (label, _) in _reasons().items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """The rows that wait for the chosen reason; all if none is chosen."""
        return queued(queryset, self.value() or "")
