"""A few threads for the work of many: whoever asks for much waits behind their own."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from functools import partial
from typing import Any, Final, TypeVar

T = TypeVar("T")

on_behalf_of: ContextVar[Hashable] = ContextVar("on_behalf_of", default=None)
"""For whom the current task works; tasks that it starts work for the same. None: for nobody."""


#: Seconds. What takes longer than that at a stretch is rare.
LONGEST_REST: Final = 0.25


class FairThreads:
    """Threads in which each person's work is done in order, and the people take turns.

    ``each``: how much of one person's work is done at once. ``rest``: how long it then pauses, as
    a share of the time that it took; for work that keeps Python's interpreter from other threads.
    """

    def __init__(self, threads: int, name: str, *, each: int, rest: float = 0.0) -> None:
        self.threads: Final = threads
        self._each = each
        self._rest = rest
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._changed = threading.Condition()
        # In the order of their turns; nobody is in it without work.
        self._waiting: dict[Hashable, deque[tuple[Future[Any], Callable[[], Any]]]] = {}
        self._running: Counter[Hashable] = Counter()
        self._busy = 0
        self._ended = False

    def submit(self, person: Hashable, work: Callable[[], T]) -> Future[T]:
        """The future of what ``work`` returns, called in the context of whoever submits it.

        Work that is cancelled before its turn is not done. Raises RuntimeError after
        :meth:`shutdown`.
        """
        future: Future[T] = Future()
        with self._changed:
            if self._ended:
                raise RuntimeError("These threads take nothing more.")
            self._waiting.setdefault(person, deque()).append(
                (future, partial(copy_context().run, work))
            )
            if self._busy < self.threads:
                self._executor.submit(self._work)
                self._busy += 1
        return future

    def asked_by(self, person: Hashable) -> int:
        """How much of a person's work is done or waits; what was cancelled is not counted."""
        with self._changed:
            waiting = self._waiting.get(person, ())
            return self._running[person] + sum(not future.cancelled() for future, _ in waiting)

    def drop(self) -> None:
        """Cancel what waits; what runs is not waited for."""
        with self._changed:
            dropped = [future for jobs in self._waiting.values() for future, _ in jobs]
            self._waiting.clear()
            self._changed.notify_all()
        for future in dropped:
            future.cancel()

    def join(self) -> None:
        """Return when nothing runs or waits."""
        with self._changed:
            self._changed.wait_for(lambda: not self._busy and not self._waiting)

    def shutdown(self, *, wait: bool = True) -> None:
        """Take nothing more, and end the threads when what was submitted is done."""
        with self._changed:
            self._ended = True
        if wait:
            self.join()
        self._executor.shutdown(wait=wait)

    def _work(self) -> None:
        while (job := self._next()) is not None:
            person, future, work = job
            # False for those whose awaiter is gone.
            if future.set_running_or_notify_cancel():
                begun = time.monotonic()
                _settle(future, work)
                if self._rest:
                    time.sleep(min((time.monotonic() - begun) * self._rest, LONGEST_REST))
            # Nothing of it is kept until the next piece comes.
            del job, future, work
            with self._changed:
                self._running[person] -= 1
                if not self._running[person]:
                    del self._running[person]

    def _next(self) -> tuple[Hashable, Future[Any], Callable[[], Any]] | None:
        """The next piece of work; None, and one thread less is busy, where there is none for it."""
        with self._changed:
            eligible = (one for one in self._waiting if self._running[one] < self._each)
            person = next(eligible, _NOBODY)
            if person is _NOBODY:
                self._busy -= 1
                self._changed.notify_all()
                return None
            jobs = self._waiting.pop(person)
            future, work = jobs.popleft()
            if jobs:
                # Behind all others.
                self._waiting[person] = jobs
            self._running[person] += 1
            return person, future, work


_NOBODY: Final = object()


def _settle(future: Future[Any], work: Callable[[], Any]) -> None:
    try:
        future.set_result(work())
    except BaseException as error:
        # Theirs who wait for it.
        future.set_exception(error)
