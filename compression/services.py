"""The functions that a host calls to compress. All are async; none touches the ORM itself.

A host builds an :class:`Engine` once and passes :class:`Sizes` with each call. The machine changes
a conversation only under that conversation's lease. A person's change needs no lease, and wins
over a machine's draft that comes later.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from compression import conf, signals, store
from compression.by_hand.again import compress_again
from compression.by_hand.lines import edit_lines, limit_tokens
from compression.by_hand.previews import (
    apply_preview,
    apply_waiting,
    discard_preview,
    preview,
    preview_ahead,
)
from compression.conf import CompressionSettings
from compression.engine import Engine, Request
from compression.exceptions import CompressionRunning, NothingToCompress
from compression.ledger.editing import apply_edit
from compression.ledger.markdown import render
from compression.planning import planner
from compression.ports import TokenCounter, Transcript
from compression.runs.masks import mask, mask_at_compression, unmask
from compression.runs.results import applied_outcome, audit_now, measure_prepared
from compression.runs.run import claimed, living
from compression.store import CompressionState
from compression.types import Ledger, Outcome, Sizes, Trigger

__all__ = [
    "Engine",
    "apply_preview",
    "apply_ready",
    "apply_waiting",
    "cancel",
    "clear",
    "compress",
    "compress_again",
    "discard_preview",
    "edit",
    "edit_lines",
    "mask",
    "prepare",
    "preview",
    "preview_ahead",
    "redo",
    "restore",
    "settled",
    "undo",
    "unmask",
]

SETTLED_SECONDS = 0.2
"""Interval at which :func:`settled` looks; a run of another process cannot notify this one."""


async def compress(
    conversation_id: int,
    *,
    engine: Engine,
    sizes: Sizes,
    trigger: Trigger,
    focus: str = "",
    through_seq: int | None = None,
    locks_input: bool = True,
    extract_only: bool = False,
    settings: CompressionSettings | None = None,
    on_started: Callable[[], object] | None = None,
) -> Outcome:
    """Compress now. Returns the outcome; its ``code`` says why a run did not succeed.

    ``focus`` is what the summary should keep above all. ``through_seq`` asks to compress up to
    that message. ``extract_only`` asks no model. ``on_started`` is called once the run of this call
    has begun; the signal does not tell whose run it is. A host that prepares summaries tries
    :func:`apply_ready` first, which needs no model.

    Raises NothingToCompress before any summariser is called, and CompressionRunning when another
    run holds the lease. A background run is then promoted (``fields["promoted"]``), and
    :func:`settled` returns when it has ended.
    """
    request = Request(
        conversation_id=conversation_id,
        engine=engine,
        sizes=sizes,
        trigger=trigger,
        settings=settings or conf.settings(),
        focus=focus,
        through_seq=through_seq,
        locks_input=locks_input,
        extract_only=extract_only,
        on_started=on_started,
    )
    run = await claimed(request)
    if run is None and not focus and through_seq is None:
        promoted = await store.apromote(conversation_id, trigger=trigger, locks_input=locks_input)
        if promoted:
            await _announce_promotion(request)
            raise CompressionRunning(fields={"promoted": True})
        # The background run may have ended between the claim and the promotion.
        run = await claimed(request)
    if run is None:
        raise CompressionRunning(fields={"promoted": False})
    return await run.outcome()


async def prepare(
    conversation_id: int,
    *,
    engine: Engine,
    sizes: Sizes,
    settings: CompressionSettings | None = None,
) -> Outcome:
    """Make a draft in the background and store it, input unlocked, without the extract.

    A success has version 0, or the version of the applied draft if a request came to wait for the
    run. Raises NothingToCompress and CompressionRunning.
    """
    if not engine.summarizers:
        raise NothingToCompress("There is no model to prepare a summary in the background.")
    request = Request(
        conversation_id=conversation_id,
        engine=engine,
        sizes=sizes,
        trigger=Trigger.BACKGROUND,
        settings=settings or conf.settings(),
    )
    run = await claimed(request)
    if run is None:
        raise CompressionRunning(fields={"promoted": False})
    return await run.outcome()


async def apply_ready(conversation_id: int, *, engine: Engine, sizes: Sizes) -> Outcome | None:
    """Make a prepared draft active, within milliseconds and without a model.

    Returns None when there is no draft, its source or parent has changed, a locking run is under
    way, or it would free less than 0.10 of the budget now. Sends only ``compression_completed``.
    """
    began = time.monotonic()
    found = await store.aread_ready(conversation_id, engine.transcript)
    if found is None:
        return None
    prepared, base, items = found
    measures = await asyncio.to_thread(
        measure_prepared,
        prepared.through_seq,
        prepared.summary_tokens,
        base.text,
        items,
        sizes,
        engine.counter,
    )
    if not planner.worth_applying(measures.span_tokens, measures.growth_tokens, sizes):
        return None
    version = await store.aapply_ready(
        conversation_id,
        prepared,
        engine.transcript,
        usage_before=measures.before.share,
        usage_after=measures.after.share,
        audit=audit_now(prepared.audit, measures, engine),
    )
    if version is None:
        return None
    await mask_at_compression(conversation_id, engine=engine, sizes=sizes)
    outcome = applied_outcome(
        prepared, measures, version, trigger=prepared.trigger, seconds=time.monotonic() - began
    )
    await signals.send(
        signals.compression_completed, conversation_id=conversation_id, outcome=outcome
    )
    return outcome


async def cancel(conversation_id: int) -> bool:
    """End a running compression; False when none was running.

    A run of this process stops at once, one of another process at its next renewal. The input is
    unlocked at once in both cases.
    """
    run = living(conversation_id)
    # First, so that a request that goes on without a summary finds the cancellation.
    taken = await store.acancel(conversation_id)
    if run is not None:
        run.cancel()
    return taken or run is not None


async def settled(conversation_id: int) -> CompressionState:
    """Wait until no compression runs in any process; a crashed one ends when its lease expires."""
    # Polling, because the run may live in another process.
    while (state := await store.aread_state(conversation_id)).running:  # noqa: ASYNC110
        await asyncio.sleep(SETTLED_SECONDS)
    return state


async def undo(
    conversation_id: int,
    *,
    transcript: Transcript,
    author_id: int | None = None,
    expected_version: int | None = None,
) -> int:
    """Restore what the active version was made on. Returns the new version.

    Raises NothingToUndo, StaleSource when a message under it was superseded or removed, and
    StaleVersion when the summary changed meanwhile: since it was read, where
    ``expected_version`` says which version that was.
    """
    return await _changed(
        conversation_id,
        store.aundo(
            conversation_id,
            author_id=author_id,
            transcript=transcript,
            expected_version=expected_version,
        ),
    )


async def redo(
    conversation_id: int,
    *,
    transcript: Transcript,
    author_id: int | None = None,
    expected_version: int | None = None,
) -> int:
    """Restore what the last undo took away. Returns the new version. Raises as :func:`undo`."""
    return await _changed(
        conversation_id,
        store.aredo(
            conversation_id,
            author_id=author_id,
            transcript=transcript,
            expected_version=expected_version,
        ),
    )


async def restore(
    conversation_id: int,
    version: int,
    *,
    transcript: Transcript,
    author_id: int | None = None,
    expected_version: int | None = None,
) -> int:
    """Make an older version's content active; 0 means no summary. Raises as :func:`undo`."""
    return await _changed(
        conversation_id,
        store.arestore(
            conversation_id,
            version,
            author_id=author_id,
            transcript=transcript,
            expected_version=expected_version,
        ),
    )


