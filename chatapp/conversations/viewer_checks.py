"""The queries that an open page repeats by itself, since any bus may lose events."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import (
    BigIntegerField,
    BooleanField,
    Exists,
    ExpressionWrapper,
    OuterRef,
    QuerySet,
    Subquery,
)
from django.db.models.functions import Coalesce, Length

from chatapp.models import Conversation, Message, MessageRole, Summary, Turn
from compression.database import in_database_thread, snapshot
from compression.exceptions import (
    CompressionCancelled,
    CompressionError,
    DraftRejected,
    LeaseLost,
    SummarizerError,
)
from compression.store import under_way
from compression.store.worded import worded
from compression.types import Outcome, SummaryStatus, Trigger

# Triggers of compression runs; a person's changes do not end a run.
_RUN_TRIGGERS = (Trigger.THRESHOLD, Trigger.BACKGROUND, Trigger.MANUAL, Trigger.OVERFLOW)
# Statuses of a good draft that was not applied.
_GOOD_DRAFT = (SummaryStatus.READY, SummaryStatus.PREVIEW, SummaryStatus.DISCARDED)
_DIED = "The server stopped while the summary was written."
_UNKNOWN_REASON = "It ended without a summary."


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeMarker:
    """Figures of a conversation that differ whenever a viewer has something new to read."""

    event_no: int
    running: bool
    """A compression is under way."""
    opened: bool
    """A turn is open."""
    written: int
    """Characters of the open turn's text and reasoning, which change no number."""


def change_marker(conversation_id: int) -> ChangeMarker | None:
    """The change marker of a conversation, in one query; None if it was deleted."""
    found = _marker.first(conversation=conversation_id)
    return ChangeMarker(**found) if found else None


@worded(conversation=BigIntegerField)
def _marker(conversation: int) -> QuerySet[Any, dict[str, Any]]:
    opened = Turn.objects.filter(conversation=OuterRef("pk"), finished_at__isnull=True)
    reply = Message.objects.filter(
        turn__conversation=OuterRef("pk"),
        turn__finished_at__isnull=True,
        role=MessageRole.ASSISTANT,
    ).order_by("-seq")
    characters = reply.annotate(characters=Length("text") + Length("reasoning"))
    rows: QuerySet[Any, Any] = (
        Conversation.objects.filter(pk=conversation, deleted_at__isnull=True)
        .annotate(
            running=ExpressionWrapper(under_way(), BooleanField()),
            opened=Exists(opened),
            written=Coalesce(Subquery(characters.values("characters")[:1]), 0),
        )
        # As values: fields deferred by ``only()`` would be read later, perhaps in another state.
        .values("event_no", "running", "opened", "written")
    )
    return rows


@snapshot()
def how_it_ended(
    conversation_id: int, *, trigger: Trigger, version: int, since: datetime | None
) -> Outcome:
    """The outcome of a finished run, as far as it is stored.

    For a viewer who missed the run's own event. ``version`` was active when the run began, at
    ``since`` (None: unknown).
    """
    rows = Summary.objects.filter(conversation_id=conversation_id)
    made = rows.filter(version__gt=version, restored_from=None, trigger__in=_RUN_TRIGGERS)
    latest = made.order_by("-version").first()
    if latest is not None:
        return Outcome(
            success=True,
            trigger=trigger,
            version=latest.version,
            usage_before=latest.usage_before or 0.0,
            usage_after=latest.usage_after or 0.0,
            degraded=latest.degraded,
            message_count=latest.message_count,
            model=latest.model,
            cost=None if latest.cost is None else float(latest.cost),
            duration=latest.duration or 0.0,
        )
    attempts = rows.filter(version=0, created_at__gte=since) if since else rows.none()
    attempt = attempts.order_by("-pk").first()
    if attempt is not None and attempt.status in _GOOD_DRAFT:
        return Outcome(success=True, trigger=trigger)
    error = _error_of(attempt) if attempt else _error_without_record(conversation_id)
    return Outcome(success=False, trigger=trigger, code=error.code, reason=error.message)


def _error_of(attempt: Summary) -> CompressionError:
    """The reason why a run gave no summary."""
    if attempt.audit.get("cancelled"):
        return CompressionCancelled()
    refused = attempt.status == SummaryStatus.REJECTED
    return (DraftRejected if refused else SummarizerError)(attempt.reason)


def _error_without_record(conversation_id: int) -> CompressionError:
    """The same for a run of which nothing was stored."""
    died = Conversation.objects.filter(pk=conversation_id).exclude(compression_token="")
    return LeaseLost(_DIED if died.exists() else _UNKNOWN_REASON)


achange_marker = in_database_thread(change_marker)
ahow_it_ended = in_database_thread(how_it_ended)
