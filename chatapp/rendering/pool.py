"""Threads for rendering, with a fair share for each person.

Pages and catch-ups are rendered here and nowhere else, so that whoever asks for many slow ones
waits behind their own and nobody else does. Threads share one interpreter: rendering is cut into
slices, and after each the others have it for as long.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from functools import partial
from typing import Final, TypeVar

from chatapp.errors import RateLimited
from chatapp.rendering import kept
from compression.fair_threads import FairThreads, as_long

T = TypeVar("T")

#: One is free for the others while one person's page takes long. More would only compete with the
#: event loop for the interpreter.
THREADS: Final = 2
#: Pieces of work of one person that may wait or be done: their 20 sockets and a browser's tabs.
MOST_WAITING: Final = 32
#: Seconds until who has more waiting may try again.
TRY_AGAIN: Final = 5.0


class RenderingPool:
    """Runs work of many shares in a few threads: in turn, and of one share one at a time."""

    def __init__(self) -> None:
        self._threads = FairThreads(THREADS, "rendering", each=1, pause=as_long)

    async def run(self, share: Hashable, work: Callable[[], T]) -> T:
        """The result of ``work``. ``share`` is whom it is for; who is cancelled is not waited for.

        Raises RateLimited when too much of theirs waits, and what ``work`` raises.
        """
        if self._threads.asked_by(share) >= MOST_WAITING:
            raise RateLimited(retry_after=TRY_AGAIN)
        return await asyncio.wrap_future(self._threads.submit(share, work))

    async def ahead(self, share: Hashable, bodies: list[kept.Body]) -> None:
        """Have ``bodies`` rendered and kept, in slices."""
        bodies = [one for one in bodies if not one.costs_nothing]
        while bodies:
            bodies = await self.run(share, partial(kept.ahead, bodies))

    def shutdown(self) -> None:
        """Drop what waits; what runs is not waited for."""
        self._threads.drop()
        self._threads.shutdown(wait=False)
