"""The admin pages of summaries: every version and attempt, and what a reviewer may do."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import models
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from compression import store
from compression.admin.changes import verdict_words
from compression.admin.facts import in_use
from compression.admin.filters import CauseFilter, StateFilter, WriterFilter
from compression.admin.queue import QueueFilter, undecided
from compression.admin.review import moments
from compression.admin.screen import ReviewScreen
from compression.exceptions import CompressionError
from compression.models import Review
from compression.types import SummaryStatus


class SummaryReviewAdmin(ReviewScreen):
    """The host's summary model: the queue, the review of each version, and all its facts.

    The host sets :attr:`transcript`, and may override the methods that link its pages.
    """

    review_template = "admin/compression/summary.html"
    change_list_template = "admin/compression/list.html"
    actions = ("approve",)  # type: ignore[assignment]
    list_display: tuple[Any, ...] = (
        "label",
        "state",
        "made_for",
        "tokens",
        "kept",
        "model_name",
        moments("created_at"),
    )
    list_filter = (
        QueueFilter,
        StateFilter,
        ("trigger", CauseFilter),
        ("model", WriterFilter),
    )
    list_select_related: ClassVar[tuple[str, ...]] = ("conversation", "author", "reviewer")
    ordering = ("-pk",)

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Any]:
        """The rows without the columns that only the page of one version shows.

        Finished parts of an incomplete summary are left out: they are neither version nor attempt.
        """
        heavy = ("text", "ledger", "narrative", "audit", "reason")
        partly = models.Q(audit__has_key="extracted")
        rows: models.QuerySet[Any] = self._whole(request).annotate(partly=partly)
        return rows.defer(*heavy)

    def _whole(self, request: HttpRequest) -> models.QuerySet[Any]:
        return super().get_queryset(request).exclude(status=SummaryStatus.PARTIAL.value)

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The list, below the queue and the instructions that new summaries follow."""
        told: dict[str, Any] = {"title": "Review of summaries"}
        told |= {"subtitle": f"Instructions in use: {self.shown(in_use())}"}
        if self.has_view_permission(request):
            told |= self.list_context(request)
        return super().changelist_view(request, told | (extra_context or {}))

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Any:
        """One whole row in one query; None for an invalid id."""
        rows = self._whole(request).select_related(*self.list_select_related)
        try:
            return rows.filter(pk=self.opts.pk.to_python(object_id)).first()
        except (ValidationError, ValueError, OverflowError):
            return None

    @admin.action(description="Approve the selected summaries", permissions=["change"])
    def approve(self, request: HttpRequest, queryset: models.QuerySet[Any]) -> None:
        """Approve the chosen rows of which nobody has said anything, each with its record."""
        chosen = list(queryset.filter(undecided()))
        approved = [
            one
            for one in chosen
            if store.decide(
                one.pk, Review.APPROVED, expected=one.review or "", reviewer_id=request.user.pk
            )
        ]
        for one in approved:
            words = self.words("review", Review.APPROVED.value)
            self.log_change(request, one, verdict_words(words, one.version))
        said = f"{len(approved):,} approved."
        if len(approved) < queryset.count():
            said += " The others had been judged before, and stay as they were."
        messages.success(request, said)

    def act(self, request: HttpRequest, obj: Any) -> HttpResponse:
        """Edit, undo, redo or restore; after a refusal the page again with the reason."""
        if not self.has_change_permission(request, obj):
            raise PermissionDenied
        action = request.POST.get("action", "")
        text = request.POST.get("text", "").replace("\r\n", "\n")
        try:
            version = self.perform(request, obj, action, text)
        except CompressionError as error:
            current = self.get_object(request, str(obj.pk)) or obj
            more = self.unsaved(request, error, text if action == "edit" else "")
            return self.page(request, current, more, status=error.status)
        self.log_change(request, obj, self.act_words(request, action, version))
        messages.success(request, self.done_words(obj.conversation_id, version))
        return HttpResponseRedirect(self.active_url(obj) or self.url_of(obj.pk))
