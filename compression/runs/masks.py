"""Putting masks on and taking them off, for a host that records them (:class:`ports.Masks`)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from compression import signals, store
from compression.engine import Engine
from compression.exceptions import NothingToUndo
from compression.planning import masking
from compression.ports import MaskChange, Masks
from compression.types import Item, Sizes

logger = logging.getLogger(__name__)


async def mask(
    conversation_id: int,
    *,
    engine: Engine,
    sizes: Sizes,
    items: Sequence[Item] | None = None,
    at_compression: bool = False,
) -> MaskChange | None:
    """Mask the old tool results and long arguments that are worth it, as one batch.

    ``items`` are the messages of the next request; None: all after the boundary.
    ``at_compression``: less is worth it, because the provider's cache is lost anyway. Returns None
    if nothing was masked; the engine needs ``masks``.
    """
    if engine.masks is None:
        return None
    if items is None:
        _, items = await store.aread(conversation_id, engine.transcript)
    tokens = await asyncio.to_thread(_planned, items, sizes, engine, at_compression)
    if not tokens:
        return None
    change = await store.aput_on(engine.masks, conversation_id, tokens)
    return await _told(conversation_id, change, on=True)


def _planned(
    items: Sequence[Item], sizes: Sizes, engine: Engine, at_compression: bool
) -> dict[int, int]:
    """Seq → ruler tokens of each message of the batch once it is masked."""
    batch = masking.batch(items, sizes, at_compression=at_compression)
    if batch is None:
        return {}
    chosen = frozenset(batch.seqs)
    count = engine.counter.count
    return {item.seq: masking.tokens_masked(item, count) for item in items if item.seq in chosen}


async def mask_at_compression(conversation_id: int, *, engine: Engine, sizes: Sizes) -> None:
    """Mask what is left of a conversation that has just been compressed.

    A failure is logged.
    """
    try:
        await mask(conversation_id, engine=engine, sizes=sizes, at_compression=True)
    except Exception:
        # The summary is in place, and masking can wait.
        logger.exception("Conversation %s was compressed, but not masked", conversation_id)


async def unmask(conversation_id: int, batch: int, *, masks: Masks) -> MaskChange:
    """Take the masks of a batch off. Raises NothingToUndo if it has none on."""
    change = await store.atake_off(masks, conversation_id, batch)
    if change is None:
        raise NothingToUndo("These masks were taken off already.")
    await _told(conversation_id, change, on=False)
    return change


async def _told(conversation_id: int, change: MaskChange | None, *, on: bool) -> MaskChange | None:
    if change is not None:
        await signals.send(
            signals.masks_changed, conversation_id=conversation_id, change=change, on=on
        )
    return change
