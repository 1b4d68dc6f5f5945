"""The page of one version or attempt: facts, text, ledger and audit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from compression import store
from compression.admin.columns import SummaryColumns
from compression.admin.facts import (
    ATTEMPTS,
    PEOPLES,
    bill,
    by_extract,
    instructions,
    or_none,
    price,
    seconds,
    share,
    spans,
    usage,
)
from compression.admin.review import Fact, LedgerLine, Listing, moment
from compression.ledger.ledger import from_json
from compression.types import SummaryStatus

# Most lines of the ledger, and of each list of an audit, on one page.
LINES = 500


class SummaryPage(SummaryColumns):
    """The page of one version, for reading; the forms are in
    :class:`compression.admin.summaries.SummaryReviewAdmin`."""

    def review(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        """The facts, ledger and audit for the template."""
        active = obj.status == SummaryStatus.ACTIVE
        may_change = self.has_change_permission(request, obj)
        state = store.compression_state(obj.conversation)
        return {
            "title": self.shown(str(obj.conversation)),
            "subtitle": self.shown(str(obj)).capitalize(),
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
            **(self._steps(obj) if may_change and active else {}),
            "may_restore": may_change and not active and obj.version > 0,
        }

    def _steps(self, summary: Any) -> dict[str, str]:
        """What Undo would take back, and what Redo would bring back; empty for nothing."""
        redoes = store.redoes(summary.conversation_id)
        undoes = f"version {summary.version}, {self.cause(summary)}"
        return {
            "undoes": undoes if summary.restored_from != 0 else "",
            "redoes": self.words("trigger", redoes) if redoes else "",
        }

    def facts(self, request: HttpRequest, summary: Any) -> list[Fact]:
        """The facts of a version, in the order in which a reviewer needs them."""
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
            # A person's version has a copy of the audit of the version it changed.
            *([] if by_person else bill(summary.audit or {})),
            Fact(label="Model", value=self.maker(summary) or "none"),
            Fact(label="Instructions", value=self.shown(instructions(summary.prompt_version))),
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
        """All entries ever made, including those no longer in the text."""
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

    def audit_listings(
        self, request: HttpRequest, summary: Any, *, with_missing: bool = True
    ) -> dict[str, Any]:
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
        if not with_missing or not self.may_see_missing(request):
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
        key = self.active_key(summary)
        return self.url_of(key) if key else ""

    def active_key(self, summary: Any) -> int | None:
        """The key of the conversation's active version; None when it has none."""
        rows = self.model._default_manager.filter(
            conversation_id=summary.conversation_id, status=SummaryStatus.ACTIVE.value
        )
        key: int | None = rows.values_list("pk", flat=True).first()
        return key

    def url_of(self, key: int) -> str:
        """The page of one row."""
        name = f"{self.admin_site.name}:{self.opts.app_label}_{self.opts.model_name}_change"
        return reverse(name, args=[key])
