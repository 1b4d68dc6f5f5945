"""The values that the store takes and returns, and the querysets behind them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db.models import BigIntegerField, Q, QuerySet
from django.db.models.functions import Now

from compression import conf
from compression.exceptions import StaleVersion
from compression.ledger.ledger import from_json, to_json
from compression.models import AbstractSummary, CompressibleConversation
from compression.store.worded import worded
from compression.types import Ledger, SummaryStatus, Trigger

RELEASED: Mapping[str, Any] = {
    "compression_token": "",
    "compression_lease_expires_at": None,
    "compression_started_at": None,
    "compression_trigger": "",
    "compression_locks_input": False,
}
"""The lease's fields when nobody holds it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """A conversation's current summary, all of one commit."""

    conversation_id: int
    text: str = ""
    """The active summary as Markdown; empty if there is none."""
    ledger: Ledger = field(default_factory=Ledger)
    boundary: int = 0
    """``seq`` of the last message that the summary stands for."""
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FitDraft:
    """A draft that was judged fit, with its measures, ready to be stored."""

    trigger: Trigger
    text: str
    ledger: Ledger
    first_seq: int
    through_seq: int
    """The new boundary."""
    message_count: int
    fingerprint: str
    """Fingerprint of the span's items, see :func:`compression.store.fingerprint`."""
    source_tokens: int
    summary_tokens: int
    """Both in ruler tokens."""
    usage_before: float | None = None
    usage_after: float | None = None
    """Both as shares of the budget."""
    model: str = ""
    prompt_version: str = ""
    cost: float | None = None
    """US dollars."""
    duration: float | None = None
    """Seconds."""
    degraded: bool = False
    audit: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A stored summary row; ``version`` is 0 for rows that never became a version."""

    id: int
    version: int
    parent: int
    restored_from: int | None
    status: SummaryStatus
    trigger: Trigger
    reason: str
    text: str
    ledger: Ledger
    first_seq: int
    through_seq: int
    message_count: int
    source_fingerprint: str
    source_tokens: int
    summary_tokens: int
    usage_before: float | None
    usage_after: float | None
    model: str
    prompt_version: str
    cost: Decimal | None
    duration: float | None
    degraded: bool
    audit: Mapping[str, Any]
    author_id: int | None
    created_at: datetime

    @property
    def stands_for(self) -> int:
        """The version that this one's content comes from: itself, or the one it restored."""
        return self.version if self.restored_from is None else self.restored_from


def conversations(conversation_id: int) -> QuerySet[CompressibleConversation]:
    """The conversation, whether or not the machine may write to it."""
    return conf.conversation_model()._default_manager.filter(pk=conversation_id)


def writable(conversation_id: int) -> QuerySet[CompressibleConversation]:
    """The conversation, if the machine may write to it."""
    return conversations(conversation_id).filter(conf.conversation_model().compressible())


def summaries(conversation_id: int) -> QuerySet[AbstractSummary]:
    """All stored rows of one conversation."""
    of_conversation: dict[str, Any] = {"conversation_id": conversation_id}
    return conf.summary_model()._default_manager.filter(**of_conversation)


def free() -> Q:
    """The condition that nobody holds an unexpired lease, by the database's clock."""
    # A token without an expiry, left by a repair or restore, must not lock for ever.
    return (
        Q(compression_token="")
        | Q(compression_lease_expires_at__isnull=True)
        | Q(compression_lease_expires_at__lt=Now())
    )


# What a row says as it is.
_COPIED = tuple(
    one.name for one in fields(Version) if one.name not in {"id", "status", "trigger", "ledger"}
)


def to_version(row: AbstractSummary) -> Version:
    """The row as a value."""
    return Version(
        id=row.pk,
        status=SummaryStatus(row.status),
        trigger=Trigger(row.trigger),
        ledger=from_json(row.ledger, row.narrative),
        **{name: getattr(row, name) for name in _COPIED},
    )


def read_version(conversation_id: int, version: int) -> Version:
    """One version. Raises StaleVersion when there is none of that number."""
    row = _numbered.first(conversation=conversation_id, version=version) if version > 0 else None
    if row is None:
        raise StaleVersion(f"There is no version {version} of this summary.")
    return to_version(row)


def read_base(conversation_id: int) -> Base:
    """The summary, its ledger, boundary and version, read from two rows.

    The conversation's row names the version, whose own row never changes. Raises StaleVersion when
    the conversation does not exist.
    """
    row = _active.first(conversation=conversation_id)
    if row is None:
        raise StaleVersion("This conversation does not exist any more.")
    text, boundary, version = row
    ledger = read_version(conversation_id, version).ledger if version else Ledger()
    return Base(
        conversation_id=conversation_id,
        text=text,
        ledger=ledger,
        boundary=boundary,
        version=version,
    )


@worded(conversation=BigIntegerField)
def _active(conversation: int) -> QuerySet[CompressibleConversation, tuple[str, int, int]]:
    return conversations(conversation).values_list(
        "compressed_context", "compressed_through", "compression_version"
    )


@worded(conversation=BigIntegerField, version=BigIntegerField)
def _numbered(conversation: int, version: int) -> QuerySet[AbstractSummary]:
    return summaries(conversation).filter(version=version)


def clean(value: Any) -> Any:
    """A copy of a text, list or mapping that both databases can store.

    PostgreSQL stores neither NUL nor lone surrogates, and a model may write either.
    """
    if isinstance(value, str):
        return value.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, Mapping):
        return {clean(key): clean(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [clean(item) for item in value]
    return value


def insert(conversation_id: int, *, status: SummaryStatus, parent: int, **values: Any) -> int:
    """Insert one row; returns its id. ``ledger`` is a :class:`Ledger`, the rest are fields."""
    ledger: Ledger = values.pop("ledger", Ledger())
    entries, narrative = to_json(ledger)
    cost = values.pop("cost", None)
    # The foreign key belongs to the host, so the abstract model cannot name it.
    of_conversation: dict[str, Any] = {"conversation_id": conversation_id}
    row = conf.summary_model()(
        **of_conversation,
        status=status.value,
        parent=parent,
        ledger=clean(entries),
        narrative=clean(narrative),
        retention=retention(values.get("audit")),
        cost=None if cost is None else Decimal(str(round(cost, 6))),
        **clean(values),
    )
    row.save(force_insert=True)
    return int(row.pk)


def retention(audit: Any) -> float | None:
    """The share of salient items that a version holds, by its audit, which may have any shape."""
    if not isinstance(audit, Mapping):
        return None
    salient, retained = audit.get("salient"), audit.get("retained")
    if not isinstance(salient, int) or not isinstance(retained, int):
        return None
    return retained / salient if salient and 0 <= retained <= salient else None


def draft_values(draft: FitDraft) -> dict[str, Any]:
    """The fields of a row for this draft."""
    return {
        "trigger": draft.trigger.value,
        "text": draft.text,
        "ledger": draft.ledger,
        "first_seq": draft.first_seq,
        "through_seq": draft.through_seq,
        "message_count": draft.message_count,
        "source_fingerprint": draft.fingerprint,
        "source_tokens": draft.source_tokens,
        "summary_tokens": draft.summary_tokens,
        "usage_before": draft.usage_before,
        "usage_after": draft.usage_after,
        "model": draft.model[:200],
        "prompt_version": draft.prompt_version[:64],
        "cost": draft.cost,
        "duration": draft.duration,
        "degraded": draft.degraded,
        "audit": dict(draft.audit),
    }
