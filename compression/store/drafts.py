"""The machine's writes: applied, prepared and failed drafts. Each function is one transaction.

Each is guarded by the version that the draft was made on, so that a later change, by a person or
another run, always wins over the draft.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import BigIntegerField, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce, Now

from compression import conf
from compression.exceptions import StaleSource
from compression.models import AbstractSummary, CompressibleConversation
from compression.ports import Transcript
from compression.store.fingerprints import fingerprint, span_matches
from compression.store.parts import drop_parts
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
    read_base,
    summaries,
    to_version,
    writable,
)
from compression.store.worded import worded
from compression.types import Item, SummaryStatus, Trigger

REPLACES_READY = 0.10
"""Share of the budget by which a new draft must free more than the ready one to replace it."""
SOURCE_CHANGED = "A message that it stands for was changed or removed."
NO_SUCCESS = (SummaryStatus.REJECTED.value, SummaryStatus.FAILED.value)
NOT_WHOLE = (*NO_SUCCESS, SummaryStatus.PARTIAL.value)
REQUESTS = (Trigger.THRESHOLD.value, Trigger.OVERFLOW.value)
"""Triggers that block a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """Unsuccessful runs since the last success or change by a person."""

    fruitless: int = 0
    """Runs whose draft freed too little."""
    failures: int = 0
    """Runs that gave no fit draft at all."""
    waited: int = 0
    """Fruitless or failed runs that a request waited for, so that no extract was fit either."""
    tail_tokens: int = 0
    """Ruler tokens of all live messages after the boundary when the last of them ended."""
    reason: str = ""
    """Why the last of them failed, in a sentence."""
    cancelled: int = 0
    """Runs after the last of them that a request waited for and a person cancelled."""


def read(conversation_id: int, transcript: Transcript) -> tuple[Base, tuple[Item, ...]]:
    """The current summary, and the live items after its boundary.

    The summary is read first, so that no transaction is needed, which on SQLite would keep writers
    waiting: whatever commits between the two reads is after that boundary.
    """
    base = read_base(conversation_id)
    return base, tuple(transcript.items(conversation_id, after_seq=base.boundary))


def apply(
    conversation_id: int, token: str, base: Base, draft: FitDraft, transcript: Transcript
) -> int | None:
    """Make the draft the active version and give the lease back. Returns the new version.

    Returns None, and changes nothing, when the lease is lost or the version is no longer active.
    Raises StaleSource when a message of the span was superseded or removed meanwhile.
    """
    with transaction.atomic():
        held = writable(conversation_id).filter(
            compression_token=token, compression_version=base.version
        )
        if not activate(held, draft.text, draft.through_seq, base.version + 1):
            return None
        require_source(conversation_id, draft, transcript)
        retire(conversation_id)
        insert(
            conversation_id,
            status=SummaryStatus.ACTIVE,
            parent=base.version,
            version=base.version + 1,
            **draft_values(draft),
        )
    return base.version + 1


def save_ready(conversation_id: int, token: str, base: Base, draft: FitDraft) -> bool | None:
    """Store a background run's draft and give the lease back.

    True: it is the ready draft now. False: the present one frees nearly as much, and the new one
    is stored as discarded. None, with nothing changed: the lease is lost, the version is no longer
    active, or the run was promoted and a request waits for its draft.
    """
    with transaction.atomic():
        released = (
            writable(conversation_id)
            .filter(
                compression_token=token,
                compression_version=base.version,
                compression_trigger=Trigger.BACKGROUND.value,
            )
            .update(**RELEASED, **conf.conversation_model().compression_changes("release"))
        )
        if not released:
            return None
        drop_parts(conversation_id)
        old = ready(conversation_id)
        better = old is None or _frees(draft) >= _frees(old) + REPLACES_READY
        if better:
            _discard_ready(conversation_id, "A later draft frees more.")
        insert(
            conversation_id,
            status=SummaryStatus.READY if better else SummaryStatus.DISCARDED,
            parent=base.version,
            reason="" if better else "The prepared summary frees nearly as much.",
            **draft_values(draft),
        )
    return better


