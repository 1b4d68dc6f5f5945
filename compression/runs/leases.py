"""Work under a lease: the lease is renewed while the work lasts; a lost lease ends the work."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable
from typing import TypeVar

from django.db import DatabaseError

from compression import store
from compression.conf import CompressionSettings
from compression.exceptions import CompressionCancelled, LeaseLost

logger = logging.getLogger(__name__)
R = TypeVar("R")


async def holding(
    work: asyncio.Task[R], conversation_id: int, token: str, settings: CompressionSettings
) -> R:
    """The work's result. Raises LeaseLost, and CompressionCancelled when the work was cancelled.

    The work has ended by the time this returns or raises.
    """
    renewal = asyncio.create_task(_renew(conversation_id, token, settings))
    try:
        await asyncio.wait({work, renewal}, return_when=asyncio.FIRST_COMPLETED)
        lost = not work.done()
        if lost:
            # A run that has just applied its draft gave its lease back itself: its commit stands.
            work.cancel()
            await asyncio.wait({work})
        if work.cancelled():
            raise LeaseLost if lost else CompressionCancelled
        return work.result()
    finally:
        for task in (work, renewal):
            task.cancel()
        await asyncio.gather(work, renewal, return_exceptions=True)


async def _renew(conversation_id: int, token: str, settings: CompressionSettings) -> None:
    """Renew the lease until it is lost, then return."""
    held_at = time.monotonic()
    while True:
        await asyncio.sleep(settings.renew_seconds)
        asked_at = time.monotonic()
        try:
            if not await store.arenew(conversation_id, token):
                return
            held_at = asked_at
        except DatabaseError as error:
            logger.warning("A compression lease could not be renewed: %s", error)
            if asked_at - held_at > settings.lease_seconds:
                return


async def to_its_end(unit: Awaitable[R]) -> R:
    """Await a unit of work that commits whether or not its awaiter is cancelled.

    A cancellation during the commit comes too late and is dropped.
    """
    task = asyncio.ensure_future(unit)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        return await task


async def shielded(unit: Awaitable[None]) -> None:
    """Await work that must be finished; a cancellation meanwhile is raised afterwards."""
    task = asyncio.ensure_future(unit)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise
