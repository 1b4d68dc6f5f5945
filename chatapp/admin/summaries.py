"""The admin's pages of summaries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib import admin
from django.contrib.auth.models import User
from django.http import HttpRequest

from chatapp import wiring
from chatapp.actions.reviewing import compress_again, models_for
from chatapp.admin.figures import SummaryFigures
from chatapp.conversations.access_log import record_access
from chatapp.conversations.messages.transcript import StoredTranscript
from chatapp.conversations.summaries.versions import instead_of
from chatapp.models import Summary
from chatapp.rendering.words import labels
from chatapp.text.safety import visible
from compression.admin import SummaryReviewAdmin, number_of
from compression.types import Sizes


@admin.register(Summary)
class SummaryAdmin(SummaryFigures):
    """Every version and attempt of every conversation."""

    list_display = ("label", "owner", *SummaryReviewAdmin.list_display[1:])
    list_select_related = ("conversation", "conversation__owner", "author", "reviewer")
    search_fields = ("conversation__title", "conversation__code", "conversation__owner__username")
    change_list_template = "admin/chatapp/summary/list.html"
    transcript = StoredTranscript()

    def front_page(self, request: HttpRequest) -> dict[str, Any]:
        """What waits for a reviewer, why, and the way in."""
        return {"review": self.list_context(request)}

    @admin.display(ordering="conversation__owner__username")
    def owner(self, summary: Summary) -> str:
        """The owner of the conversation."""
        return visible(summary.conversation.owner.get_username())

    def shown(self, text: str) -> str:
        """The text with deceptive characters made visible."""
        return visible(text)

    def words(self, field: str, value: str) -> str:
        """The same words as in the chat."""
        if field == "section":
            return labels.section(value)
        if field == "status":
            return labels.status_label(value)
        return labels.trigger(value) if field == "trigger" else super().words(field, value)

    def cause(self, summary: Summary) -> str:
        """The same words as in the chat."""
        return labels.cause(summary.trigger, summary.restored_from, instead_of(summary))

    def maker(self, summary: Summary) -> str:
        """The same words as in the chat."""
        return labels.maker(summary.model)

    def on_look(self, request: HttpRequest, obj: Any) -> None:
        """Record the look."""
        self._record(request, obj, "summary")

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Record the change too, since Django's log is deleted with the account that acted."""
        self._record(request, obj, str(message))
        return super().log_change(request, obj, message)

    def _record(self, request: HttpRequest, summary: Summary, what: str) -> None:
        assert isinstance(request.user, User)
        record_access(viewer=request.user, conversation=summary.conversation, what=what)

    def models(self, request: HttpRequest, summary: Any) -> Sequence[str]:
        """Those that the owner is offered: the messages go to no other server."""
        return async_to_sync(models_for)(summary.conversation.owner_id)

    def compress_again(self, request: HttpRequest, summary: Any, model: str) -> None:
        """As if the owner had asked for it."""
        conversation = summary.conversation
        wiring.announcer()
        async_to_sync(compress_again)(
            conversation.owner_id,
            str(conversation.code),
            version=number_of(request.POST.get("version", "")),
            model=model,
        )

    def sizes(self, summary: Any) -> Sizes:
        """As for an edit on the page."""
        return wiring.services().sizes_of(summary.conversation)
