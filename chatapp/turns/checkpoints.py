"""Checkpoints: texts of running replies, stored in batches before viewers are shown them.

Text once shown is thus in the database, and is still there for other processes if this one dies.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable
from dataclasses import replace

from chatapp.conversations.turns import progress
from chatapp.conversations.turns.progress import Checkpoint

logger = logging.getLogger(__name__)

# Seconds. Texts that arrive within this time are stored together, so that many streams cost little.
GATHER = 0.02
# Seconds of waiting for each stored character, so that storing takes at most a fifth of the time:
# many long texts are shown less often. Measured on PostgreSQL, the slower database.
A_CHARACTER = 6e-8
# Seconds after which text is shown though it could not be stored. While the database is away, a
# reply that goes on is worth more than the words that a crash would then take back.
PATIENCE = 1.0
# Seconds before a failed write is tried again.
RETRY_INTERVAL = 0.2


class Checkpoints:
    """The texts of this process's streams that are about to be stored."""

    def __init__(self) -> None:
        self._waiting: dict[int, Checkpoint] = {}
        """By message, of each the newest."""
        self._waiters: list[asyncio.Future[set[int]]] = []
        """They are told which messages are streaming no more."""
        self._worker: asyncio.Task[None] | None = None
        self._next_at = 0.0
        self._failing_since: float | None = None
        self._away = False
        """Nobody waits: nothing could be stored for so long."""

    async def store(self, one: Checkpoint) -> bool:
        """Wait until the text is stored and may be shown. False: another process ended the turn.

        While the database is away, only the first call waits for it.
        """
        self._add([one])
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work(), name="storing texts")
        if self._away:
            return True
        stored = asyncio.get_running_loop().create_future()
        self._waiters.append(stored)
        return one.message_id not in await stored

    async def aclose(self) -> None:
        """Stop storing."""
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)

    def _add(self, checkpoints: Iterable[Checkpoint], *, newer: bool = True) -> None:
        for one in checkpoints:
            other = self._waiting.get(one.message_id, one)
            kept = one if newer else other
            if one.first != other.first:
                kept = replace(kept, first=True)
            self._waiting[one.message_id] = kept

    async def _work(self) -> None:
        """Store checkpoints until none are left."""
        while self._waiting:
            if (pause := self._next_at - time.monotonic()) > 0:
                await asyncio.sleep(pause)
            batch, self._waiting = list(self._waiting.values()), {}
            waiters, self._waiters = self._waiters, []
            storing = asyncio.ensure_future(progress.acheckpoint(batch))
            await asyncio.wait({storing}, timeout=PATIENCE)
            if not storing.done():
                self._give_up_waiting(waiters)
                await asyncio.wait({storing})
            if (error := storing.exception()) is not None:
                self._try_again(batch, waiters, error)
                continue
            self._away, self._failing_since = False, None
            _tell(waiters, storing.result())
            characters = sum(len(one.text) + len(one.reasoning) for one in batch)
            self._next_at = time.monotonic() + GATHER + characters * A_CHARACTER

    def _try_again(
        self, batch: list[Checkpoint], waiters: list[asyncio.Future[set[int]]], error: BaseException
    ) -> None:
        now = time.monotonic()
        if self._failing_since is None:
            self._failing_since = now
            logger.warning("%d texts could not be stored yet: %s", len(batch), error)
        self._add(batch, newer=False)
        self._waiters = waiters + self._waiters
        if now - self._failing_since >= PATIENCE:
            self._give_up_waiting(self._waiters)
        self._next_at = now + RETRY_INTERVAL

    def _give_up_waiting(self, waiters: list[asyncio.Future[set[int]]]) -> None:
        if not self._away:
            logger.warning("The database has stored no text for %g s.", PATIENCE)
        self._away = True
        for those in (waiters, self._waiters):
            _tell(those, set())


def _tell(waiters: list[asyncio.Future[set[int]]], ended: set[int]) -> None:
    """Wake the waiters, except those that were cancelled."""
    for one in waiters:
        if not one.done():
            one.set_result(ended)
    waiters.clear()
