"""Previews: a summary is written and waits until a person applies or discards it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from compression import conf, signals, store
from compression.by_hand.lines import limit_tokens, with_changes
from compression.conf import CompressionSettings
from compression.engine import Engine, Request
from compression.exceptions import CompressionError, CompressionRunning
from compression.ledger.lines import LineChange
from compression.runs.masks import mask_at_compression
from compression.runs.results import applied_outcome, audit_now, measure_prepared
from compression.runs.run import claimed
from compression.store import Finished, Preview
from compression.types import Ledger, Outcome, Sizes, Trigger


async def preview(
    conversation_id: int,
    *,
    engine: Engine,
    sizes: Sizes,
    focus: str = "",
    from_seq: int | None = None,
    through_seq: int | None = None,
    settings: CompressionSettings | None = None,
    on_started: Callable[[], object] | None = None,
) -> Outcome:
    """Write a summary and store it as the preview, input unlocked. A success has version 0.

    ``from_seq``: the messages before it, back to the boundary, are to stay word for word. They are
    counted as pinned, and the host pins them when it applies the preview. The other parameters, and
    what it raises, are those of :func:`compression.services.compress`.
    """
    request = Request(
        conversation_id=conversation_id,
        engine=engine,
        sizes=sizes,
        trigger=Trigger.PREVIEW,
        settings=settings or conf.settings(),
        focus=focus,
        from_seq=from_seq,
        through_seq=through_seq,
        on_started=on_started,
    )
    run = await claimed(request)
    if run is None:
        raise CompressionRunning(fields={"promoted": False})
    return await run.outcome()


async def preview_ahead(
    conversation_id: int,
    *,
    engine: Engine,
    sizes: Sizes,
    settings: CompressionSettings | None = None,
) -> Outcome | None:
    """Write a preview nobody asked for, because a person wants to see each summary first.

    None, and nothing is written, while one waits, or until a tenth of the budget has come since the
    last one was discarded. Otherwise as :func:`preview`.
    """
    waiting = await store.apreview(conversation_id)
    if waiting is not None and waiting.current:
        return None
    discarded = await store.adiscarded_at(conversation_id)
    if discarded is not None:
        _, items = await store.aread(conversation_id, engine.transcript)
        more = sum(item.tokens for item in items) - discarded
        if sizes.share(more) < store.REPLACES_READY:
            return None
    return await preview(conversation_id, engine=engine, sizes=sizes, settings=settings)


async def apply_preview(
    conversation_id: int,
    preview_id: int,
    changes: Sequence[LineChange] = (),
    *,
    engine: Engine,
    sizes: Sizes,
    author_id: int | None,
    settings: CompressionSettings | None = None,
) -> Outcome:
    """Apply the preview with a person's changes of its lines, as one version and without a model.

    Raises StaleVersion when it is out of date, or was applied or discarded already; StaleSource
    when a message of it has changed; SummaryInvalid as :func:`compression.services.edit_lines`; and
    CompressionRunning while a run is under way.
    """
    held = await store.apreview(conversation_id)
    if held is None or held.id != preview_id:
        raise store.preview_over()
    ledger, text = held.summary.ledger, held.summary.text
    tokens = held.summary.summary_tokens
    if changes:
        limit = limit_tokens(sizes, (settings or conf.settings()).planner)
        ledger, text, tokens = await asyncio.to_thread(
            with_changes, ledger, changes, engine.counter, limit_tokens=limit
        )
    applied = _Applied(
        ledger=ledger,
        text=text,
        tokens=tokens,
        trigger=Trigger.MANUAL,
        author_id=author_id if changes else None,
    )
    return await _apply(conversation_id, held, applied, engine, sizes)


async def apply_waiting(conversation_id: int, *, engine: Engine, sizes: Sizes) -> Outcome | None:
    """Apply the preview that waits, because the next request does not fit without it.

    None when there is none that can be applied.
    """
    held = await store.apreview(conversation_id)
    if held is None or not held.current or held.from_seq is not None:
        return None
    summary = held.summary
    applied = _Applied(
        ledger=summary.ledger,
        text=summary.text,
        tokens=summary.summary_tokens,
        trigger=Trigger.THRESHOLD,
    )
    try:
        return await _apply(conversation_id, held, applied, engine, sizes)
    except CompressionError:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Applied:
    """What becomes of a preview."""

    ledger: Ledger
    text: str
    tokens: int
    trigger: Trigger
    author_id: int | None = None


async def _apply(
    conversation_id: int, held: Preview, applied: _Applied, engine: Engine, sizes: Sizes
) -> Outcome:
    began, summary = time.monotonic(), held.summary
    base, items = await store.aread(conversation_id, engine.transcript)
    measures = await asyncio.to_thread(
        measure_prepared,
        summary.through_seq,
        applied.tokens,
        base.text,
        items,
        sizes,
        engine.counter,
    )
    finished = Finished(
        text=applied.text,
        ledger=applied.ledger,
        summary_tokens=applied.tokens,
        usage_before=measures.before.share,
        usage_after=measures.after.share,
        audit=audit_now(summary.audit, measures, engine),
        trigger=applied.trigger,
        author_id=applied.author_id,
    )
    version = await store.aapply_preview(conversation_id, held.id, finished, engine.transcript)
    await mask_at_compression(conversation_id, engine=engine, sizes=sizes)
    outcome = applied_outcome(
        summary, measures, version, trigger=applied.trigger, seconds=time.monotonic() - began
    )
    await signals.send(
        signals.compression_completed, conversation_id=conversation_id, outcome=outcome
    )
    return outcome


async def discard_preview(conversation_id: int, preview_id: int) -> None:
    """Discard the preview. Raises StaleVersion when it was applied or discarded already."""
    if not await store.adiscard_preview(conversation_id, preview_id):
        raise store.preview_over()
    version = (await store.aread_base(conversation_id)).version
    await signals.send(signals.summary_changed, conversation_id=conversation_id, version=version)
