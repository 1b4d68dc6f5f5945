"""The filters of the chat's lists in the admin, each a chip above its list."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone

from chatapp.conversations.access_log import PAGES
from chatapp.rendering.words.labels import kind_label
from compression.admin import CHIP, EitherFilter, ShownValuesFilter

_DAYS = {"day": 1, "week": 7, "month": 30}


class DegradedFilter(EitherFilter):
    """A filter by whether the active summary is an extract, written without a model."""

    title = "summary by extract"
    parameter_name = "degraded"

    def either(self) -> tuple[Q, Q]:
        """By the list's annotation, which is null without a summary: that is neither."""
        return Q(active_degraded=True), Q(active_degraded=False)


class DeletedFilter(EitherFilter):
    """A filter by whether the owner has deleted the conversation."""

    title = "deleted"
    parameter_name = "deleted"

    def either(self) -> tuple[Q, Q]:
        """Deleted or not."""
        return Q(deleted_at__isnull=False), Q(deleted_at__isnull=True)


class LooksFilter(EitherFilter):
    """A filter by whether somebody looked, or changed something."""

    title = "looks or changes"
    parameter_name = "looks"
    choice_words = ("looks", "changes")

    def either(self) -> tuple[Q, Q]:
        """The record of a look names one of the pages."""
        return Q(what__in=PAGES), ~Q(what__in=PAGES)


class WhenFilter(admin.SimpleListFilter):
    """A filter of rows with a time ``at`` by how long ago that was."""

    title = "when"
    parameter_name = "when"
    template = CHIP

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """The spans of time."""
        return [
            ("day", "the last 24 hours"),
            ("week", "the last 7 days"),
            ("month", "the last 30 days"),
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """The rows of the chosen span."""
        days = _DAYS.get(self.value() or "")
        if days is None:
            return queryset
        return queryset.filter(at__gte=timezone.now() - timedelta(days=days))


class KindFilter(ShownValuesFilter):
    """A filter by what a call was for, in the words of its column."""

    heading = "what for"

    def shown(self, value: str) -> str:
        """The kind in words."""
        return kind_label(value)
