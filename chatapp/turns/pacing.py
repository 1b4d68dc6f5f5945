"""The pace at which replies are shown while they are written."""

from __future__ import annotations

FLUSH_INTERVAL = 0.05
# Seconds: 20 times a second reads as a steady stream, and costs a fifth of once a token.
UNHURRIED = 50
# So many replies at once cost a process less than half a core at that pace.
STRETCH = 0.0005
# Seconds for each reply beyond: 75 ms for 100 of them, 125 ms for 200.
LONGEST_INTERVAL = 0.2


class Pace:
    """The pace of one process: the more replies at once, the rarer each one is shown."""

    def __init__(self) -> None:
        self.streams = 0
        """Replies that are being written."""

    @property
    def interval(self) -> float:
        """Seconds between two flushes of one reply."""
        more = max(0, self.streams - UNHURRIED)
        return min(LONGEST_INTERVAL, FLUSH_INTERVAL + more * STRETCH)
