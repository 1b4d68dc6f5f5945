"""A limit on how much people without an account may ask for: by address, and all at once.

The counts are in this process, unlike those of attempts to sign in: a guess at a token of 24 random
bytes is hopeless, so they only protect the time of the server.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from chatapp.accounts.limits import place_of
from chatapp.errors import RateLimited

#: Requests from one address in so many seconds.
MOST_READS, WINDOW_SECONDS = 60, 60
#: Addresses that are remembered; beyond, those not seen for longest are forgotten.
MOST_PLACES = 10_000
#: Requests that one process handles at once.
AT_ONCE = 8
BUSY_SECONDS = 3


class Visitors:
    """Counts of requests by address. Used in the event loop only."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # In the order in which the addresses were last seen: when a window began, and its count.
        self._seen: dict[str, tuple[float, int]] = {}
        self._now = 0

    @contextmanager
    def visit(self, address: str) -> Iterator[None]:
        """The time of one request. Raises RateLimited when there are too many."""
        wait = self._count(place_of(address))
        if wait:
            raise RateLimited(
                f"Too many pages were asked for from here. Try again in {wait} seconds.",
                retry_after=wait,
            )
        if self._now >= AT_ONCE:
            raise RateLimited(
                "Many people are reading here right now. Try again in a moment.",
                retry_after=BUSY_SECONDS,
            )
        self._now += 1
        try:
            yield
        finally:
            self._now -= 1

    def _count(self, place: str) -> int:
        """Count one request. Returns 0 if it may go on, else the seconds to wait."""
        now = self._clock()
        begun, count = self._seen.pop(place, (now, 0))
        if now - begun >= WINDOW_SECONDS:
            begun, count = now, 0
        self._seen[place] = (begun, min(count, MOST_READS) + 1)
        if len(self._seen) > MOST_PLACES:
            del self._seen[next(iter(self._seen))]
        return 0 if count < MOST_READS else max(1, math.ceil(begun + WINDOW_SECONDS - now))


readers = Visitors()
"""Of the links that people shared."""
