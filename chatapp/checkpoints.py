"""Storing what streams have said, before anybody is shown it: many texts at once, again and again.

Words that are in the database are not taken back by the next process that reads it, whatever has
become of the one that wrote them.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable
from dataclasses import replace

from chatapp.conversations import progress
from chatapp.conversations.progress import Checkpoint

logger = logging.getLogger(__name__)

# Seconds. Texts that come within them are stored together, so that many streams cost little.
GATHER = 0.02
# Storing takes at most a fifth of the time: where texts are many and long, they are shown rarer.
SHARE = 4
# Seconds after which words are shown that could not be stored: the database is away, and a reply
# that goes on is worth more than the words that a crash at that very moment would take back.
PATIENCE = 1.0
# Before what could not be stored is tried again.
RETRY_INTERVAL = 0.2


class Checkpoints:
    """The texts of this process's streams on their way into the database."""

    def __init__(self) -> None:
        self._waiting: dict[int, Checkpoint] = {}
        #: By message, of each the newest.
        self._waiters: list[asyncio.Future[set[int]]] = []
        self._worker: asyncio.Task[None] | None = None
        self._next_at = 0.0
        self._away = False
        #: Nothing could be stored when it was tried last.

    async def store(self, one: Checkpoint) -> bool:
        """Return when the text is stored and may be shown; False: the turn is another's by now.

        A database that is away is waited for once, and not again before it has come back.
        """
        self._wait_for_a_round([one])
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work(), name="storing texts")
        if self._away:
            return True
        stored = asyncio.get_running_loop().create_future()
        self._waiters.append(stored)
        try:
            async with asyncio.timeout(PATIENCE):
                return one.message_id not in await stored
        except TimeoutError:
            self._away = True
            logger.warning("The database has taken no text for %g s.", PATIENCE)
            return True

    async def aclose(self) -> None:
        """Store nothing from now on."""
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)

    def _wait_for_a_round(self, checkpoints: Iterable[Checkpoint], *, newer: bool = True) -> None:
        for one in checkpoints:
            other = self._waiting.get(one.message_id, one)
            kept = one if newer else other
            self._waiting[one.message_id] = replace(kept, first=one.first or other.first)

    async def _work(self) -> None:
        """Store what waits, until nothing does."""
        while self._waiting:
            await asyncio.sleep(max(0.0, self._next_at - time.monotonic()))
            batch, self._waiting = list(self._waiting.values()), {}
            waiters, self._waiters = self._waiters, []
            begun = time.monotonic()
            try:
                ended = await progress.acheckpoint(batch)
            except Exception as error:
                if not self._away:
                    logger.warning("%d texts could not be stored yet: %s", len(batch), error)
                self._wait_for_a_round(batch, newer=False)
                self._waiters = waiters + self._waiters
                self._next_at = time.monotonic() + RETRY_INTERVAL
                continue
            self._away = False
            now = time.monotonic()
            self._next_at = now + max(GATHER, SHARE * (now - begun))
            for stored in waiters:
                # Whoever has given up waits no longer.
                if not stored.done():
                    stored.set_result(ended)