async def edit(
    conversation_id: int,
    text: str,
    *,
    expected_version: int,
    author_id: int | None,
    counter: TokenCounter,
    sizes: Sizes | None,
    settings: CompressionSettings | None = None,
) -> int:
    """Replace the summary by a person's text of at most twice the cap. Returns the new version.

    ``sizes`` is None if the window is unknown; the cap is then the setting. Raises StaleVersion
    with both texts when ``expected_version`` is not the active one, and SummaryInvalid naming the
    line that cannot be read.
    """
    base = await store.aread_base(conversation_id)
    if base.version != expected_version:
        raise store.stale(base, text)
    planned = (settings or conf.settings()).planner
    limit = limit_tokens(sizes, planned)

    def edited() -> tuple[Ledger, str, int]:
        ledger = apply_edit(base.ledger, text, limit_tokens=limit, count=counter.count)
        rendered = render(ledger)
        return ledger, rendered, counter.count(rendered)

    ledger, rendered, tokens = await asyncio.to_thread(edited)
    return await _changed(
        conversation_id,
        store.aedit(base, rendered, ledger, author_id=author_id, summary_tokens=tokens),
    )


async def clear(
    conversation_id: int,
    *,
    transcript: Transcript,
    author_id: int | None = None,
    through_seq: int | None = None,
) -> int:
    """Move the boundary after the last ended turn with no summary. Returns the new version.

    Can be undone. Raises NothingToCompress when the boundary is there already, and StaleVersion
    when the summary changed meanwhile.
    """
    return await _changed(
        conversation_id,
        store.aclear(
            conversation_id, author_id=author_id, transcript=transcript, through_seq=through_seq
        ),
    )


async def _changed(conversation_id: int, change: Awaitable[int]) -> int:
    """Do a person's change and tell the host of it; the new version."""
    version = await change
    await signals.send(signals.summary_changed, conversation_id=conversation_id, version=version)
    return version


async def _announce_promotion(request: Request) -> None:
    run = living(request.conversation_id)
    if run is not None:
        await run.announce(request.trigger, locks_input=request.locks_input)
        return
    # The run lives in another process, and only that one knows what it compresses.
    await signals.send(
        signals.compression_started,
        conversation_id=request.conversation_id,
        trigger=request.trigger,
        message_count=0,
        source_tokens=0,
        locks_input=request.locks_input,
    )
