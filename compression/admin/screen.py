"""The review screen: the lines of one version, where they come from, and what to say of them."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.utils import unquote
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse, QueryDict
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse

from compression import store
from compression.admin.beside import SummaryBeside
from compression.admin.changes import verdict_words
from compression.admin.queue import WAITING, counted, queued
from compression.exceptions import CompressionError, UserFacingError
from compression.models import REVIEW_NOTE, Review

KEPT_FILTERS = "_changelist_filters"
"""The parameter by which Django's pages of one row know the list that they were opened from."""
_VERDICTS = {"approve": Review.APPROVED, "needs_work": Review.NEEDS_WORK}


class ReviewList(ChangeList):
    """The list, whose rows lead to the review screen."""

    def url_for_result(self, result: Any) -> str:
        """The address of the row's review."""
        admin: Any = self.model_admin
        return str(admin.review_url(result.pk))


class ReviewScreen(SummaryBeside):
    """The pages of the review of one version, and the way from one to the next."""

    screen_template = "admin/compression/reviewing.html"

    def get_urls(self) -> list[URLPattern]:
        """The review of a version and whether it is still the active one, besides Django's own."""
        wrap, name = self.admin_site.admin_view, f"{self.opts.app_label}_{self.opts.model_name}"
        return [
            path("<path:object_id>/review/", wrap(self.review_view), name=f"{name}_review"),
            path("<path:object_id>/review/now/", wrap(self.now_view), name=f"{name}_now"),
            *super().get_urls(),
        ]

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """The list whose rows lead to the review."""
        return ReviewList

    def review_url(self, key: int, request: HttpRequest | None = None) -> str:
        """The review of one row, with the filters of the list that it was opened from."""
        name = f"{self.admin_site.name}:{self.opts.app_label}_{self.opts.model_name}_review"
        filters = request.GET.get(KEPT_FILTERS, "") if request is not None else ""
        kept = f"?{urlencode({KEPT_FILTERS: filters})}" if filters else ""
        return reverse(name, args=[key]) + kept

    def review_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """The review of one version. Raises PermissionDenied."""
        obj = self.permitted(request, object_id)
        if obj is None:
            return self._get_obj_does_not_exist_redirect(  # type: ignore[attr-defined, no-any-return]
                request, self.opts, object_id
            )
        if request.method not in {"GET", "HEAD"}:
            return self.act_in_review(request, obj)
        if request.method == "GET" and self.has_change_permission(request, obj):
            store.mark_seen(obj.pk, reviewer_id=request.user.pk)
            obj.refresh_from_db(fields=["review", "reviewed_at", "reviewer"])
        return self.screen(request, obj)

    def now_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """The conversation's active version, its page, and whether a run is under way; no words.

        Asked again and again by open pages, so that it is no look. Raises PermissionDenied.
        """
        obj = self.get_object(request, unquote(object_id))
        if obj is None or not self.has_view_permission(request, obj):
            raise PermissionDenied
        state = store.compression_state(obj.conversation)
        version = obj.conversation.compression_version
        active = self.active_key(obj)
        url = self.review_url(active or obj.pk)
        return JsonResponse({"version": version, "running": state.running, "url": url})

    def act_in_review(self, request: HttpRequest, obj: Any) -> HttpResponse:
        """A verdict, a change, or a wish for another summary; after a refusal the page again."""
        if not self.has_change_permission(request, obj):
            raise PermissionDenied
        action = request.POST.get("action", "")
        if action in _VERDICTS:
            return self._decide(request, obj, _VERDICTS[action])
        text = request.POST.get("text", "").replace("\r\n", "\n")
        try:
            if action == "again":
                model = request.POST.get("model", "")
                self.compress_again(request, obj, model)
                self.log_change(request, obj, f"asked {model[:40]} to write it anew")
                said = f"{self.shown(model)} is writing another summary. This one stays until then."
                messages.success(request, said)
                return HttpResponseRedirect(self.review_url(obj.pk, request))
            version = self.perform(request, obj, action, text)
        except UserFacingError as error:
            return self._refused(request, obj, error, text)
        self.log_change(request, obj, self.act_words(request, action, version))
        messages.success(request, self.done_words(obj.conversation_id, version))
        active = self.active_key(obj) or obj.pk
        return HttpResponseRedirect(self.review_url(active, request))

    def _decide(self, request: HttpRequest, obj: Any, review: Review) -> HttpResponse:
        """Store a verdict and go on to the next of the queue."""
        note = request.POST.get("note", "")
        expected, by = request.POST.get("review", ""), request.user.pk
        if not store.decide(obj.pk, review, expected=expected, reviewer_id=by, note=note):
            obj = self.get_object(request, str(obj.pk))
            who = self.shown(obj.reviewer.get_username()) if obj.reviewer else "Somebody"
            said = f"{who} has said “{self.reviewed(obj)}” of it meanwhile. Nothing was stored."
            return self.screen(request, obj, {"error": said, "note": note}, status=409)
        words = self.words("review", review.value)
        self.log_change(request, obj, verdict_words(words, obj.version))
        following = self.following(request, obj)
        if following is None:
            messages.success(request, "Nothing else waits here.")
            return HttpResponseRedirect(self._list_url(request))
        return HttpResponseRedirect(self.review_url(following.pk, request))

    def _refused(
        self, request: HttpRequest, obj: Any, error: UserFacingError, text: str
    ) -> HttpResponse:
        """The page of what is there now, with the reason, and what the reviewer wrote."""
        active = self.active_key(obj)
        current = (self.get_object(request, str(active)) if active else None) or obj
        more: dict[str, Any] = {"error": error.message, "unsaved": self.shown(text)}
        if isinstance(error, CompressionError) and "submitted_text" in error.fields:
            more |= self.unsaved(request, error, "")
        return self.screen(request, current, more, status=error.status)

    def screen(
        self,
        request: HttpRequest,
        obj: Any,
        more: Mapping[str, Any] | None = None,
        status: int = 200,
    ) -> TemplateResponse:
        """The rendered review of one version."""
        following, active = self.following(request, obj), self.active_key(obj)
        beside = self.beside(request, obj)
        for row in beside["versions"]:
            row.url = self.review_url(row.pk, request)
        context = {
            **self.admin_site.each_context(request),
            **self.review(request, obj),
            **beside,
            "subtitle": f"Review of version {obj.version}"
            if obj.version
            else "Review of an attempt",
            # Nothing stands beside the summary and its messages.
            "is_nav_sidebar_enabled": False,
            "opts": self.opts,
            "original": obj,
            "media": self.media,
            "list_url": self._list_url(request),
            "facts_url": self.url_of(obj.pk),
            "active_review_url": self.review_url(active, request) if active else "",
            "now_url": f"{self.review_url(obj.pk)}now/",
            "next_url": self.review_url(following.pk, request) if following else "",
            "left": self._queue(request).count(),
            "longest_note": REVIEW_NOTE,
            **(more or {}),
        }
        return TemplateResponse(request, self.screen_template, context, status=status)

    def following(self, request: HttpRequest, obj: Any) -> Any:
        """The row after this one in the queue that it was opened from; None if it is the last."""
        rows = self._queue(request).exclude(pk=obj.pk).order_by("-pk")
        return rows.filter(pk__lt=obj.pk).first() or rows.first()

    def _queue(self, request: HttpRequest) -> QuerySet[Any]:
        """The rows of the list that the page was opened from, else all that wait."""
        filters = request.GET.get(KEPT_FILTERS, "")
        rows: QuerySet[Any] | None = None
        if filters:
            listed = copy(request)
            listed.GET = QueryDict(filters)
            try:
                rows = self.get_changelist_instance(listed).queryset
            except (IncorrectLookupParameters, SuspiciousOperation):
                rows = None
        return queued(self.get_queryset(request), WAITING) if rows is None else rows

    def _list_url(self, request: HttpRequest) -> str:
        name = f"{self.admin_site.name}:{self.opts.app_label}_{self.opts.model_name}_changelist"
        filters = request.GET.get(KEPT_FILTERS, "") or f"queue={WAITING}"
        return f"{reverse(name)}?{filters}"

    def list_context(self, request: HttpRequest) -> dict[str, Any]:
        """What stands above the list: the reasons with their counts, and the first to review."""
        rows, chosen = self.get_queryset(request), request.GET.get("queue", "")
        reasons = counted(rows, chosen)
        first = queued(rows, chosen or WAITING).order_by("-pk").first()
        kept = urlencode({KEPT_FILTERS: f"queue={chosen or WAITING}"})
        start = f"{self.review_url(first.pk)}?{kept}" if first else ""
        return {"queue": reasons, "start_url": start if first else ""}
