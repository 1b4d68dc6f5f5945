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


Pause = Callable[[float, bool], float]
"""Seconds that a person pauses, by those that their work took, and whether more of it waits."""

#: Seconds.
LONGEST_PAUSE: Final = 0.25


def as_long(took: float, more: bool) -> float:
    """After any work."""
    return took


def as_long_if_more(took: float, more: bool) -> float:
    """After work of somebody who asks for more than is done at once."""
    return took if more else 0.0


class FairThreads:
    """Threads in which each person's work is done in order, and the people take turns.

    ``each``: how much of one person's work is done at once. ``pause``: how long none of theirs is
    begun after it. Threads share one interpreter, so that who keeps one of them busy all the time
    makes the work of all others take twice as long, the event loop's too.
    """

    def __init__(self, threads: int, name: str, *, each: int, pause: Pause | None = None) -> None:
        self.threads: Final = threads
        self._each = each
        self._pause = pause
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._changed = threading.Condition()
        # In the order of their turns; nobody is in it without work.
        self._waiting: dict[Hashable, deque[tuple[Future[Any], Callable[[], Any]]]] = {}
        self._running: Counter[Hashable] = Counter()
        # Until when, by time.monotonic().
        self._resting: dict[Hashable, float] = {}
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
            # A thread may wait for the end of somebody's rest.
            self._changed.notify_all()
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
            begun = time.monotonic()
            # False for those whose awaiter is gone.
            if future.set_running_or_notify_cancel():
                _settle(future, work)
            # Nothing of it is kept until the next piece comes.
            del job, future, work
            self._finished(person, time.monotonic() - begun)

    def _next(self) -> tuple[Hashable, Future[Any], Callable[[], Any]] | None:
        """The next piece of work; None, and one thread less is busy, where there is none for it."""
        with self._changed:
            person, rested = self._whose_turn()
            while person is _NOBODY:
                if rested is None:
                    self._busy -= 1
                    self._changed.notify_all()
                    return None
                self._changed.wait(rested - time.monotonic())
                person, rested = self._whose_turn()
            jobs = self._waiting.pop(person)
            future, work = jobs.popleft()
            if jobs:
                # Behind all others.
                self._waiting[person] = jobs
            self._running[person] += 1
            return person, future, work

    def _whose_turn(self) -> tuple[Hashable, float | None]:
        """Whose work is to be done now; else _NOBODY, and when the first one has rested, if any."""
        now, rested = time.monotonic(), None
        for person in self._waiting:
            if self._running[person] < self._each:
                until = self._resting.get(person, now)
                if until <= now:
                    return person, None
                rested = until if rested is None else min(rested, until)
        return _NOBODY, rested

    def _finished(self, person: Hashable, took: float) -> None:
        with self._changed:
            self._running[person] -= 1
            if not self._running[person]:
                del self._running[person]
            if self._pause is not None and person is not None:
                now = time.monotonic()
                pause = self._pause(took, person in self._waiting)
                self._resting = {one: at for one, at in self._resting.items() if at > now}
                self._resting[person] = now + min(pause, LONGEST_PAUSE)


_NOBODY: Final = object()


def _settle(future: Future[Any], work: Callable[[], Any]) -> None:
    try:
        future.set_result(work())
    except BaseException as error:
        # Theirs who wait for it.
        future.set_exception(error)
