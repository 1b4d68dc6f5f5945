"""The messages that a version stands for: those of its own span and of earlier versions."""

from __future__ import annotations

from dataclasses import dataclass

from compression.models import AbstractSummary
from compression.store.rows import summaries


@dataclass(frozen=True, slots=True, kw_only=True)
class StandsFor:
    """The messages of all spans that a summary stands for."""

    first_seq: int = 0
    message_count: int = 0
    source_tokens: int = 0
    """Ruler tokens."""


def stands_for(row: AbstractSummary) -> StandsFor:
    """The messages summarised by ``row`` and by the versions that it was made on.

    An edit repeats the span of the version that it changed, so spans are told apart by where they
    begin. A row that never became a version counts as if it had.
    """
    if not row.through_seq:
        return StandsFor()
    # The foreign key belongs to the host, so the abstract model does not know it.
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
