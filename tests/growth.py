"""How work grows with its input: ratios of CPU time within one run, never seconds."""

from __future__ import annotations

import time
from collections.abc import Callable

#: Seconds; below this the clock tells nothing.
_LEAST = 0.001
_TRIES = 3


def cost(work: Callable[[], object]) -> float:
    """CPU seconds of this thread, the best of a few tries: what other programs do counts little."""
    tries = []
    for _ in range(_TRIES):
        begun = time.thread_time()
        work()
        tries.append(time.thread_time() - begun)
    return max(_LEAST, min(tries))


def growth(work: Callable[[int], object], size: int, factor: int) -> float:
    """By how much the cost grows with ``factor`` times the size: about ``factor`` if linear."""
    return cost(lambda: work(size * factor)) / cost(lambda: work(size))
