"""Every version and attempt of a summary, and what a reviewer may do to it.

Nothing here saves a row that a form filled in, so nothing can be forged with one: what a person
does goes through the store like everywhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import models, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from compression import store
from compression.admin.facts import (
    ATTEMPTS,
    PEOPLES,
    bill,
    by_extract,
    or_none,
    price,
    seconds,
    share,
    spans,
    usage,
)
from compression.admin.review import (
    Fact,
    LedgerLine,
    Listing,
    ReviewAdmin,
    ShownValuesFilter,
    WordsFilter,
    moment,
    moments,
    told,
)
from compression.conf import settings
from compression.exceptions import CompressionError, StaleVersion, SummaryInvalid
from compression.ledger.editing import apply_edit
from compression.ledger.ledger import from_json
from compression.ledger.markdown import render
from compression.ports import TokenCounter, Transcript
from compression.store.rows import conversations
from compression.tokens import default_counter
from compression.types import SummaryStatus

# A page shows at most this many lines of the ledger and of an audit's lists.
LINES = 500


class SummaryReviewAdmin(ReviewAdmin):
    """The host's summary model: every version and attempt, and Edit, Undo, Redo and Restore.

    The host sets :attr:`transcript` and may override the methods that say how its pages link.
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
    """The host's messages: an older version is restored only while they are what they were."""

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """True for people with the model's own change permission."""
        return admin.ModelAdmin.has_change_permission(self, request, obj)

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Any]:
        """Without the columns that only the page of one version shows.

        And without finished parts of what is not whole yet: they are neither version nor attempt.
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
        """One whole row, in one query; None for an id that is none."""
        rows = self._whole(request).select_related(*self.list_select_related)
        try:
            return rows.filter(pk=self.opts.pk.to_python(object_id)).first()
        except (ValidationError, ValueError, OverflowError):
            return None

    # What a host overrides

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

    def limit_tokens(self, summary: Any) -> int:
        """The most ruler tokens that a person's edit may have: twice the cap."""
        return 2 * settings().summary_tokens

    def counter(self) -> TokenCounter:
        """The ruler."""
        return default_counter()

    # Lists

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

    # The page of one version

    def review(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        """Facts, ledger and audit; see the template."""
        active = obj.status == SummaryStatus.ACTIVE
        may_change = self.has_change_permission(request, obj)
        state = store.compression_state(obj.conversation)
        return {
            "title": self.label(obj),
            "facts": self.facts(request, obj),
            "text": self.shown(obj.text),
            "text_title": "What the model sees" if active else "Text",
            "attempt": obj.status in ATTEMPTS and not obj.text,
            "raw_text": obj.text,
            "ledger": self.ledger_lines(request, obj),
            "audit": self.audit_listings(request, obj),
            "active": active,
            "running": state.running,
            "current_version": obj.conversation.compression_version,
            "active_url": "" if active else self.active_url(obj),
            "may_edit": may_change and active,
            "may_restore": may_change and not active and obj.version > 0,
        }

    def facts(self, request: HttpRequest, summary: Any) -> list[Fact]:
        """The facts of a version, in the order in which a reviewer asks."""
        conversation_url = self.conversation_url(request, summary)
        author = summary.author
        by_person = summary.trigger in PEOPLES
        return [
            Fact(
                label="Conversation",
                value=self.shown(str(summary.conversation)),
                url=conversation_url,
            ),
            Fact(label="Version", value=summary.version or "never became one"),
            Fact(label="Made on version", value=summary.parent or "none"),
            Fact(label="Restores version", value=or_none(summary.restored_from)),
            Fact(label="Status", value=self.words("status", summary.status)),
            Fact(label="Reason", value=self.shown(summary.reason) or "none"),
            Fact(label="Trigger", value=self.cause(summary)),
            *spans(summary, self.messages_url(request, summary)),
            Fact(label="Usage of the window", value=usage(summary)),
            # A person's version repeats the audit of the one that it changed.
            *([] if by_person else bill(summary.audit or {})),
            Fact(label="Model", value=self.maker(summary) or "none"),
            Fact(label="Instructions", value=summary.prompt_version or "none"),
            Fact(label="Cost", value=price(summary, by_person=by_person)),
            Fact(label="Seconds", value=seconds(summary.duration)),
            Fact(
                label="Written by",
                value=self.shown(author.get_username()) if author else "the machine",
            ),
            Fact(
                label="Extract in place of a model that failed",
                value=self.shown(by_extract(summary)),
            ),
            Fact(label="Created", value=moment(summary.created_at)),
        ]

    def ledger_lines(self, request: HttpRequest, summary: Any) -> list[LedgerLine]:
        """All entries ever made, also those that are not in the text any more."""
        ledger = from_json(summary.ledger, summary.narrative)
        return [
            LedgerLine(
                id=entry.id,
                section=entry.section,
                text=self.shown(entry.text),
                origin=entry.origin,
                state=entry.state,
                sources=tuple(
                    Fact(label="", value=seq, url=self.message_url(request, summary, seq))
                    for seq in entry.sources[:LINES]
                ),
            )
            for entry in ledger.entries[:LINES]
        ]

    def audit_listings(self, request: HttpRequest, summary: Any) -> dict[str, Any]:
        """The audit in words and lists; empty when the version has none."""
        audit: Mapping[str, Any] = summary.audit or {}
        if "salient" not in audit:
            return {}
        salient, retained = int(audit["salient"]), int(audit.get("retained", 0))
        titles = {
            "missing": "Only in the originals",
            "evicted": "Taken out because the summary was full",
            "dropped": "Refused",
            "notes": "Notes",
        }
        if not self.may_see_missing(request):
            del titles["missing"]
        return {
            "sentence": f"{retained:,} of {salient:,} salient items (numbers, names, paths, "
            f"quotations, dates) are in the summary: {share(retained / salient)}."
            if salient
            else "The messages held no salient items.",
            "lists": [
                self._listing(title, audit[key]) for key, title in titles.items() if audit.get(key)
            ],
        }

    def _listing(self, title: str, lines: Iterable[Any]) -> Listing:
        texts = [self.shown(str(line)) for line in lines]
        return Listing(title=title, lines=tuple(texts[:LINES]), more=max(0, len(texts) - LINES))

    def active_url(self, summary: Any) -> str:
        """The page of the conversation's active version; empty when it has none."""
        rows = self.model._default_manager.filter(
            conversation_id=summary.conversation_id, status=SummaryStatus.ACTIVE.value
        )
        key = rows.values_list("pk", flat=True).first()
        return self.url_of(key) if key else ""

    def url_of(self, key: int) -> str:
        """The page of one row."""
        name = f"{self.admin_site.name}:{self.opts.app_label}_{self.opts.model_name}_change"
        return reverse(name, args=[key])

    # What a person does

    def act(self, request: HttpRequest, obj: Any) -> HttpResponse:
        """Edit, undo, redo or restore; on refusal the page again with the reason."""
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
        """Do it in one transaction, if the reader saw the newest version; the new version.

        Raises a CompressionError with a sentence.
        """
        author_id = request.user.pk
        conversation_id = summary.conversation_id
        with transaction.atomic():
            _expect_version(conversation_id, request.POST.get("version", ""), text)
            if action == "edit":
                return self._edit(summary, text, author_id)
            if action == "restore" and summary.version:
                return store.restore(
                    conversation_id,
                    summary.version,
                    author_id=author_id,
                    transcript=self.transcript,
                )
            if action in {"undo", "redo"}:
                step = store.undo if action == "undo" else store.redo
                return step(conversation_id, author_id=author_id, transcript=self.transcript)
        raise SummaryInvalid("This cannot be done with a summary.")

    def _edit(self, summary: Any, text: str, author_id: int | None) -> int:
        if "\x00" in text:
            line = text.count("\n", 0, text.index("\x00")) + 1
            raise SummaryInvalid(f"Line {line} holds a NUL character, which cannot be stored.")
        base = store.read_base(summary.conversation_id)
        count = self.counter().count
        ledger = apply_edit(base.ledger, text, limit_tokens=self.limit_tokens(summary), count=count)
        rendered = render(ledger)
        return store.edit(
            base, rendered, ledger, author_id=author_id, summary_tokens=count(rendered)
        )

    def refuse(
        self, request: HttpRequest, summary: Any, error: CompressionError, text: str
    ) -> HttpResponse:
        """The page with the reason and the text that was not saved; both texts on a conflict."""
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


def _expect_version(conversation_id: int, expected: str, text: str) -> None:
    """Hold the conversation's row and raise StaleVersion unless ``expected`` is its version."""
    list(conversations(conversation_id).select_for_update().values_list("pk"))
    base = store.read_base(conversation_id)
    if expected != str(base.version):
        raise (
            store.stale(base, text)
            if text
            else StaleVersion(
                "The summary has changed meanwhile. Look at it again; nothing was done."
            )
        )
