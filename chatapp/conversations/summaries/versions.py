"""The versions of a conversation's summary, for the person."""

from __future__ import annotations

from functools import lru_cache
from typing import Any
from uuid import UUID

from chatapp.conversations.ownership import owned
from chatapp.live.view_models import Carried
from chatapp.models import Conversation, Summary
from compression import store
from compression.database import in_database_thread
from compression.ledger.ledger import to_json


def versions(user_id: int, code: str) -> list[dict[str, Any]]:
    """All versions, newest first, as JSON. Raises NotFound."""
    return versions_of(owned(user_id, code).pk)


def versions_of(conversation_id: int) -> list[dict[str, Any]]:
    """The same for a conversation that is known to be the person's."""
    found = store.versions(conversation_id)
    triggers = {one.version: str(one.trigger) for one in found}
    return [{**_shown(one), "instead_of": triggers.get(one.version - 1, "")} for one in found]


def instead_of(row: Summary) -> str:
    """The trigger of the version before, if this one took it back to no summary; else empty."""
    if row.restored_from != 0:
        return ""
    before = Summary.objects.filter(conversation=row.conversation_id, version=row.version - 1)
    return before.values_list("trigger", flat=True).first() or ""


def exported_versions(conversation_id: int) -> list[dict[str, Any]]:
    """All versions with everything needed to import them: ledger and sources too."""
    exported = []
    for one in store.versions(conversation_id):
        entries, narrative = to_json(one.ledger)
        exported.append(
            {
                **_shown(one),
                "ledger": entries,
                "narrative": narrative,
                "source_fingerprint": one.source_fingerprint,
                "prompt_version": one.prompt_version,
            }
        )
    return exported


def _shown(one: store.Version) -> dict[str, Any]:
    return {
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


def carried(user_id: int, code: str) -> Carried:
    """The part of the summary that came from the conversation that this one continues."""
    row = owned(user_id, code)
    earlier = Conversation.objects.filter(
        continuations=row.pk, owner_id=user_id, deleted_at__isnull=True
    )
    return Carried(
        code=str(earlier.values_list("code", flat=True).first() or ""),
        lines=carried_lines(row),
    )


def carried_lines(row: Conversation) -> frozenset[str]:
    """The lines of the summary that was carried over from another conversation, if one was."""
    return _carried_lines(row.pk, row.code)


# Kept, because it is read several times a turn and decided when a conversation is made. The code
# is a part of the key, since no other conversation ever has it.
@lru_cache(maxsize=256)
def _carried_lines(conversation_id: int, code: UUID) -> frozenset[str]:
    text = store.carried_over(conversation_id)
    return frozenset(text.split("\n")) if text else frozenset()


aversions = in_database_thread(versions)
acarried = in_database_thread(carried)
