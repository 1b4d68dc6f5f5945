"""The columns of the list of summaries, and the methods by which a host links its own pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html

from compression.admin.facts import share
from compression.admin.lines import Said, said_in
from compression.admin.review import ReviewAdmin
from compression.admin.states import ICONS, state_of
from compression.exceptions import SummaryInvalid
from compression.ledger.lines import Line
from compression.ledger.markdown import HEADINGS
from compression.models import Review
from compression.ports import TokenCounter, Transcript
from compression.tokens import default_counter
from compression.types import Sizes, SummaryStatus

_WORDS = {
    "review": {
        "": "not yet seen",
        Review.SEEN.value: "seen",
        Review.APPROVED.value: "approved",
        Review.NEEDS_WORK.value: "needs work",
    },
    "state": {
        "unseen": "not yet seen",
        SummaryStatus.REJECTED.value: "refused",
        SummaryStatus.SUPERSEDED.value: "replaced",
        Review.NEEDS_WORK.value: "needs work",
    },
    "section": {section or "": heading.capitalize() for heading, section in HEADINGS.items()},
}


class SummaryHooks(ReviewAdmin):
    """The methods that a host overrides: links, words and limits."""

    transcript: Transcript
    """The host's messages: a version is restored only while its source is unchanged."""

    def messages_url(self, request: HttpRequest, summary: Any) -> str:
        """Address of the messages that a version stands for; empty when they may not be seen."""
        return ""

    def message_url(self, request: HttpRequest, summary: Any, seq: int) -> str:
        """Address of one message; empty when it may not be seen."""
        return ""

    def conversation_url(self, request: HttpRequest, summary: Any) -> str:
        """Address of the conversation; empty when it may not be seen."""
        return ""

    def may_see_missing(self, request: HttpRequest) -> bool:
        """Whether to show the items that an audit found only in the originals."""
        return True

    def may_read_messages(self, request: HttpRequest) -> bool:
        """Whether to show the messages that the lines of a summary come from."""
        return True

    def on_messages(self, request: HttpRequest, summary: Any) -> None:
        """Called once for each request that shows messages of a summary's conversation."""

    def said(self, summary: Any, seqs: Iterable[int]) -> Mapping[int, Said]:
        """The live messages with these numbers, in order."""
        return said_in(self.transcript, summary.conversation_id, seqs)

    def elsewhere(self, summary: Any, line: Line) -> bool:
        """Whether a line was carried over, with numbers of another conversation's messages."""
        return False

    def models(self, request: HttpRequest, summary: Any) -> Sequence[str]:
        """The models that can write the summary anew; none if the host offers no choice."""
        return ()

    def compress_again(self, request: HttpRequest, summary: Any, model: str) -> None:
        """Have a model write the active version anew. Returns once it has begun.

        Raises a UserFacingError with a sentence.
        """
        raise SummaryInvalid("This cannot be done with a summary.")

    def words(self, field: str, value: str) -> str:
        """The host's word for a trigger, a status, a review, or a section."""
        return _WORDS.get(field, {}).get(value, value)

    def cause(self, summary: Any) -> str:
        """The cause of a version."""
        return self.words("trigger", summary.trigger)

    def maker(self, summary: Any) -> str:
        """The person or model that wrote a version; empty when there is none."""
        return self.shown(summary.model)

    def sizes(self, summary: Any) -> Sizes | None:
        """The sizes of the conversation's next request, which limit an edit; None if unknown."""
        return None

    def counter(self) -> TokenCounter:
        """The ruler that edits are counted by."""
        return default_counter()


class SummaryColumns(SummaryHooks):
    """The columns of the list of summaries."""

    @admin.display(description="conversation", ordering="conversation")
    def label(self, summary: Any) -> str:
        """The conversation, and which version of its summary the row is."""
        title = self.shown(str(summary.conversation))
        return format_html('{} <span class="version">{}</span>', title, summary)

    @admin.display(description="state", ordering="status")
    def state(self, summary: Any) -> str:
        """What became of it, or what reviewers say, with an icon."""
        name = state_of(summary)
        words = self.state_words(name)
        decided = summary.review in {Review.APPROVED, Review.NEEDS_WORK}
        if decided and name != summary.review:
            words = f"{words}, {self.reviewed(summary)}"
        return format_html(
            '<span class="state {}"><svg viewBox="0 0 16 16" width="16" height="16" '
            'aria-hidden="true"><path d="{}"/></svg> {}</span>',
            name,
            ICONS.get(name, ICONS["discarded"]),
            words,
        )

    def state_words(self, name: str) -> str:
        """The words for a state."""
        return self.words("state", name)

    def reviewed(self, summary: Any) -> str:
        """What reviewers have said."""
        return self.words("review", summary.review or "")

    @admin.display(description="kept", ordering="retention")
    def kept(self, summary: Any) -> str:
        """The share of the details of its messages that the version holds."""
        if summary.retention is None:
            return ""
        return format_html('<span class="share">{}</span>', share(summary.retention))

    @admin.display(description="written by", ordering="model")
    def model_name(self, summary: Any) -> str:
        """The writer of the version, and whether it is an extract, written without a model."""
        maker = self.maker(summary)
        if summary.degraded:
            return f"{maker} (degraded)" if maker else "degraded"
        return f"{maker} (extract in part)" if summary.partly else maker

    def became(self, summary: Any) -> str:
        """The status of the version."""
        return self.words("status", summary.status)

    @admin.display(description="cause", ordering="trigger")
    def made_for(self, summary: Any) -> str:
        """The cause of the version."""
        return self.cause(summary)

    @admin.display(description="tokens", ordering="source_tokens")
    def tokens(self, summary: Any) -> str:
        """Tokens of the messages of the version's own span, and of the whole summary."""
        if not summary.through_seq:
            return ""
        sizes = f"{summary.source_tokens:,} → {summary.summary_tokens:,}"
        return format_html('<span class="sizes">{}</span>', sizes)
