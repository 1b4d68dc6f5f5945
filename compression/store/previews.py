"""Previews: summaries that are written and stored, but not applied before a person says so.

A conversation has at most one. It belongs to the version that it was made on and to the messages
that it stands for, and is never applied to others. A later version does not remove it: the person
is told that it is out of date, and may have it made anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import BigIntegerField, Q, QuerySet

from compression import conf
from compression.exceptions import CompressionRunning, StaleVersion
from compression.ledger.ledger import to_json
from compression.ports import Transcript
from compression.store.drafts import activate, require_source, retire
from compression.store.rows import (
    RELEASED,
    Base,
    FitDraft,
    Version,
    clean,
    conversations,
    draft_values,
    free,
    insert,
    summaries,
    to_version,
    writable,
)
from compression.store.worded import worded
from compression.types import Ledger, SummaryStatus, Trigger

FORM = 1
"""The form of a stored preview. One of another form, from before an upgrade, is out of date."""
_OUTDATED = (
    "The summary has changed since this preview was written. Nothing was applied; make the preview "
    "anew."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """A stored preview."""

    summary: Version
    """The summary that would be applied; its ``parent`` is the version that it was made on."""
    current: bool
    """It can be applied: its version is still the active one."""
    from_seq: int | None = None
    """The messages before this one are to stay word for word, beside the summary."""
    focus: str = ""

    @property
    def id(self) -> int:
        """By which it is applied or discarded."""
        return self.summary.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A preview in the form in which it is applied."""

    text: str
    ledger: Ledger
    summary_tokens: int
    usage_before: float
    usage_after: float
    audit: Mapping[str, Any]
    trigger: Trigger = Trigger.MANUAL
    author_id: int | None = None
    """The person who changed lines of it; None: nobody did."""


def save_preview(
    conversation_id: int,
    token: str,
    base: Base,
    draft: FitDraft,
    *,
    from_seq: int | None = None,
    focus: str = "",
    tail_tokens: int = 0,
) -> bool:
    """Store a run's draft as the preview, in place of an earlier one, and give the lease back.

    ``tail_tokens``: ruler tokens of all messages after the boundary. False, with nothing changed:
    the lease is lost, or the version is no longer active.
    """
    with transaction.atomic():
        released = (
            writable(conversation_id)
            .filter(compression_token=token, compression_version=base.version)
            .update(**RELEASED, **conf.conversation_model().compression_changes("release"))
        )
        if not released:
            return False
        _rows(conversation_id).update(
            status=SummaryStatus.DISCARDED.value, reason="A later preview took its place."
        )
        about = {"form": FORM, "from_seq": from_seq, "focus": focus, "tail_tokens": tail_tokens}
        values = draft_values(draft)
        values["audit"] = {**values["audit"], "preview": about}
        insert(conversation_id, status=SummaryStatus.PREVIEW, parent=base.version, **values)
    return True


def preview(conversation_id: int, *, active: int | None = None) -> Preview | None:
    """The preview that waits, current or not; None if there is none.

    ``active``: the active version, where the caller has just read it.
    """
    row = _waiting.first(conversation=conversation_id)
    if row is None:
        return None
    if active is None:
        versions = conversations(conversation_id).values_list("compression_version", flat=True)
        active = versions.first()
    about = row.audit.get("preview", {})
    return Preview(
        summary=to_version(row),
        current=row.parent == active and about.get("form") == FORM,
        from_seq=about.get("from_seq"),
        focus=about.get("focus", ""),
    )


def apply_preview(
    conversation_id: int, preview_id: int, finished: Finished, transcript: Transcript
) -> int:
    """Make the preview the active version. Returns the new version.

    A background run under way loses its lease. Raises StaleVersion when the preview is over or out
    of date, StaleSource when a message of it was superseded or removed, and CompressionRunning
    while another kind of run is under way.
    """
    with transaction.atomic():
        held = preview(conversation_id)
        if held is None or held.id != preview_id:
            raise preview_over()
        if not held.current:
            raise StaleVersion(_OUTDATED)
        parent = held.summary.parent
        version = parent + 1
        same = writable(conversation_id).filter(compression_version=parent)
        takeable = free() | Q(compression_trigger=Trigger.BACKGROUND.value)
        if not activate(same.filter(takeable), finished.text, held.summary.through_seq, version):
            raise CompressionRunning if same.exists() else StaleVersion(_OUTDATED)
        require_source(conversation_id, held.summary, transcript)
        # Taken before the version is retired, so that a second press finds it gone.
        if (
            not _rows(conversation_id)
            .filter(pk=preview_id)
            .update(status=SummaryStatus.DISCARDED.value)
        ):
            raise preview_over()
        retire(conversation_id)
        summaries(conversation_id).filter(pk=preview_id).update(
            status=SummaryStatus.ACTIVE.value,
            trigger=finished.trigger.value,
            version=version,
            text=clean(finished.text),
            **_stored(finished),
        )
    return version


def discard_preview(conversation_id: int, preview_id: int) -> bool:
    """Discard the preview. False when it is over already."""
    with transaction.atomic():
        found = _rows(conversation_id).filter(pk=preview_id)
        gone = found.update(
            status=SummaryStatus.DISCARDED.value, reason="A person discarded the preview."
        )
        if gone:
            changes = conf.conversation_model().compression_changes("release")
            if changes:
                conversations(conversation_id).update(**changes)
    return bool(gone)


def discarded_at(conversation_id: int) -> int | None:
    """Ruler tokens after the boundary when the last preview on this version was discarded.

    None if none was. Whoever makes previews unasked waits until there is more to summarise.
    """
    active = conversations(conversation_id).values("compression_version")
    rows = summaries(conversation_id).filter(
        status=SummaryStatus.DISCARDED.value, trigger=Trigger.PREVIEW.value, parent__in=active
    )
    audit = rows.order_by("-pk").values_list("audit", flat=True).first()
    return None if audit is None else int(audit.get("preview", {}).get("tail_tokens", 0))


def preview_over() -> StaleVersion:
    """The refusal of a preview that does not wait any more."""
    return StaleVersion("This preview was applied or discarded already. Nothing was changed.")


def _rows(conversation_id: int) -> Any:
    return summaries(conversation_id).filter(status=SummaryStatus.PREVIEW.value)


@worded(conversation=BigIntegerField)
def _waiting(conversation: int) -> QuerySet[Any, Any]:
    rows: QuerySet[Any, Any] = _rows(conversation)
    return rows.order_by("pk")[:1]


def _stored(finished: Finished) -> dict[str, Any]:
    """The fields of a row that applying changes, besides its text."""
    entries, narrative = to_json(finished.ledger)
    return {
        "ledger": clean(entries),
        "narrative": clean(narrative),
        "summary_tokens": finished.summary_tokens,
        "usage_before": finished.usage_before,
        "usage_after": finished.usage_after,
        "audit": clean(dict(finished.audit)),
        "author_id": finished.author_id,
    }
