"""Threads for rendering, with a fair share for each person.

Pages and catch-ups are rendered here and nowhere else, so that whoever asks for many slow ones
waits behind their own and nobody else does. Threads share one interpreter: rendering is cut into
slices, and between two of them the others have their turn.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import Any, Final, TypeVar

from chatapp.errors import RateLimited
from chatapp.rendering import kept

T = TypeVar("T")

#: One is free for the others while one person's page takes long. More would only compete with the
#: event loop for the interpreter.
THREADS: Final = 2
#: Pieces of work of one person that may wait: their 20 sockets and a browser's tabs.
MOST_WAITING: Final = 32
#: Seconds until who has more waiting may try again.
TRY_AGAIN: Final = 5.0


class RenderingPool:
    """Runs work of many shares in a few threads: in turn, and of one share one at a time."""

    def __init__(self, threads: int = THREADS) -> None:
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix="rendering")
        self._lock = threading.Lock()
        self._waiting: dict[Hashable, deque[tuple[Future[Any], Callable[[], Any]]]] = {}
        # In the order of their turns.
        self._running: set[Hashable] = set()

    async def run(self, share: Hashable, work: Callable[[], T]) -> T:
        """What ``work`` returns. ``share`` is whom it is for; who is cancelled is not waited for.

        Raises RateLimited when too much of theirs waits, and what ``work`` raises.
        """
        future: Future[T] = Future()
        with self._lock:
            jobs = self._waiting.setdefault(share, deque())
            if len(jobs) >= MOST_WAITING:
                jobs = self._waiting[share] = deque(one for one in jobs if not one[0].cancelled())
            if len(jobs) >= MOST_WAITING:
                raise RateLimited(retry_after=TRY_AGAIN)
            jobs.append((future, partial(copy_context().run, work)))
        self._executor.submit(self._next)
        return await asyncio.wrap_future(future)

    async def ahead(self, share: Hashable, bodies: list[kept.Body]) -> None:
        """Have ``bodies`` rendered and kept, in slices."""
        while bodies:
            bodies = await self.run(share, partial(kept.ahead, bodies))

    def shutdown(self) -> None:
        """Drop what waits; what runs is not waited for."""
        with self._lock:
            dropped = [future for jobs in self._waiting.values() for future, _ in jobs]
            self._waiting.clear()
        for future in dropped:
            future.cancel()
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _next(self) -> None:
        """Do the next piece of work, of a share of which none is done now."""
        with self._lock:
            share = next((one for one in self._waiting if one not in self._running), None)
            if share is None:
                return
            jobs = self._waiting.pop(share)
            future, work = jobs.popleft()
            if jobs:
                # Behind all others.
                self._waiting[share] = jobs
            self._running.add(share)
        try:
            # False for a client that is gone.
            if future.set_running_or_notify_cancel():
                _settle(future, work)
        finally:
            with self._lock:
                self._running.discard(share)
            # Whoever was passed over meanwhile; nothing more is taken once it is shut down.
            with suppress(RuntimeError):
                self._executor.submit(self._next)


def _settle(future: Future[Any], work: Callable[[], Any]) -> None:
    try:
        future.set_result(work())
    except BaseException as error:
        # Theirs who wait for it.
        future.set_exception(error)
