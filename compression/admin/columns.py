"""The list of a host's summaries: its columns, and the methods by which a host links its pages."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from compression.admin.review import ReviewAdmin, told
from compression.ports import TokenCounter
from compression.tokens import default_counter
from compression.types import Sizes


class SummaryHooks(ReviewAdmin):
    """The methods that a host overrides: its pages, its words, its limits."""

    def messages_url(self, request: HttpRequest, summary: Any) -> str:
        """Where the messages are that a version stands for; empty when they may not be seen."""
        return ""

    def message_url(self, request: HttpRequest, summary: Any, seq: int) -> str:
        """Where one message is; empty when it may not be seen."""
        return ""

    def conversation_url(self, request: HttpRequest, summary: Any) -> str:
        """Where the conversation is; empty when it may not be seen."""
        return ""

    def may_see_missing(self, request: HttpRequest) -> bool:
        """Whether to show what an audit found only in the originals."""
        return True

    def words(self, field: str, value: str) -> str:
        """A trigger or a status, as the host calls it."""
        return value

    def cause(self, summary: Any) -> str:
        """The cause of a version."""
        return self.words("trigger", summary.trigger)

    def maker(self, summary: Any) -> str:
        """The writer of a version; empty when nothing wrote it."""
        return self.shown(summary.model)

    def sizes(self, summary: Any) -> Sizes | None:
        """The sizes of the conversation's next request, which limit an edit; None: not known."""
        return None

    def counter(self) -> TokenCounter:
        """The ruler."""
        return default_counter()


class SummaryColumns(SummaryHooks):
    """The columns of the list of summaries."""

    @admin.display(description="summary", ordering="version")
    def label(self, summary: Any) -> str:
        """Version and conversation."""
        return f"{summary} · {self.shown(str(summary.conversation))}"

    @admin.display(description="degraded", ordering="degraded")
    def without_model(self, summary: Any) -> str:
        """Whether it is an extract that no model wrote."""
        return "in part" if summary.partly and not summary.degraded else told(summary.degraded)

    @admin.display(description="model", ordering="model")
    def model_name(self, summary: Any) -> str:
        """The writer of the version."""
        return self.maker(summary)

    @admin.display(description="status", ordering="status")
    def became(self, summary: Any) -> str:
        """The status of the version."""
        return self.words("status", summary.status)

    @admin.display(description="trigger", ordering="trigger")
    def made_for(self, summary: Any) -> str:
        """The cause of the version."""
        return self.cause(summary)

    @admin.display(description="their tokens", ordering="source_tokens")
    def its_tokens(self, summary: Any) -> int:
        """Those of the messages that it took in."""
        return int(summary.source_tokens)

    @admin.display(description="whole summary", ordering="summary_tokens")
    def whole_tokens(self, summary: Any) -> int:
        """Those of its text, which stands for what earlier versions took in too."""
        return int(summary.summary_tokens)

    @admin.display(description="took in", ordering="through_seq")
    def covers(self, summary: Any) -> str:
        """The messages that a version itself took in: first, last and how many."""
        if not summary.through_seq:
            return ""
        return f"{summary.first_seq:,}–{summary.through_seq:,} ({summary.message_count:,})"
