"""Read-only pages of Django's admin, on which the review of summaries is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.formats import localize
from django.utils.html import format_html
from django.utils.timezone import is_aware, localtime

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin[Any]
else:
    ModelAdmin = admin.ModelAdmin


#: The first choice of what to do with chosen rows.
CHOOSE = (("", "choose one"),)


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One line of a review page."""

    label: str
    value: Any
    url: str = ""
    """Address that the value links to, if any."""


@dataclass(frozen=True, kw_only=True)
class Listing:
    """A titled list of a review page, of which ``more`` lines were left out."""

    title: str
    lines: tuple[str, ...]
    more: int = 0


@dataclass(frozen=True, kw_only=True)
class LedgerLine:
    """One entry of a ledger in the form that the page shows."""

    id: int
    section: str
    text: str
    origin: str
    state: str
    sources: tuple[Fact, ...] = ()


def moment(at: datetime | None, otherwise: str = "") -> str:
    """A time as HTML, which a script of the host may show in the reader's time zone."""
    if at is None:
        return otherwise
    words = localize(localtime(at) if is_aware(at) else at)
    return format_html('<time datetime="{}">{}</time>', at.isoformat(), words)


def moments(field: str, name: str = "") -> Callable[[Any], str]:
    """A column of a list: the :func:`moment` of a field, which is called after it: "created"."""
    description = name or field.removesuffix("_at").replace("_", " ")

    @admin.display(description=description, ordering=field)
    def column(row: Any) -> str:
        return moment(getattr(row, field))

    # Django names the column's cells after the function.
    column.__name__ = field
    return column


def told(value: bool) -> str:
    """Yes or No for a cell of a list; Django's red cross would look like a failure."""
    return "yes" if value else "–"


class ReviewAdmin(ModelAdmin):
    """A read-only model: nothing is added, changed or deleted, neither singly nor in bulk."""

    actions = None
    # What is done with chosen rows is offered below them, once some are chosen.
    actions_on_top, actions_on_bottom = False, True
    empty_value_display = "–"
    list_per_page = 50
    show_full_result_count = False
    review_template = "admin/compression/review.html"
    object_history_template = "admin/compression/history.html"
    linked_lookups: frozenset[str] = frozenset()
    """Lookups that links to the list use, besides those of its filters."""

    class Media:
        css = {"all": ["compression/filters.css", "compression/list.css", "compression/review.css"]}

    def get_action_choices(
        self, request: HttpRequest, default_choices: Sequence[tuple[str, str]] = CHOOSE
    ) -> list[tuple[str, str]]:
        """What can be done with chosen rows, after words in place of a row of dashes."""
        return super().get_action_choices(request, list(default_choices))

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody may."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody may."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nobody may."""
        return False

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """Whether an address may filter the list by this lookup: those of filters and links only.

        Django allows every column, so that ``?draft__startswith=a`` would reveal, letter by
        letter, what needs another permission.
        """
        return lookup in self.linked_lookups or lookup.partition("__")[0] in {
            _filtered_by(one) for one in self.list_filter
        }

    def shown(self, text: str) -> str:
        """Text for display; a host overrides this to make deceptive characters visible."""
        return text

    def on_look(self, request: HttpRequest, obj: Any) -> None:
        """Called once for each request that shows one object, after the permission check."""

    def on_list(self, request: HttpRequest, rows: Sequence[Any]) -> None:
        """Called once for each request that shows a list, with the rows of its page."""

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The list. Calls ``on_list``. Raises PermissionDenied."""
        response = super().changelist_view(request, extra_context)
        shown = (getattr(response, "context_data", None) or {}).get("cl")
        if shown is not None:
            self.on_list(request, list(shown.result_list))
        return response

    def review(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        """The context of one object's page: ``facts`` and whatever else the template needs."""
        raise NotImplementedError

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """The page of one object. Raises PermissionDenied."""
        obj = self.permitted(request, object_id)
        if obj is None:
            return self._get_obj_does_not_exist_redirect(  # type: ignore[attr-defined, no-any-return]
                request, self.opts, object_id
            )
        if request.method not in {"GET", "HEAD"}:
            return self.act(request, obj)
        return self.page(request, obj)

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The record of actions on one object. Raises PermissionDenied."""
        obj = self.get_object(request, unquote(object_id))
        more = {"title": self.shown(f"History of {obj}"), **(extra_context or {})}
        return super().history_view(request, object_id, more)

    def permitted(self, request: HttpRequest, object_id: str) -> Any:
        """The object, or None when there is none. Calls ``on_look``. Raises PermissionDenied."""
        obj = self.get_object(request, unquote(object_id))
        if not self.has_view_permission(request, obj):
            raise PermissionDenied
        if obj is not None:
            self.on_look(request, obj)
        return obj

    def act(self, request: HttpRequest, obj: Any) -> HttpResponse:
        """The answer to a POST to the page. Raises PermissionDenied."""
        raise PermissionDenied

    def page(
        self,
        request: HttpRequest,
        obj: Any,
        more: Mapping[str, Any] | None = None,
        status: int = 200,
    ) -> TemplateResponse:
        """The rendered page."""
        context = {
            **self.admin_site.each_context(request),
            "title": self.shown(str(obj)),
            "opts": self.opts,
            "original": obj,
            "media": self.media,
            "has_view_permission": True,
            **self.review(request, obj),
            **(more or {}),
        }
        return TemplateResponse(request, self.review_template, context, status=status)


def _filtered_by(entry: Any) -> str:
    """The field or parameter of an entry of ``list_filter``."""
    if isinstance(entry, str):
        return entry
    return str(entry[0] if isinstance(entry, tuple) else entry.parameter_name)
