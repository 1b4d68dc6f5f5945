"""The sums of a person's calls: by day, by model, by kind, and all together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet, Sum

from chatapp.conversations.model_calls.listing import CallFilter
from chatapp.models import DailyCalls
from compression.database import in_database_thread, snapshot

#: Lines of a table of sums; the rest has too little in it to be told apart.
MOST_LINES = 30
_SUMS = ("calls", "errors", "input_tokens", "output_tokens", "cached_tokens", "cost", "seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Sums of the days and facets that were asked for."""

    all: Mapping[str, Any]
    days: list[dict[str, Any]]
    """By ``day`` and ``kind``, oldest first."""
    models: list[dict[str, Any]]
    kinds: list[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facets:
    """The values that occur in a person's calls, for the choices of the filters."""

    projects: list[str]
    kinds: list[str]
    models: list[str]


@snapshot()
def totals(user_id: int, wanted: CallFilter) -> tuple[Totals, Facets]:
    """The sums of the person's calls, as far as the filter speaks of days and facets."""
    own = DailyCalls.objects.filter(owner_id=user_id)
    rows = own.filter(wanted.facets())
    if wanted.first:
        rows = rows.filter(day__gte=wanted.first)
    if wanted.last:
        rows = rows.filter(day__lte=wanted.last)
    sums = {name: Sum(name, default=0) for name in _SUMS}
    days = rows.values("day", "kind").annotate(**sums).order_by("day", "kind")
    found = Totals(
        all=_plain(rows.aggregate(**sums)),
        days=[_plain(row) for row in days],
        models=_largest(rows, "model"),
        kinds=_largest(rows, "kind"),
    )
    return found, Facets(
        projects=_values(own, "project"),
        kinds=_values(own, "kind"),
        models=_values(own, "model"),
    )


def _largest(rows: QuerySet[DailyCalls], name: str) -> list[dict[str, Any]]:
    sums = {one: Sum(one, default=0) for one in _SUMS}
    found = rows.values(name).annotate(**sums).order_by("-input_tokens", name)
    return [{"name": row[name], **_plain(row)} for row in found[:MOST_LINES]]


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """The sums with dollars as a number that JSON has."""
    return {**row, "cost": float(row["cost"])}


def _values(rows: QuerySet[DailyCalls], name: str) -> list[str]:
    return list(rows.order_by(name).values_list(name, flat=True).distinct()[:500])


atotals = in_database_thread(totals)
