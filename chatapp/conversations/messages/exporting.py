"""The contents of an export, read in pieces, so that a long conversation is never in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from chatapp.conversations.messages.paging import with_turns
from chatapp.conversations.ownership import owned
from chatapp.conversations.summaries.versions import exported_versions
from chatapp.models import Conversation, Message
from compression.database import in_database_thread, snapshot

BATCH = 200


@dataclass(frozen=True, kw_only=True)
class ExportHead:
    """A conversation without its messages."""

    conversation_id: int
    through_seq: int
    """The last message of the export; messages written meanwhile are not in it."""
    conversation: dict[str, Any]
    summaries: list[dict[str, Any]]


@snapshot()
def export_head(user_id: int, code: str) -> ExportHead:
    """The part of an export before the messages. Raises NotFound."""
    row = owned(user_id, code)
    return ExportHead(
        conversation_id=row.pk,
        through_seq=row.next_seq - 1,
        conversation={
            "code": str(row.code),
            "title": row.title,
            "model": row.model,
            "system_prompt": row.system_prompt,
            "threshold": row.threshold,
            "keep_turns": row.keep_turns,
            "compression_off": row.compression_off,
            "temperature": row.temperature,
            "reasoning_effort": row.reasoning_effort or "",
            "answer_tokens": row.answer_tokens,
            "preview_first": row.preview_first,
            "project": row.project.name if row.project else "",
            "summary_version": row.compression_version,
            "compressed_through": row.compressed_through,
            "truncated_through": row.truncated_through,
            "pinned": row.pinned_at is not None,
            "archived": row.archived_at is not None,
            "created_at": row.created_at.isoformat(),
            "updated_at": row.updated_at.isoformat(),
        },
        summaries=exported_versions(row.pk),
    )


def export_messages(user_id: int, head: ExportHead, after_seq: int) -> list[dict[str, Any]]:
    """The next ``BATCH`` messages after a seq, superseded ones included; empty at the end.

    Also empty if the conversation was deleted meanwhile.
    """
    still_there = Conversation.objects.filter(
        pk=head.conversation_id, owner_id=user_id, deleted_at__isnull=True
    )
    rows = with_turns(
        Message.objects.filter(
            conversation__in=still_there, seq__gt=after_seq, seq__lte=head.through_seq
        )
    )
    return [_exported(row) for row in rows.order_by("seq")[:BATCH]]


def _exported(row: Message) -> dict[str, Any]:
    """All fields of a message that belong to the conversation, named as in the page's JSON."""
    return {
        "seq": row.seq,
        "role": row.role,
        "text": row.text,
        "reasoning": row.reasoning,
        "added_context": row.added_context,
        "tool_calls": row.tool_calls,
        "tool_call_id": row.tool_call_id,
        "tool_name": row.tool_name,
        "seconds": row.seconds,
        "status": row.status,
        "pinned": row.pinned_at is not None,
        "masked": row.masked_at is not None,
        "superseded": row.superseded_at is not None,
        "token_count": row.token_count,
        "created_at": row.created_at.isoformat(),
        "turn": row.turn_id,
        "turn_status": row.turn.status if row.turn else None,
        "model": row.turn.model if row.turn and row.role == "assistant" else "",
    }


aexport_head = in_database_thread(export_head)
aexport_messages = in_database_thread(export_messages)
