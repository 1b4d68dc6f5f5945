"""The continuous upkeep of a process's turns: stops, leases, sweeps, and what is learned."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping

from chatapp.conversations.turns import progress
from chatapp.turns.announcer import Announcer
from chatapp.turns.live_reply import LiveStream

logger = logging.getLogger(__name__)

# Seconds. Another process's Stop is seen within one second; a lease of 30 s is renewed every 10.
STOPS_INTERVAL = 0.9
RENEWAL_INTERVAL = 10.0
SWEEP_INTERVAL = 5.0
# Many turns end within one; the screens of this process count with their figures before.
USAGE_INTERVAL = 5.0
# Seconds before failed work is repeated, so that a database that is away is not asked in a loop.
RETRY_INTERVAL = 1.0


class Upkeep:
    """Maintains the turns of this process, and ends those of processes that died.

    ``streams`` are the runner's, read anew each time. ``stop`` ends one of them.
    ``send_orphaned_queues`` sends queued messages whose turn ended without sending them.
    ``store_usage`` stores what models' providers reported. ``count`` gives the ruler tokens of a
    text.
    """

    def __init__(
        self,
        *,
        process_id: str,
        streams: Mapping[int, LiveStream],
        announcer: Announcer,
        stop: Callable[[int], None],
        send_orphaned_queues: Callable[[], Awaitable[None]],
        store_usage: Callable[[], Awaitable[None]],
        count: Callable[[str], int],
    ) -> None:
        self._process_id = process_id
        self._streams = streams
        self._announcer = announcer
        self._stop = stop
        self._send_orphaned_queues = send_orphaned_queues
        self._store_usage = store_usage
        self._count = count
        self._tasks: list[asyncio.Task[None]] = []

    def begin(self) -> None:
        """Start the upkeep unless it has begun."""
        if not self._tasks:
            works = (self._stop_requested, self._renew, self._sweep, self._learn)
            self._tasks = [asyncio.create_task(_repeat(work), name=work.__name__) for work in works]

    def end(self) -> list[asyncio.Task[None]]:
        """Cancel the upkeep and return its tasks, which are about to end."""
        for task in self._tasks:
            task.cancel()
        return self._tasks

    async def _stop_requested(self) -> None:
        await asyncio.sleep(STOPS_INTERVAL)
        if not self._streams:
            return
        for turn in await progress.astops_requested(list(self._streams)):
            self._stop(turn)

    async def _renew(self) -> None:
        await asyncio.sleep(RENEWAL_INTERVAL)
        held = list(self._streams)
        if not held:
            return
        for turn in await progress.arenew(self._process_id, held):
            stream = self._streams.get(turn)
            # A turn that has just ended has no lease; its task still has work to do.
            if stream is not None:
                stream.lose()

    async def _sweep(self) -> None:
        for ended in await progress.asweep(self._count):
            await self._announcer.ended(ended)
        # Queued messages whose turn ended without sending them, for whatever reason.
        await self._send_orphaned_queues()
        await asyncio.sleep(SWEEP_INTERVAL)

    async def _learn(self) -> None:
        await asyncio.sleep(USAGE_INTERVAL)
        await self._store_usage()


async def _repeat(work: Callable[[], Awaitable[None]]) -> None:
    while True:
        try:
            await work()
        except Exception:
            # Go on whatever broke: without this loop no lease would be renewed again.
            logger.exception("Looking after turns failed; trying again.")
            await asyncio.sleep(RETRY_INTERVAL)
