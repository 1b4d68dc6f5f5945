"""What a reviewer may do to a summary: whole texts, lines, versions. All through the services.

No row is saved from a form, so none can be forged, and open pages learn of each change at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

from compression import services, store
from compression.admin.lines import not_in, passage
from compression.admin.version_page import SummaryPage
from compression.exceptions import CompressionError, SummaryInvalid
from compression.ledger.lines import Act, LineChange
from compression.types import Section

LINE_LENGTH = 20_000
_UNKNOWN = "This cannot be done with a summary."
#: What a reviewer did, as the history says it.
_ACTS = {
    "edit": "rewrote the text",
    "chip": "added a detail",
    "restore": "restored an earlier version",
    "undo": "undid the last change",
    "redo": "redid what was undone",
    Act.ADD.value: "added a line",
    Act.REWRITE.value: "rewrote a line",
    Act.STRIKE.value: "took a line out",
    Act.FORGET.value: "had a line forgotten",
    Act.PIN.value: "pinned a line",
    Act.UNPIN.value: "unpinned a line",
}


class SummaryChanges(SummaryPage):
    """The changes that both pages of a version offer."""

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """True for people with the model's own change permission."""
        return admin.ModelAdmin.has_change_permission(self, request, obj)

    def perform(self, request: HttpRequest, summary: Any, action: str, text: str) -> int:
        """Carry out an action as everywhere else, if the reader saw the newest version.

        Returns the new version. Raises a CompressionError with a sentence.
        """
        conversation_id = summary.conversation_id
        seen: dict[str, Any] = {
            "author_id": request.user.pk,
            "expected_version": number_of(request.POST.get("version", "")),
        }
        if action == "edit":
            edit = async_to_sync(services.edit)
            sizes, counter = self.sizes(summary), self.counter()
            return edit(conversation_id, text, sizes=sizes, counter=counter, **seen)
        if action in {"line", "chip"}:
            change = async_to_sync(services.edit_lines)
            wish = _line(request) if action == "line" else self._chip(request, summary)
            sizes, counter = self.sizes(summary), self.counter()
            return change(conversation_id, [wish], sizes=sizes, counter=counter, **seen)
        if action == "restore":
            restore = async_to_sync(services.restore)
            wanted = number_of(request.POST.get("number", str(summary.version)))
            if wanted > 0:
                return restore(conversation_id, wanted, transcript=self.transcript, **seen)
        if action in {"undo", "redo"}:
            step = async_to_sync(services.undo if action == "undo" else services.redo)
            return step(conversation_id, transcript=self.transcript, **seen)
        raise SummaryInvalid(_UNKNOWN)

    def _chip(self, request: HttpRequest, summary: Any) -> LineChange:
        """The line for a detail that only the messages have, if it is one of the page's.

        With the sentence that holds it for people who may read messages: it is words of these.
        """
        if not self.may_see_missing(request):
            raise PermissionDenied
        audit = summary.audit if isinstance(summary.audit, Mapping) else {}
        detail = request.POST.get("detail", "")
        if detail not in not_in(audit.get("missing"), ""):
            raise SummaryInvalid("This detail is not on the page any more.")
        text, seq = detail, None
        if self.may_read_messages(request):
            items = self.transcript.items(
                summary.conversation_id,
                after_seq=summary.first_seq - 1,
                through_seq=summary.through_seq,
            )
            text, seq = passage(items, detail)
        sources = () if seq is None else (seq,)
        return LineChange(act=Act.ADD, text=text, section=Section.CONTEXT, sources=sources)

    def act_words(self, request: HttpRequest, action: str, version: int) -> str:
        """What was done, for the history: "rewrote a line, which made version 4"."""
        done = _ACTS.get(request.POST.get("act", "") if action == "line" else action, action)
        return f"{done}, which made version {version}"

    def unsaved(self, request: HttpRequest, error: CompressionError, text: str) -> dict[str, Any]:
        """The reason for a refusal and the text that was not saved, for the template."""
        more: dict[str, Any] = {"error": error.message}
        if text:
            more |= {"raw_text": text, "text": self.shown(text)}
        if "submitted_text" in error.fields:
            more["conflict"] = {
                "yours": self.shown(str(error.fields["submitted_text"])),
                "current": self.shown(str(error.fields["current_text"])),
            }
        return more

    def done_words(self, conversation_id: int, version: int) -> str:
        """The sentence after a change, also about a run whose draft it outdates."""
        done = f"Done. Version {version} is active now."
        if store.read_state(conversation_id).running:
            done += (
                " A compression is under way. What you did stays: the run's draft is dropped when "
                "it ends."
            )
        return done


def _line(request: HttpRequest) -> LineChange:
    post = request.POST
    text = post.get("text", "").replace("\r\n", "\n").strip()
    if len(text) > LINE_LENGTH:
        raise SummaryInvalid(f"A line has at most {LINE_LENGTH:,} characters.")
    try:
        act = Act(post.get("act", ""))
        section = Section(post["section"]) if post.get("section") else None
    except ValueError:
        raise SummaryInvalid(_UNKNOWN) from None
    return LineChange(act=act, key=post.get("line", ""), text=text, section=section)


def number_of(value: str) -> int:
    """The number of the version that a form sent; -1, which no version has, for anything else."""
    return int(value) if value.isascii() and value.isdigit() and len(value) < 19 else -1


def verdict_words(verdict: str, version: int) -> str:
    """A reviewer's word on a version, or on a draft that was refused, for the history."""
    return f"said “{verdict}” of " + (f"version {version}" if version else "a refused draft")
