"""The messages that a version stands for: its own span, and those of the versions before it."""

from __future__ import annotations

from dataclasses import dataclass

from compression.models import AbstractSummary
from compression.store.rows import summaries


@dataclass(frozen=True, slots=True, kw_only=True)
class StandsFor:
    """The messages that a summary stands in for, all spans together."""

    first_seq: int = 0
    message_count: int = 0
    source_tokens: int = 0
    """Ruler tokens."""


def stands_for(row: AbstractSummary) -> StandsFor:
    """Everything that ``row`` and the versions that it was made on took in.

    Each version says what its own span was; an edit repeats the span of the version it changed,
    so spans are told apart by where they begin. Of one that never became a version it is what it
    would have stood for.
    """
    if not row.through_seq:
        return StandsFor()
    # The foreign key is the host's, so the abstract model does not know it.
    rows = summaries(getattr(row, "conversation_id")).filter(version__gt=0)  # noqa: B009
    before = {
        one.version: one
        for one in rows.only(
            "version", "parent", "restored_from", "first_seq", "message_count", "source_tokens"
        )
    }
    spans = {row.first_seq: row}
    number = row.parent
    while number in before:
        one = before.pop(number)
        if one.message_count and one.restored_from != 0:
            spans.setdefault(one.first_seq, one)
        number = one.parent
    return StandsFor(
        first_seq=min(spans),
        message_count=sum(one.message_count for one in spans.values()),
        source_tokens=sum(one.source_tokens for one in spans.values()),
    )
