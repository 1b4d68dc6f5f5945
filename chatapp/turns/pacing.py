"""The pace at which replies are shown while they are written."""

from __future__ import annotations

# Seconds. 20 flushes a second read as a steady stream, at a fifth of the cost of one per token.
FLUSH_INTERVAL = 0.05
# Replies at once that a process shows at that pace with less than half a core.
UNHURRIED = 50
# Seconds added for each further reply: 75 ms for 100 replies, 125 ms for 200.
STRETCH = 0.0005
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
