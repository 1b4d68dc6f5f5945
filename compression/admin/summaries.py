"""The admin pages of summaries: every version and attempt, and what a reviewer may do.

No row is saved from a form, so none can be forged: a person's change goes through
:mod:`compression.services` here too.
"""

from __future__ import annotations

from typing import Any, ClassVar

from asgiref.sync import async_to_sync
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import models
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from compression import services
from compression.admin.review import ShownValuesFilter, WordsFilter, moments
from compression.admin.version_page import SummaryPage
from compression.exceptions import CompressionError, SummaryInvalid
from compression.ports import Transcript
from compression.types import SummaryStatus


class SummaryReviewAdmin(SummaryPage):
    """The host's summary model: every version and attempt, with Edit, Undo, Redo and Restore.

    The host sets :attr:`transcript`, and may override the methods that link its pages.
    """

    review_template = "admin/compression/summary.html"
    list_display: tuple[Any, ...] = (
        "label",
        "became",
        "made_for",
        "covers",
        "its_tokens",
        "whole_tokens",
        "without_model",
        "model_name",
        moments("created_at"),
    )
    list_filter = (
        ("trigger", WordsFilter),
        ("status", WordsFilter),
        "degraded",
        ("model", ShownValuesFilter),
    )
    list_select_related: ClassVar[tuple[str, ...]] = ("conversation", "author")
    ordering = ("-pk",)

    transcript: Transcript
    """The host's messages: a version is restored only while its source is unchanged."""

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """True for people with the model's own change permission."""
        return admin.ModelAdmin.has_change_permission(self, request, obj)

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

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Any:
        """One whole row in one query; None for an invalid id."""
        rows = self._whole(request).select_related(*self.list_select_related)
        try:
            return rows.filter(pk=self.opts.pk.to_python(object_id)).first()
        except (ValidationError, ValueError, OverflowError):
            return None

    def act(self, request: HttpRequest, obj: Any) -> HttpResponse:
        """Edit, undo, redo or restore; after a refusal the page again with the reason."""
        if not self.has_change_permission(request, obj):
            raise PermissionDenied
        action = request.POST.get("action", "")
        text = request.POST.get("text", "").replace("\r\n", "\n")
        try:
            version = self.perform(request, obj, action, text)
        except CompressionError as error:
            return self.refuse(request, obj, error, text if action == "edit" else "")
        self.log_change(request, obj, f"{action}: version {version} is active now")
        messages.success(request, f"Done. Version {version} is active now.")
        return HttpResponseRedirect(self.active_url(obj) or self.url_of(obj.pk))

    def perform(self, request: HttpRequest, summary: Any, action: str, text: str) -> int:
        """Carry out an action as everywhere else, if the reader saw the newest version.

        Returns the new version. Raises a CompressionError with a sentence.
        """
        conversation_id = summary.conversation_id
        seen: dict[str, Any] = {
            "author_id": request.user.pk,
            "expected_version": _version_of(request.POST.get("version", "")),
        }
        if action == "edit":
            edit = async_to_sync(services.edit)
            sizes, counter = self.sizes(summary), self.counter()
            return edit(conversation_id, text, sizes=sizes, counter=counter, **seen)
        if action == "restore" and summary.version:
            restore = async_to_sync(services.restore)
            return restore(conversation_id, summary.version, transcript=self.transcript, **seen)
        if action in {"undo", "redo"}:
            step = async_to_sync(services.undo if action == "undo" else services.redo)
            return step(conversation_id, transcript=self.transcript, **seen)
        raise SummaryInvalid("This cannot be done with a summary.")

    def refuse(
        self, request: HttpRequest, summary: Any, error: CompressionError, text: str
    ) -> HttpResponse:
        """The page with the reason and the unsaved text; on a conflict with both texts."""
        current = self.get_object(request, str(summary.pk)) or summary
        more: dict[str, Any] = {"error": error.message}
        if text:
            more |= {"raw_text": text, "text": self.shown(text)}
        if "submitted_text" in error.fields:
            more["conflict"] = {
                "yours": self.shown(str(error.fields["submitted_text"])),
                "current": self.shown(str(error.fields["current_text"])),
            }
        return self.page(request, current, more, status=error.status)


def _version_of(value: str) -> int:
    """The number of the version that a form sent; -1, which no version has, for anything else."""
    return int(value) if value.isascii() and value.isdigit() else -1
