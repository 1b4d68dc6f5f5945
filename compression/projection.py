"""The size of the next request as its provider counts.

Hosts import from here; the code is in :mod:`compression.planning.projection`.
"""

from compression.planning.projection import (
    ENOUGH,
    HIGHEST_RATIO,
    UNSEEN_SHARE,
    Line,
    Report,
    line,
)

__all__ = [
    "ENOUGH",
    "HIGHEST_RATIO",
    "UNSEEN_SHARE",
    "Line",
    "Report",
    "line",
]
