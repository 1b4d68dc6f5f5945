"""The versions of a conversation's summary, as the person may see them."""

from __future__ import annotations

from typing import Any

from chatapp.conversations.access import owned
from compression import store
from compression.database import across


def versions(user_id: int, code: str) -> list[dict[str, Any]]:
    """Every version, newest first, as JSON. Raises NotFound."""
    return versions_of(owned(user_id, code).pk)


def versions_of(conversation_id: int) -> list[dict[str, Any]]:
    """The versions of a conversation that is known to be the person's."""
    return [
        {
            "version": one.version,
            "parent": one.parent,
            "restored_from": one.restored_from,
            "status": str(one.status),
            "trigger": str(one.trigger),
            "text": one.text,
            "first_seq": one.first_seq,
            "through_seq": one.through_seq,
            "message_count": one.message_count,
            "source_tokens": one.source_tokens,
            "summary_tokens": one.summary_tokens,
            "usage_before": one.usage_before,
            "usage_after": one.usage_after,
            "model": one.model,
            "degraded": one.degraded,
            "cost": float(one.cost) if one.cost is not None else None,
            "duration": one.duration,
            "audit": dict(one.audit),
            "by_person": one.author_id is not None,
            "created_at": one.created_at.isoformat(),
        }
        for one in store.versions(conversation_id)
    ]


aversions = across(versions)
