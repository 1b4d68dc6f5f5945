"""The summary of a conversation for the screen, and its present compression."""

from __future__ import annotations

from dataclasses import asdict
from math import ceil
from typing import Any

from django.db.models import BigIntegerField, Count, QuerySet, Sum

from chatapp.conversations.messages.stored import live
from chatapp.live import compression_progress
from chatapp.live.view_models import CompressionView
from chatapp.models import Conversation, Message, MessageRole, Summary
from compression import store
from compression.database import in_database_thread
from compression.judging.stored_audit import extracted_parts
from compression.store.worded import worded
from compression.types import Progress, Trigger

# The next event brings both anyway, to pages of every process.
_UNSTORED = {"tokens_written", "lines"}


def compression_view(row: Conversation) -> CompressionView:
    """The active summary and the present run. Expects ``row`` freshly read."""
    state = store.compression_state(row)
    active = None
    if row.compression_version:
        active = _active.first(conversation=row.pk, version=row.compression_version)
    made_by = _made_by(active) if active else ""
    stood = store.stands_for(active) if active and row.compressed_through else store.StandsFor()
    truncated, truncated_tokens = _truncated(row)
    redoes = store.redoes(row.pk) if active else None
    return CompressionView(
        running=state.running,
        trigger=str(state.trigger or ""),
        locks_input=state.locks_input,
        started_at=state.started_at,
        messages_under_way=row.compressing_messages if state.running else 0,
        **(_progress(row) if state.running else {}),
        # The next turn makes up for other interrupted runs.
        interrupted=state.died is Trigger.MANUAL,
        version=row.compression_version,
        boundary=row.compressed_through,
        summary=row.compressed_context,
        made_by=active.trigger if active else "",
        compressed_at=row.compressed_at,
        message_count=stood.message_count,
        tokens_before=stood.source_tokens,
        tokens_after=active.summary_tokens if active else 0,
        model=active.model if active else "",
        edited=made_by == Trigger.EDIT,
        degraded=active.degraded if active else False,
        extracted=_extracted(active) if active and made_by != Trigger.EDIT else [],
        can_undo=active is not None and active.restored_from != 0,
        undoes=made_by,
        can_redo=redoes is not None,
        redoes=str(redoes or ""),
        truncated_through=row.truncated_through,
        truncated_count=truncated,
        truncated_tokens=truncated_tokens,
        truncated_because=_truncated_because(row) if truncated else "",
        **_masked(row),
        **_preview(row),
        off=bool(row.compression_off),
    )


def _extracted(active: Summary) -> list[dict[str, Any]]:
    return [asdict(one) for one in extracted_parts((active.audit or {}).get("extracted"))]


def _made_by(active: Summary) -> str:
    """The trigger of the version, or of the one that it restores; empty if there is none."""
    if active.restored_from is None:
        return active.trigger
    restored = Summary.objects.filter(
        conversation=active.conversation_id, version=active.restored_from
    )
    return restored.values_list("trigger", flat=True).first() or ""


def takes_in(conversation_id: int, messages: int) -> None:
    """Store how many messages the present run covers, for pages of every process."""
    Conversation.objects.filter(pk=conversation_id).update(compressing_messages=messages)


def is_at(conversation_id: int, progress: Progress) -> None:
    """Store which part the present run is at, for pages of every process."""
    part = {name: value for name, value in asdict(progress).items() if name not in _UNSTORED}
    running = Conversation.objects.filter(pk=conversation_id).exclude(compression_token="")
    running.update(compressing_part=part)


def _progress(row: Conversation) -> dict[str, Any]:
    """The progress of the present run as this process knows it, else as it was last stored."""
    progress = compression_progress.of(row.pk) or Progress(**row.compressing_part)
    left = progress.seconds_left
    return {
        "tokens_written": progress.tokens_written,
        "part": progress.part,
        "parts": progress.parts,
        "part_first_seq": progress.first_seq,
        "part_through_seq": progress.through_seq,
        "seconds_left": None if left is None else ceil(left),
        "lines": list(progress.lines),
    }


def _truncated(row: Conversation) -> tuple[int, int]:
    """Number and ruler tokens of the messages after the boundary that requests leave out."""
    if row.truncated_through <= row.compressed_through:
        return 0, 0
    left_out = live(row.pk).filter(seq__gt=row.compressed_through, seq__lte=row.truncated_through)
    found = left_out.aggregate(count=Count("pk"), tokens=Sum("token_count"))
    return found["count"], found["tokens"] or 0


def _masked(row: Conversation) -> dict[str, Any]:
    """The newest batch of masks among the messages after the boundary; nothing if there is none."""
    found = _masks(conversation=row.pk, boundary=row.compressed_through)
    newest = [one for one in found if one[0] == found[0][0]]
    return {
        "mask_batch": newest[0][0] if newest else 0,
        "masked_seqs": [seq for _, seq, *_ in newest],
        "masked_results": sum(role == MessageRole.TOOL for _, _, role, *_ in newest),
        "masked_tokens": sum((before or 0) - after for *_, before, after in newest),
    }


@worded(conversation=BigIntegerField, version=BigIntegerField)
def _active(conversation: int, version: int) -> QuerySet[Summary]:
    return Summary.objects.filter(conversation_id=conversation, version=version)


@worded(conversation=BigIntegerField, boundary=BigIntegerField)
def _masks(conversation: int, boundary: int) -> QuerySet[Message, tuple[Any, ...]]:
    masked = live(conversation).filter(
        seq__gt=boundary, mask_batch__isnull=False, masked_at__isnull=False
    )
    return masked.order_by("-mask_batch", "seq").values_list(
        "mask_batch", "seq", "role", "unmasked_tokens", "token_count"
    )


def _preview(row: Conversation) -> dict[str, Any]:
    """The preview that waits; nothing if there is none."""
    held = store.preview(row.pk, active=row.compression_version)
    if held is None:
        return {}
    return {
        "preview": held.id,
        "preview_current": held.current,
        "preview_messages": held.summary.message_count,
        "preview_tokens_before": held.summary.source_tokens,
        "preview_tokens_after": held.summary.summary_tokens,
    }


def _truncated_because(row: Conversation) -> str:
    """The reason why the left-out messages are not summarised."""
    if row.compression_off:
        return "compression is turned off for this conversation"
    past = store.breaker(row.pk)
    if past.cancelled:
        return "the compression was cancelled"
    if past.reason:
        return f"summarising failed: {past.reason.rstrip('.')}"
    return "what must stay is too large for a summary to help"


atakes_in = in_database_thread(takes_in)
ais_at = in_database_thread(is_at)