def ready(conversation_id: int) -> Version | None:
    """The prepared draft if its parent is still the active version."""
    found = _ready.first(conversation=conversation_id)
    return to_version(found) if found else None


def read_ready(
    conversation_id: int, transcript: Transcript
) -> tuple[Version, Base, tuple[Item, ...]] | None:
    """The prepared draft with the summary and the live items that it would be applied to.

    A draft whose source has changed is discarded, and None is returned.
    """
    prepared = ready(conversation_id)
    if prepared is None:
        return None
    base, items = read(conversation_id, transcript)
    if base.version != prepared.parent:
        return None
    span = [item for item in items if item.seq <= prepared.through_seq]
    if fingerprint(span) != prepared.source_fingerprint:
        _discard_ready(conversation_id, SOURCE_CHANGED, prepared.id)
        return None
    return prepared, base, items


def apply_ready(
    conversation_id: int,
    prepared: Version,
    transcript: Transcript,
    *,
    usage_before: float,
    usage_after: float,
    audit: Mapping[str, Any] | None = None,
) -> int | None:
    """Make a prepared draft the active version, claiming and applying in one UPDATE.

    ``audit`` replaces the audit that was prepared with it. Returns the new version. A background
    run under way loses its lease. Returns None when another kind of run holds the lease, the
    parent is no longer active, or the source has changed, which also discards the draft.
    """
    try:
        with transaction.atomic():
            takeable = free() | Q(compression_trigger=Trigger.BACKGROUND.value)
            parent = writable(conversation_id).filter(takeable, compression_version=prepared.parent)
            version = prepared.parent + 1
            if not activate(parent, prepared.text, prepared.through_seq, version):
                return None
            require_source(conversation_id, prepared, transcript)
            changed = (
                summaries(conversation_id)
                .filter(pk=prepared.id, status=SummaryStatus.READY.value)
                .update(status=SummaryStatus.DISCARDED.value)
            )
            if not changed:
                raise StaleSource
            retire(conversation_id)
            summaries(conversation_id).filter(pk=prepared.id).update(
                status=SummaryStatus.ACTIVE.value,
                version=version,
                usage_before=usage_before,
                usage_after=usage_after,
                audit=clean(dict(prepared.audit if audit is None else audit)),
            )
            return version
    except StaleSource:
        _discard_ready(conversation_id, SOURCE_CHANGED, prepared.id)
        return None


def discard_ready(conversation_id: int, reason: str) -> bool:
    """Discard the prepared draft. False when there was none."""
    return bool(_discard_ready(conversation_id, reason))


def record_attempt(
    conversation_id: int,
    *,
    run: str,
    status: SummaryStatus,
    trigger: Trigger,
    reason: str,
    base: Base,
    final: bool,
    fruitless: bool = False,
    tail_tokens: int = 0,
    model: str = "",
    cost: float | None = None,
) -> None:
    """Store an attempt that gave no summary, with its reason, for the reviewer and the breaker.

    ``run`` names the run that the attempt belongs to. ``final`` marks the attempt that ended a run
    without success; only those count for the breaker. ``cost``, in US dollars, is this attempt's
    own; the version that its run produces in the end counts it too. Nothing is stored for a
    conversation that no longer exists.
    """
    with transaction.atomic():
        locked = writable(conversation_id).select_for_update().values_list("pk", flat=True)
        if not list(locked):
            return
        insert(
            conversation_id,
            status=status,
            parent=base.version,
            trigger=trigger.value,
            reason=reason,
            model=model[:200],
            cost=cost,
            audit={
                "run": run,
                "final": final,
                "fruitless": fruitless,
                "tail_tokens": tail_tokens,
            },
        )


