"""What the review of summaries shows of messages, and to whom."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.contrib.auth.models import User
from django.http import HttpRequest

from chatapp.admin.links import conversation_page, may_read_messages, messages_page
from chatapp.conversations.access_log import record_access
from chatapp.conversations.messages.stored import live
from chatapp.conversations.summaries.versions import carried_lines
from compression.admin import Said, SummaryReviewAdmin
from compression.ledger.lines import Line


class SummarySources(SummaryReviewAdmin):
    """The messages of a summary for people who may read them, each look recorded."""

    def may_read_messages(self, request: HttpRequest) -> bool:
        """Whether the permission for messages is granted."""
        return may_read_messages(request)

    def on_messages(self, request: HttpRequest, summary: Any) -> None:
        """Record the look at messages, besides that at the summary."""
        assert isinstance(request.user, User)
        record_access(viewer=request.user, conversation=summary.conversation, what="messages")

    def said(self, summary: Any, seqs: Iterable[int]) -> Mapping[int, Said]:
        """The live messages with these numbers, and no others, in one query."""
        rows = live(summary.conversation_id).filter(seq__in=list(seqs)).order_by("seq")
        return {
            one.seq: Said(seq=one.seq, role=one.role, text=one.text)
            for one in rows.only("seq", "role", "text")
        }

    def elsewhere(self, summary: Any, line: Line) -> bool:
        """Whether a line was carried over from the conversation that this one continues."""
        carried = carried_lines(summary.conversation)
        return line.markdown.rpartition("\n")[2] in carried

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
