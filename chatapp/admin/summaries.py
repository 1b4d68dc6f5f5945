"""Reviewing what the summaries say."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth.models import User
from django.http import HttpRequest

from chatapp import wiring
from chatapp.admin.links import conversation_page, messages_page
from chatapp.conversations.access_log import record_access
from chatapp.conversations.messages.transcript import StoredTranscript
from chatapp.models import Summary
from chatapp.rendering import labels
from chatapp.text.safety import visible
from compression.admin import SummaryReviewAdmin
from compression.types import Sizes


@admin.register(Summary)
class SummaryAdmin(SummaryReviewAdmin):
    """Every version and attempt of every conversation."""

    list_display = ("label", "owner", *SummaryReviewAdmin.list_display[1:])
    list_select_related = ("conversation", "conversation__owner", "author")
    search_fields = ("conversation__title", "conversation__code", "conversation__owner__username")
    transcript = StoredTranscript()

    @admin.display(ordering="conversation__owner__username")
    def owner(self, summary: Summary) -> str:
        """Whose conversation it is."""
        return visible(summary.conversation.owner.get_username())

    def shown(self, text: str) -> str:
        """Characters that deceive the eye lose their power."""
        return visible(text)

    def words(self, field: str, value: str) -> str:
        """As in the chat."""
        return labels.status_label(value) if field == "status" else labels.trigger(value)

    def cause(self, summary: Summary) -> str:
        """As in the chat."""
        return labels.cause({"trigger": summary.trigger, "restored_from": summary.restored_from})

    def maker(self, summary: Summary) -> str:
        """As in the chat."""
        return labels.maker(summary.model)

    def on_look(self, request: HttpRequest, obj: Any) -> None:
        """Leaves a record."""
        self._record(request, obj, "summary")

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Leaves a record too: Django's own goes with the account of who did it."""
        self._record(request, obj, str(message))
        return super().log_change(request, obj, message)

    def _record(self, request: HttpRequest, summary: Summary, what: str) -> None:
        assert isinstance(request.user, User)
        record_access(viewer=request.user, conversation=summary.conversation, what=what)

    def messages_url(self, request: HttpRequest, summary: Any) -> str:
        """The list of the messages of the span."""
        return messages_page(
            request, summary.conversation_id, summary.first_seq, summary.through_seq
        )

    def message_url(self, request: HttpRequest, summary: Any, seq: int) -> str:
        """A list of one message."""
        return messages_page(request, summary.conversation_id, seq, seq)

    def conversation_url(self, request: HttpRequest, summary: Any) -> str:
        """The conversation's page in the admin."""
        return conversation_page(request, summary.conversation_id)

    def may_see_missing(self, request: HttpRequest) -> bool:
        """It is from the originals, so it has a permission of its own."""
        return request.user.has_perm("chatapp.view_audit")

    def sizes(self, summary: Any) -> Sizes:
        """As for an edit on the page."""
        return wiring.services().sizes_of(summary.conversation)
