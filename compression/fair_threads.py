"""A few threads that many people share fairly: a person with much work waits for their own."""

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
"""The person for whom the current task and the tasks it starts work; None: nobody."""

#: Part of the time that one person's work may take in the long run: alone, and among many.
MOST_SHARE: Final = 1 / 2
LEAST_SHARE: Final = 1 / 5
#: Seconds for which somebody counts as present after a piece of their work has ended.
PRESENT: Final = 1.0
#: Seconds of work that are done for a person before that part counts: a page and a message sent.
BURST: Final = 0.1
#: Seconds that a pause lasts at most.
LONGEST_PAUSE: Final = 0.25


class FairThreads:
    """Threads in which each person's work is done in order, and the people take turns.

    ``each``: pieces of one person's work that run at once. ``burst``: seconds of one person's work
    that are done without a pause; beyond them it gets :meth:`share` of the time. None: all of it.
    Threads share one interpreter: a person who keeps one of them busy all the time makes all other
    work take twice as long, that of the event loop too.
    """

    def __init__(self, threads: int, name: str, *, each: int, burst: float | None = None) -> None:
        self.threads: Final = threads
        self._each = each
        self._burst = burst
        self._executor = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._changed = threading.Condition()
        # In the order of their turns; people without work are not in it.
        self._waiting: dict[Hashable, deque[tuple[Future[Any], Callable[[], Any]]]] = {}
        self._running: Counter[Hashable] = Counter()
        # By person, the seconds of work by which they were ahead of their share, and when.
        self._ahead: dict[Hashable, tuple[float, float]] = {}
        # By person, when a piece of their work last ended.
        self._present: dict[Hashable, float] = {}
        self._busy = 0
        self._ended = False

    def submit(self, person: Hashable, work: Callable[[], T]) -> Future[T]:
        """The future of the result of ``work``, which runs in the context of the caller.

        Work cancelled before its turn is not run. Raises RuntimeError after :meth:`shutdown`.
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
            # A thread may be waiting for the end of a person's pause.
            self._changed.notify_all()
        return future

    def pending_of(self, person: Hashable) -> int:
        """Pieces of a person's work that run or wait; cancelled ones are not counted."""
        with self._changed:
            waiting = self._waiting.get(person, ())
            return self._running[person] + sum(not future.cancelled() for future, _ in waiting)

    def drop(self) -> None:
        """Cancel all waiting work, without waiting for what runs."""
        with self._changed:
            dropped = [future for jobs in self._waiting.values() for future, _ in jobs]
            self._waiting.clear()
            self._changed.notify_all()
        for future in dropped:
            future.cancel()

    def join(self) -> None:
        """Wait until nothing runs or waits."""
        with self._changed:
            self._changed.wait_for(lambda: not self._busy and not self._waiting)

    def shutdown(self, *, wait: bool = True) -> None:
        """Refuse further work, and end the threads when the submitted work is done."""
        with self._changed:
            self._ended = True
        if wait:
            self.join()
        self._executor.shutdown(wait=wait)

    def share(self) -> float:
        """The part of the time that each person may have.

        An equal one for all who are present and for what is done for nobody, within bounds.
        """
        return min(MOST_SHARE, max(LEAST_SHARE, 1 / (1 + len(self._present))))

    def _work(self) -> None:
        while (job := self._next()) is not None:
            person, future, work = job
            begun = time.monotonic()
            # False if the awaiter has cancelled it.
            if future.set_running_or_notify_cancel():
                _settle(future, work)
            # Let go of the work and its result before waiting for the next piece.
            del job, future, work
            self._finished(person, begun)

    def _next(self) -> tuple[Hashable, Future[Any], Callable[[], Any]] | None:
        """The next piece of work; None, with one busy thread less, if there is none for it."""
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
                # At the end of the queue.
                self._waiting[person] = jobs
            self._running[person] += 1
            return person, future, work

    def _whose_turn(self) -> tuple[Hashable, float | None]:
        """The person whose turn it is; else _NOBODY, and when the first pause ends, if any."""
        now, rested = time.monotonic(), None
        for person in self._waiting:
            if self._running[person] < self._each:
                until = self._rested(person)
                if until <= now:
                    return person, None
                rested = until if rested is None else min(rested, until)
        return _NOBODY, rested

    def _rested(self, person: Hashable) -> float:
        """The time from which the person's next piece may begin."""
        ahead, since = self._ahead.get(person, (0.0, 0.0))
        pause = max(0.0, ahead - self._unpaused()) / self.share()
        return since + min(LONGEST_PAUSE, pause)

    def _unpaused(self) -> float:
        """Seconds of work by which a person may be ahead: a burst has its own share of the time."""
        return (self._burst or 0.0) * (1 - self.share())

    def _finished(self, person: Hashable, begun: float) -> None:
        with self._changed:
            self._running[person] -= 1
            if not self._running[person]:
                del self._running[person]
            if self._burst is not None and person is not None:
                self._count(person, begun, time.monotonic())

    def _count(self, person: Hashable, begun: float, ended: float) -> None:
        """Count a piece of work, as a leaky bucket does: it leaks at the rate of the share."""
        present = {one: at for one, at in self._present.items() if at > ended - PRESENT}
        self._present = {**present, person: ended}
        share = self.share()
        ahead, since = self._ahead.get(person, (0.0, begun))
        ahead = max(0.0, ahead - share * max(0.0, begun - since))
        ahead += (ended - begun) - share * (ended - max(begun, since))
        self._ahead = {
            one: (was, at) for one, (was, at) in self._ahead.items() if was > share * (ended - at)
        }
        # What is beyond the longest pause is forgiven.
        self._ahead[person] = (min(ahead, self._unpaused() + LONGEST_PAUSE * share), ended)


_NOBODY: Final = object()


def _settle(future: Future[Any], work: Callable[[], Any]) -> None:
    try:
        future.set_result(work())
    except BaseException as error:
        # Raised where the result is awaited.
        future.set_exception(error)
