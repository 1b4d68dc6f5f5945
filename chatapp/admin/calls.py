"""The activity log in the admin: everybody's calls, each look at one of another person recorded."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone

from chatapp import wiring
from chatapp.activity.reading import line_at
from chatapp.admin.conversations import Shown
from chatapp.admin.filters import KindFilter, WhenFilter
from chatapp.admin.links import conversation_page, may_read_messages
from chatapp.conversations.access_log import record_access
from chatapp.conversations.model_calls.listing import line_of
from chatapp.conversations.model_calls.overview import failures, spent
from chatapp.models import ModelCall
from chatapp.rendering.words.labels import kind_label
from chatapp.templatetags.calls import call_error
from chatapp.text.safety import visible
from compression.admin import Fact, ShownValuesFilter, moment, moments, told

#: Characters of a request or a reply on a page.
MOST_SHOWN = 200_000
#: Lines of errors on the front page.
MOST_FAILURES = 5


def _counted(field: str, name: str) -> Callable[[ModelCall], str]:
    """A column of the list: a count of tokens, grouped; nothing if the server told none."""

    @admin.display(description=name, ordering=field)
    def column(call: ModelCall) -> str:
        count = getattr(call, field)
        return "" if count is None else f"{count:,}"

    # Django names the column's cells after the function.
    column.__name__ = field
    return column


@admin.register(ModelCall)
class ModelCallAdmin(Shown):
    """Model calls. What was asked and answered shows only to people who may read messages."""

    list_display = (
        moments("at", "when"),
        "owner_name",
        "conversation_name",
        "what_for",
        "model_name",
        _counted("input_tokens", "tokens read"),
        _counted("output_tokens", "tokens written"),
        "cost",
        "seconds",
        "error_words",
    )
    list_filter = (("kind", KindFilter), "failed", ("model", ShownValuesFilter), WhenFilter)
    search_fields = ("model", "error", "=owner__username")
    review_template = "admin/chatapp/message/review.html"
    list_select_related = ("owner", "conversation")
    ordering = ("-at", "-pk")

    def get_queryset(self, request: HttpRequest) -> QuerySet[ModelCall]:
        """Without the calls of conversations that are gone or deleted: their lines go too."""
        rows: QuerySet[ModelCall] = super().get_queryset(request)
        there = Q(conversation__code__isnull=False, conversation__deleted_at__isnull=True)
        return rows.filter(Q(conversation_id__isnull=True) | there)

    def front_page(self, request: HttpRequest) -> dict[str, Any]:
        """Errors of the last 24 hours, and what was spent today and in a week."""
        found = failures(self.get_queryset(request), timezone.now() - timedelta(days=1))
        today, week = spent(timezone.localdate())
        return {
            "calls": {
                "failed": sum(one.count for one in found),
                "failures": [
                    replace(one, model=visible(one.model)) for one in found[:MOST_FAILURES]
                ],
                "spent": [("Today", today), ("7 days", week)],
            }
        }

    @admin.display(description="owner")
    def owner_name(self, call: ModelCall) -> str:
        """The owner's name."""
        return visible(call.owner.get_username()) if call.owner else "–"

    @admin.display(description="conversation")
    def conversation_name(self, call: ModelCall) -> str:
        """The conversation's title, or its code."""
        return visible(str(call.conversation)) if call.conversation else "–"

    @admin.display(description="what for", ordering="kind")
    def what_for(self, call: ModelCall) -> str:
        """The kind of the call, in words."""
        return kind_label(call.kind)

    @admin.display(description="model", ordering="model")
    def model_name(self, call: ModelCall) -> str:
        """The model's name."""
        return visible(call.model)

    @admin.display(description="seconds", ordering="duration")
    def seconds(self, call: ModelCall) -> str:
        """The time that it took."""
        return f"{call.duration:.2f}"

    @admin.display(description="error", ordering="error")
    def error_words(self, call: ModelCall) -> str:
        """The error in words; nothing if there was none."""
        return call_error(call.error)

    def on_look(self, request: HttpRequest, obj: Any) -> None:
        """Record the look."""
        if obj.conversation is not None:
            assert isinstance(request.user, User)
            record_access(viewer=request.user, conversation=obj.conversation, what="log")

    def review(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        """The figures; the request and the reply for people who may read messages."""
        facts = [
            Fact(label="Call", value=obj.call),
            Fact(label="When", value=moment(obj.at)),
            Fact(label="Owner", value=self.owner_name(obj)),
            Fact(
                label="Conversation",
                value=self.conversation_name(obj),
                url=conversation_page(request, obj.conversation_id) if obj.conversation else "",
            ),
            Fact(label="Project", value=visible(obj.project)),
            Fact(label="What for", value=self.what_for(obj)),
            Fact(label="Model", value=self.model_name(obj)),
            Fact(label="Tokens read", value=_figure(obj.input_tokens)),
            Fact(label="of them cached", value=_figure(obj.cached_tokens)),
            Fact(label="Tokens written", value=_figure(obj.output_tokens)),
            Fact(label="US dollars", value="unknown" if obj.cost is None else obj.cost),
            Fact(label="Seconds", value=self.seconds(obj)),
            Fact(label="Failed", value=told(obj.failed)),
            Fact(label="Error", value=self.error_words(obj) or "none"),
        ]
        return {"facts": facts, "texts": self._texts(request, obj)}

    def _texts(self, request: HttpRequest, obj: ModelCall) -> list[tuple[str, str]]:
        if not may_read_messages(request):
            return []
        line = line_at(wiring.activity_log().files, line_of(obj))
        if line is None:
            return [("Request and reply", "Not on this server.")]
        return [
            (label, visible(json.dumps(line.get(name), indent=2, ensure_ascii=False)[:MOST_SHOWN]))
            for label, name in (("Request", "request"), ("Reply", "response"), ("Error", "error"))
            if line.get(name) is not None
        ]


def _figure(count: int | None) -> str:
    return "not told" if count is None else f"{count:,}"
