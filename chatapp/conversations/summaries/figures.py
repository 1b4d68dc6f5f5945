"""The figures of all summaries by day and model, for those who review them. No one's words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any, Final

from django.db.models import Count, Q, Sum
from django.db.models.functions import TruncDate

from chatapp.models import Summary
from compression.types import SummaryStatus, Trigger

#: What the bars can show.
MEASURES: Final = ("kept", "waited", "cost", "failures", "made")
#: Models of the table.
MOST_MODELS: Final = 50
_PEOPLES = (Trigger.EDIT.value, Trigger.RESTORE.value, Trigger.CLEAR.value)
_WAITED = (Trigger.THRESHOLD.value, Trigger.OVERFLOW.value)


def figures(first: date, last: date, model: str = "") -> list[dict[str, Any]]:
    """The sums of each day and model from ``first`` to ``last``, the oldest first.

    A row's ``cost``, in US dollars, is that of its summaries and of runs that gave none; a refused
    draft of a run that succeeded is in the cost of the summary that came of it.
    """
    rows = Summary.objects.exclude(trigger__in=_PEOPLES)
    rows = rows.exclude(status=SummaryStatus.PARTIAL.value)
    if model:
        rows = rows.filter(model=model)
    refused = Q(status=SummaryStatus.REJECTED.value)
    failed = Q(status=SummaryStatus.FAILED.value) & ~Q(audit__has_key="cancelled")
    without = Q(status__in=(SummaryStatus.REJECTED.value, SummaryStatus.FAILED.value))
    found = (
        rows.annotate(day=TruncDate("created_at"))
        .filter(day__gte=first, day__lte=last)
        .values("day", "model")
        .annotate(
            made=Count("pk", filter=~without),
            measured=Count("retention"),
            retention_sum=Sum("retention"),
            waited=Sum("duration", filter=Q(trigger__in=_WAITED)),
            runs_waited_for=Count("duration", filter=Q(trigger__in=_WAITED)),
            spent=Sum("cost", filter=~without | Q(audit__final=True)),
            refused=Count("pk", filter=refused),
            failed=Count("pk", filter=failed),
        )
        .order_by("day", "model")
    )
    return [_plain(row) for row in found]


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **row,
        "retention_sum": row["retention_sum"] or 0.0,
        "waited": row["waited"] or 0.0,
        "cost": float(row["spent"] or 0),
        "failures": row["refused"] + row["failed"],
    }


def summed(rows: Iterable[Mapping[str, Any]], name: str) -> list[dict[str, Any]]:
    """The rows added up by ``day`` or ``model``.

    ``kept`` is the mean share of details and ``wait`` the mean seconds of a run that a request
    waited for; None where there is none.
    """
    sums: dict[Any, dict[str, Any]] = {}
    added = ("made", "measured", "retention_sum", "waited", "runs_waited_for", "cost", "refused")
    for row in rows:
        found = sums.setdefault(row[name], dict.fromkeys((*added, "failed", "failures"), 0))
        for one in found:
            found[one] += row[one]
    return [
        {
            name: key,
            **found,
            "kept": _mean(found["retention_sum"], found["measured"]),
            "wait": _mean(found["waited"], found["runs_waited_for"]),
        }
        for key, found in sums.items()
    ]


def _mean(total: float, number: int) -> float | None:
    return total / number if number else None


def by_model(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The models that wrote most, first."""
    return sorted(summed(rows, "model"), key=lambda row: -row["made"])[:MOST_MODELS]


def for_plot(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The days as the plot of the log of calls takes them; those without a figure left out."""
    return [{**row, "kind": "summary", "kept": row["kept"] or 0.0} for row in summed(rows, "day")]
