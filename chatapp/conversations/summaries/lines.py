"""The lines of a conversation's summary, and the preview that waits, for the person."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import groupby
from typing import Any

from chatapp.conversations.messages.stored import live
from chatapp.conversations.ownership import owned
from chatapp.conversations.projects.lines import KeptLines, read, section_kept
from chatapp.conversations.summaries.versions import carried
from chatapp.live.summary_views import (
    LineView,
    PreviewView,
    SectionView,
    SourceView,
    SummaryLines,
)
from compression import store
from compression.database import in_database_thread, snapshot
from compression.ledger.lines import Line, lines_of

# Sources of one line, ranges of messages, that are shown.
MOST_SOURCES = 50
# Findings of an audit that are shown.
MOST_FOUND = 40


@snapshot()
def summary_lines(user_id: int, code: str) -> SummaryLines:
    """The active summary as lines. Raises NotFound."""
    row = owned(user_id, code)
    base, old = store.read_base(row.pk), carried(user_id, code)
    kept = read(row.project.lines) if row.project else None
    return SummaryLines(
        code=str(row.code),
        version=base.version,
        sections=sections_of(lines_of(base.ledger), carried_over=old.lines, kept=kept),
        earlier=old.code,
        project=row.project.name if row.project else "",
    )


@snapshot()
def waiting_preview(user_id: int, code: str) -> PreviewView | None:
    """The preview of the person's conversation; None if none waits. Raises NotFound."""
    row = owned(user_id, code)
    held = store.preview(row.pk, active=row.compression_version)
    if held is None:
        return None
    made, old = held.summary, carried(user_id, code)
    present = {line.markdown for line in lines_of(store.read_base(row.pk).ledger)}
    lines = lines_of(made.ledger)
    kept = {line.markdown for line in lines}
    return PreviewView(
        id=held.id,
        current=held.current,
        focus=held.focus,
        from_seq=held.from_seq,
        first_seq=made.first_seq,
        through_seq=made.through_seq,
        message_count=made.message_count,
        stays=live(row.pk).filter(seq__gt=made.through_seq).count(),
        source_tokens=made.source_tokens,
        summary_tokens=made.summary_tokens,
        usage_before=made.usage_before,
        usage_after=made.usage_after,
        model=made.model,
        degraded=made.degraded,
        created_at=made.created_at,
        sections=sections_of(lines, carried_over=old.lines, present=present),
        gone=[
            line.text
            for line in lines_of(store.read_base(row.pk).ledger)
            if line.markdown not in kept
        ],
        missing=_words(made.audit.get("missing")),
    )


def sections_of(
    lines: Sequence[Line],
    *,
    carried_over: Collection[str] = (),
    present: Collection[str] | None = None,
    kept: KeptLines | None = None,
) -> list[SectionView]:
    """The lines under their headings.

    ``present``: those of the summary that a preview would replace; ``kept``: the project's.
    """
    return [
        SectionView(
            section=str(section or ""),
            lines=[_line(one, carried_over, present, kept) for one in under],
        )
        for section, under in groupby(lines, key=lambda line: line.section)
    ]


def _line(
    line: Line,
    carried_over: Collection[str],
    present: Collection[str] | None,
    kept: KeptLines | None,
) -> LineView:
    earlier = line.markdown.rpartition("\n")[2] in carried_over
    return LineView(
        key=line.key,
        text=line.text,
        sources=[
            SourceView(first=first, last=last, earlier=earlier) for first, last in _ranges(line)
        ],
        pinned=line.pinned,
        forgettable=line.section is not None and bool(line.sources) and not earlier,
        fresh=present is not None and line.markdown not in present,
        kept=kept is not None and kept.has(section_kept(line), line.text),
    )


def _ranges(line: Line) -> list[tuple[int, int]]:
    """The line's messages as closed ranges: 1, 2, 3, 7 → (1, 3), (7, 7)."""
    if line.section is None:
        return [(line.sources[0], line.sources[-1])] if line.sources else []
    found: list[tuple[int, int]] = []
    for seq in line.sources:
        if found and seq == found[-1][1] + 1:
            found[-1] = (found[-1][0], seq)
        elif len(found) == MOST_SOURCES:
            break
        else:
            found.append((seq, seq))
    return found


def _words(value: Any) -> list[str]:
    """The texts in a stored audit, which may have any shape."""
    if not isinstance(value, list | tuple):
        return []
    return [one for one in value if isinstance(one, str)][:MOST_FOUND]


asummary_lines = in_database_thread(summary_lines)
awaiting_preview = in_database_thread(waiting_preview)