def breaker(conversation_id: int) -> Breaker:
    """The unsuccessful runs since compression last succeeded or a person changed the summary."""
    attempts = _attempts(conversation=conversation_id)
    final = [one for one in attempts if one[0].get("final")]
    cancelled = _cancelled(attempts)
    if not final:
        return Breaker(cancelled=cancelled)
    fruitless = sum(1 for audit, _, _ in final if audit["fruitless"])
    last, reason, _ = final[-1]
    return Breaker(
        fruitless=fruitless,
        failures=len(final) - fruitless,
        waited=sum(1 for _, _, trigger in final if trigger != Trigger.BACKGROUND.value),
        tail_tokens=last["tail_tokens"],
        reason=reason,
        cancelled=cancelled,
    )


def _cancelled(attempts: Sequence[tuple[dict[str, Any], str, str]]) -> int:
    """How many of the latest attempts were cancelled by a person."""
    found = 0
    for audit, _, trigger in reversed(attempts):
        if audit.get("final"):
            break
        found += bool(audit.get("cancelled") and trigger in REQUESTS)
    return found


def activate(
    held: QuerySet[CompressibleConversation], text: str, through_seq: int, version: int
) -> int:
    """Make a summary the conversation's, if ``held`` still finds it; the lease is given back."""
    return held.update(
        compressed_context=clean(text),
        compressed_at=Now(),
        compressed_through=through_seq,
        compression_version=version,
        **RELEASED,
        **conf.conversation_model().compression_changes("apply"),
    )


def require_source(conversation_id: int, draft: FitDraft | Version, transcript: Transcript) -> None:
    """Check that no message of the draft was superseded or removed; else StaleSource is raised."""
    # After the UPDATE: it locked the row, so no message is superseded from here to the commit.
    expected = draft.fingerprint if isinstance(draft, FitDraft) else draft.source_fingerprint
    if not span_matches(
        conversation_id,
        transcript,
        first_seq=draft.first_seq,
        through_seq=draft.through_seq,
        expected=expected,
    ):
        raise StaleSource


def retire(conversation_id: int) -> None:
    """Supersede the active version, and discard a prepared draft, which has lost its parent.

    Part of the transaction that writes the next version.
    """
    summaries(conversation_id).filter(status=SummaryStatus.ACTIVE.value).update(
        status=SummaryStatus.SUPERSEDED.value
    )
    _discard_ready(conversation_id, "Another version took its place.")
    drop_parts(conversation_id)


def _discard_ready(conversation_id: int, reason: str, row_id: int | None = None) -> int:
    found = summaries(conversation_id).filter(status=SummaryStatus.READY.value)
    if row_id is not None:
        found = found.filter(pk=row_id)
    return found.update(status=SummaryStatus.DISCARDED.value, reason=reason)


@worded(conversation=BigIntegerField)
def _ready(conversation: int) -> QuerySet[AbstractSummary]:
    found = summaries(conversation).filter(
        status=SummaryStatus.READY.value, parent__in=_version(conversation)
    )
    return found.order_by("pk")[:1]


@worded(conversation=BigIntegerField)
def _attempts(conversation: int) -> QuerySet[AbstractSummary, tuple[dict[str, Any], str, str]]:
    rows = summaries(conversation)
    success = rows.exclude(status__in=NOT_WHOLE).order_by("-pk").values("pk")[:1]
    # Applying a prepared draft is a success too, though its row was inserted earlier.
    since = rows.filter(
        pk__gt=Coalesce(Subquery(success), 0),
        status__in=NO_SUCCESS,
        parent__in=_version(conversation),
    )
    return since.order_by("pk").values_list("audit", "reason", "trigger")


def _version(conversation_id: int) -> QuerySet[Any, Any]:
    """The active version's number, as a subquery."""
    return conversations(conversation_id).values("compression_version")


def _frees(draft: FitDraft | Version) -> float:
    return (draft.usage_before or 0.0) - (draft.usage_after or 0.0)
