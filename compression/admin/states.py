"""The state of a version or an attempt in one word: what became of it, or what reviewers say."""

from __future__ import annotations

from typing import Any

from django.db.models import Q

from compression.models import Review
from compression.types import SummaryStatus

_NOW = Q(status=SummaryStatus.ACTIVE.value)


def _other(status: SummaryStatus) -> Q:
    return Q(status=status.value)


#: Name -> the rows in this state, in the order in which a reviewer cares. Each row is in one.
STATES: dict[str, Q] = {
    "unseen": _NOW & Q(review__isnull=True),
    Review.SEEN.value: _NOW & Q(review=Review.SEEN.value),
    Review.NEEDS_WORK.value: _NOW & Q(review=Review.NEEDS_WORK.value),
    Review.APPROVED.value: _NOW & Q(review=Review.APPROVED.value),
    SummaryStatus.REJECTED.value: _other(SummaryStatus.REJECTED),
    SummaryStatus.FAILED.value: _other(SummaryStatus.FAILED),
    SummaryStatus.SUPERSEDED.value: _other(SummaryStatus.SUPERSEDED),
    "prepared": Q(status__in=[SummaryStatus.READY.value, SummaryStatus.PREVIEW.value]),
    SummaryStatus.DISCARDED.value: _other(SummaryStatus.DISCARDED),
}
#: Name -> the strokes of its icon, in a square of 16.
ICONS: dict[str, str] = {
    "unseen": "M8 2.5a5.5 5.5 0 1 0 0 11a5.5 5.5 0 1 0 0-11z",
    "seen": "M1.5 8s2.5-4.5 6.5-4.5S14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8z"
    "M8 6.5a1.5 1.5 0 1 0 0 3a1.5 1.5 0 1 0 0-3z",
    "needs_work": "M2.5 13.5l.8-3.2 7.6-7.6 2.4 2.4-7.6 7.6zM9.4 4.2l2.4 2.4",
    "approved": "M2.5 8.5l3.5 3.5 7.5-8",
    "rejected": "M8 2.5a5.5 5.5 0 1 0 0 11a5.5 5.5 0 1 0 0-11zM4.2 4.2l7.6 7.6",
    "failed": "M3.5 3.5l9 9M12.5 3.5l-9 9",
    "superseded": "M3 6.5h7a3 3 0 0 1 0 6H6M3 6.5l3-3M3 6.5l3 3",
    "prepared": "M8 2.5a5.5 5.5 0 1 0 0 11a5.5 5.5 0 1 0 0-11zM8 5v3l2 2",
    "discarded": "M3 8h10",
}


def state_of(row: Any) -> str:
    """The name of a row's state; its status where that is none of them."""
    if row.status == SummaryStatus.ACTIVE:
        return str(row.review or "unseen")
    if row.status in {SummaryStatus.READY, SummaryStatus.PREVIEW}:
        return "prepared"
    return str(row.status)
