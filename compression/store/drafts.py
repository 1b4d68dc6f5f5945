"""The machine's writes: applied, prepared and failed drafts. Each function is one transaction.

Every one of them is guarded by the version that the draft was made on, so that a person's change
or another run's always wins over a draft that comes late.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from compression import conf
from compression.exceptions import StaleSource
from compression.models import CompressibleConversation
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
    """Unsuccessful runs since the last success of any kind, a person's change included."""

    fruitless: int = 0
    """Runs whose draft freed too little."""
    failures: int = 0
    """Runs that gave no fit draft at all."""
    waited: int = 0
    """Those of either kind that the conversation waited for: no extract was fit either."""
    tail_tokens: int = 0
    """Ruler tokens of all live messages after the boundary at the last of them."""
    reason: str = ""
    """Why the last of them came to nothing, a sentence."""
    cancelled: int = 0
    """Since then, how many runs that a request waited for a person cancelled."""


def read(conversation_id: int, transcript: Transcript) -> tuple[Base, tuple[Item, ...]]:
    """The summary as it is, then the live items after its boundary.

    In this order no transaction is needed, which on SQLite would keep writers waiting: whatever
    commits between the two reads lies after that boundary.
    """
    base = read_base(conversation_id)
    return base, tuple(transcript.items(conversation_id, after_seq=base.boundary))


def apply(
    conversation_id: int, token: str, base: Base, draft: FitDraft, transcript: Transcript
) -> int | None:
    """Put the draft in place and give the lease back. The new version.

    None, and nothing changed, when the lease or the version is no longer this run's. Raises
    StaleSource when a message of the span was superseded or removed meanwhile.
    """
    with transaction.atomic():
        held = writable(conversation_id).filter(
            compression_token=token, compression_version=base.version
        )
        if not _put_in_place(held, draft, base.version + 1):
            return None
        _require_source(conversation_id, draft, transcript)
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
    """Put a background run's draft aside and give the lease back.

    True when it is the ready one now, False when the present one frees nearly as much (the new
    one is kept as discarded). None, and nothing changed, when the lease or the version is no
    longer this run's, or the run was promoted and its draft is waited for.
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
    """The prepared draft whose parent is still the active version."""
    row = summaries(conversation_id).filter(
        status=SummaryStatus.READY.value, parent__in=_version(conversation_id)
    )
    found = row.first()
    return to_version(found) if found else None


def read_ready(
    conversation_id: int, transcript: Transcript
) -> tuple[Version, Base, tuple[Item, ...]] | None:
    """The prepared draft with the summary and the live items that it would be applied to.

    One whose source has changed is discarded: None.
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
    """Put a prepared draft in place: claim and apply are one UPDATE. The new version.

    ``audit``: in place of the one that it was prepared with.

    A background run that lives loses its lease to this; any other keeps its own, and the answer
    is None, as it is when the parent is no longer active. A draft whose source has changed is
    discarded: None.
    """
    try:
        with transaction.atomic():
            takeable = free() | Q(compression_trigger=Trigger.BACKGROUND.value)
            parent = writable(conversation_id).filter(takeable, compression_version=prepared.parent)
            version = prepared.parent + 1
            if not _put_in_place(parent, prepared, version):
                return None
            _require_source(conversation_id, prepared, transcript)
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
    """Give the prepared draft up. False when there was none."""
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
    """Keep an attempt that gave no summary, with its reason, for the reviewer and the breaker.

    ``run`` names the run that the attempt belongs to; ``final`` marks the one that ended a run
    without success, which alone counts for the breaker. ``cost``, US dollars, is this attempt's
    own; the version that the run came to in the end counts it too.
    Nothing is kept of a conversation that is gone.
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
    """How often compression came to nothing since it last succeeded or a person acted."""
    rows = summaries(conversation_id)
    success = rows.exclude(status__in=NOT_WHOLE).order_by("-pk").values_list("pk", flat=True)
    # Putting a prepared draft in place is a success too, and its row is older than that.
    since = rows.filter(
        pk__gt=success.first() or 0, status__in=NO_SUCCESS, parent__in=_version(conversation_id)
    )
    attempts = list(since.order_by("pk").values_list("audit", "reason", "trigger"))
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
    """How many of the last, which say why a request went without a summary, were cancelled."""
    found = 0
    for audit, _, trigger in reversed(attempts):
        if audit.get("final"):
            break
        found += bool(audit.get("cancelled") and trigger in REQUESTS)
    return found


def _put_in_place(
    held: QuerySet[CompressibleConversation], draft: FitDraft | Version, version: int
) -> int:
    return held.update(
        compressed_context=clean(draft.text),
        compressed_at=Now(),
        compressed_through=draft.through_seq,
        compression_version=version,
        **RELEASED,
        **conf.conversation_model().compression_changes("apply"),
    )


def _require_source(
    conversation_id: int, draft: FitDraft | Version, transcript: Transcript
) -> None:
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
    """The active version becomes superseded; a prepared draft has lost its parent.

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


def _version(conversation_id: int) -> QuerySet[Any, Any]:
    """The active version's number, as part of another query."""
    return conversations(conversation_id).values("compression_version")


def _frees(draft: FitDraft | Version) -> float:
    return (draft.usage_before or 0.0) - (draft.usage_after or 0.0)
