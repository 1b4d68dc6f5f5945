"""Threads for rendering, shared fairly by people.

All pages and states are rendered here, so that a person with many slow ones delays only their own.
Threads share one interpreter, so rendering is cut into slices, and between the slices of a person's
long work others get as much time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from functools import partial
from typing import Final, TypeVar

from chatapp.errors import RateLimited
from chatapp.rendering import kept
from compression.fair_threads import BURST, FairThreads

T = TypeVar("T")

#: Two, so that one is free for others while one person's page takes long. More would only compete
#: with the event loop for the interpreter.
THREADS: Final = 2
#: Pieces of one person's work that may wait or run: for their 20 sockets and a browser's tabs.
MOST_WAITING: Final = 32
#: Seconds after which a person with too much waiting may try again.
TRY_AGAIN: Final = 5.0


class RenderingPool:
    """Runs the work of many shares in a few threads: in turns, one piece of a share at a time."""

    def __init__(self) -> None:
        self._threads = FairThreads(THREADS, "rendering", each=1, burst=BURST)

    async def run(self, share: Hashable, work: Callable[[], T]) -> T:
        """The result of ``work`` for ``share``, the person or viewer it is for.

        If the caller is cancelled, work that has not begun is dropped. Raises RateLimited when too
        much work of the share waits, and whatever ``work`` raises.
        """
        if self._threads.pending_of(share) >= MOST_WAITING:
            raise RateLimited(retry_after=TRY_AGAIN)
        return await asyncio.wrap_future(self._threads.submit(share, work))

    async def ahead(self, share: Hashable, bodies: list[kept.Body]) -> None:
        """Render and cache ``bodies``, in slices."""
        bodies = [one for one in bodies if not one.costs_nothing]
        while bodies:
            bodies = await self.run(share, partial(kept.ahead, bodies))

    def shutdown(self) -> None:
        """Drop waiting work, without waiting for what runs."""
        self._threads.drop()
        self._threads.shutdown(wait=False)
