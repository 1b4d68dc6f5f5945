"""The admin's pages of summaries."""

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
        """The owner of the conversation."""
        return visible(summary.conversation.owner.get_username())

    def shown(self, text: str) -> str:
        """The text with deceptive characters made visible."""
        return visible(text)

    def words(self, field: str, value: str) -> str:
        """The same words as in the chat."""
        return labels.status_label(value) if field == "status" else labels.trigger(value)

    def cause(self, summary: Summary) -> str:
        """The same words as in the chat."""
        return labels.cause({"trigger": summary.trigger, "restored_from": summary.restored_from})

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

    def messages_url(self, request: HttpRequest, summary: Any) -> str:
        """The address of the list of the span's messages."""
        return messages_page(
            request, summary.conversation_id, summary.first_seq, summary.through_seq
        )

    def message_url(self, request: HttpRequest, summary: Any, seq: int) -> str:
        """The address of a list with one message."""
        return messages_page(request, summary.conversation_id, seq, seq)

    def conversation_url(self, request: HttpRequest, summary: Any) -> str:
        """The address of the conversation's page in the admin."""
        return conversation_page(request, summary.conversation_id)

    def may_see_missing(self, request: HttpRequest) -> bool:
        """Whether the permission for the originals is granted, from which missing items come."""
        return request.user.has_perm("chatapp.view_audit")

    def sizes(self, summary: Any) -> Sizes:
        """As for an edit on the page."""
        return wiring.services().sizes_of(summary.conversation)
