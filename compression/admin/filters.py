"""The filters of the lists in the admin. They show as chips above the list."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from compression.admin.states import STATES
from compression.store.rows import free

CHIP = "admin/compression/filter.html"


class EitherFilter(admin.SimpleListFilter):
    """A filter with two choices, ``yes`` and ``no`` in the address."""

    template = CHIP
    choice_words = ("yes", "no")

    def either(self) -> tuple[Q, Q]:
        """The conditions of the two choices."""
        raise NotImplementedError

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """The two choices."""
        return list(zip(("yes", "no"), self.choice_words, strict=True))

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """The chosen rows; all if nothing is chosen."""
        chosen = dict(zip(("yes", "no"), self.either(), strict=True))
        return queryset.filter(chosen.get(self.value() or "", Q()))


class RunningFilter(EitherFilter):
    """Conversations that are being compressed now, by the database's clock."""

    title = "compression"
    parameter_name = "running"
    choice_words = ("running", "not running")

    def either(self) -> tuple[Q, Q]:
        """With an unexpired lease, or without."""
        return ~free(), free()


class ShownValuesFilter(admin.AllValuesFieldListFilter):
    """A filter by existing values, with hidden characters made visible as elsewhere."""

    template = CHIP
    heading = ""
    """The filter's name, where it is not the field's."""

    def __init__(
        self, field: Any, request: Any, params: Any, model: Any, model_admin: Any, field_path: str
    ) -> None:
        super().__init__(field, request, params, model, model_admin, field_path)
        self.title = self.heading or self.title
        self._shown = model_admin.shown

    def shown(self, value: str) -> str:
        """The words of a value."""
        return str(self._shown(value))

    def choices(self, changelist: Any) -> Iterator[Any]:
        """One line per value; an empty one is named, since a link needs words."""
        for choice in super().choices(changelist):
            yield {**choice, "display": self.shown(str(choice["display"])) or "(empty)"}


class WriterFilter(ShownValuesFilter):
    """A filter by the model that wrote a version."""

    heading = "written by"


class CauseFilter(admin.ChoicesFieldListFilter):
    """A filter by the cause of a version, in the page's words."""

    template = CHIP

    def __init__(
        self, field: Any, request: Any, params: Any, model: Any, model_admin: Any, field_path: str
    ) -> None:
        super().__init__(field, request, params, model, model_admin, field_path)
        self.title = "cause"
        self._words = model_admin.words

    def choices(self, changelist: Any) -> Iterator[Any]:
        """One line for all, then one for each choice."""
        first, *rest = super().choices(changelist)
        yield first
        for choice in rest:
            yield {**choice, "display": self._words(self.field_path, str(choice["display"]))}


class StateFilter(admin.SimpleListFilter):
    """A filter by the state of a row, in the words of its column."""

    title = "state"
    parameter_name = "state"
    template = CHIP

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """The states."""
        return [(name, model_admin.state_words(name)) for name in STATES]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """The rows in the chosen state; all if there is no such state."""
        return queryset.filter(STATES.get(self.value() or "", Q()))
