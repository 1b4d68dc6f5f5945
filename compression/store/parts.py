"""The finished parts of an incomplete summary: at most one row per conversation.

The next run over the same messages continues after them. They are not a version and are never
shown as one. They are deleted when a version is written or a message under them changes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict
from typing import Any

from django.db import transaction

from compression.ledger.ledger import from_json
from compression.models import AbstractSummary
from compression.planning.parts import Finished
from compression.store.fingerprints import fingerprint
from compression.store.rows import Base, conversations, insert, summaries, writable
from compression.types import Draft, Extracted, Item, Spent, SummaryStatus, Trigger


def keep_parts(
    token: str,
    base: Base,
    finished: Finished,
    items: Sequence[Item],
    *,
    trigger: Trigger,
    focus: str,
) -> bool:
    """Store the finished parts in place of earlier ones; ``items`` are the messages they cover.

    False, with nothing changed, when the lease is lost or the version is no longer active.
    """
    draft = finished.draft
    values: dict[str, Any] = {
        "trigger": trigger.value,
        "first_seq": items[0].seq,
        "through_seq": finished.through_seq,
        "message_count": len(items),
        "source_fingerprint": fingerprint(items),
        "source_tokens": sum(item.tokens for item in items),
        "model": draft.model[:200],
        "prompt_version": draft.prompt_version[:64],
        "cost": draft.spent.cost,
        "audit": {
            "parts": finished.parts,
            # The name that rows of earlier releases have.
            "said": finished.divided_at,
            "focus": focus,
            "notes": list(draft.notes),
            "extracted": [asdict(one) for one in draft.extracted],
            "spent": asdict(draft.spent),
        },
    }
    held = writable(base.conversation_id).filter(
        compression_token=token, compression_version=base.version
    )
    with transaction.atomic():
        if not list(held.select_for_update().values_list("pk", flat=True)):
            return False
        drop_parts(base.conversation_id)
        insert(
            base.conversation_id,
            status=SummaryStatus.PARTIAL,
            parent=base.version,
            ledger=draft.ledger,
            **values,
        )
    return True


def finished_parts(
    base: Base, items: Sequence[Item], *, prompt_versions: Collection[str], focus: str
) -> Finished | None:
    """The finished parts at the beginning of ``items``, if they were requested in the same way.

    Parts whose messages changed, or whose version is no longer active, are deleted (I14). Parts
    that reach beyond ``items`` are kept for a run over more messages.
    """
    row = _rows(base.conversation_id).first()
    if row is None or (row.parent == base.version and row.through_seq > items[-1].seq):
        return None
    covered = [item for item in items if item.seq <= row.through_seq]
    if row.parent != base.version or fingerprint(covered) != row.source_fingerprint:
        drop_parts(base.conversation_id)
        return None
    if row.prompt_version not in prompt_versions or row.audit.get("focus", "") != focus:
        return None
    return _finished(row)


def drop_parts(conversation_id: int, *, token: str | None = None) -> bool:
    """Delete the finished parts. False when there were none.

    With ``token``, only if that run holds the lease.
    """
    if token is not None:
        held = conversations(conversation_id).filter(compression_token=token)
        return bool(_rows(conversation_id).filter(conversation__in=held).delete()[0])
    return bool(_rows(conversation_id).delete()[0])


def _rows(conversation_id: int) -> Any:
    return summaries(conversation_id).filter(status=SummaryStatus.PARTIAL.value)


def _finished(row: AbstractSummary) -> Finished:
    draft = Draft(
        ledger=from_json(row.ledger, row.narrative),
        model=row.model,
        prompt_version=row.prompt_version,
        notes=tuple(row.audit["notes"]),
        spent=Spent(**row.audit["spent"]),
        extracted=tuple(Extracted(**one) for one in row.audit["extracted"]),
    )
    return Finished(
        draft=draft,
        through_seq=row.through_seq,
        parts=row.audit["parts"],
        divided_at=row.audit["said"],
    )
