"""The choice of the next step before a request.

Hosts import from here; the code is in :mod:`compression.planning`.
"""

from compression.planning.defaults import HIGHEST_THRESHOLD, LOWEST_THRESHOLD
from compression.planning.policy import (
    BREAKER_FAILURES,
    BREAKER_FRUITLESS,
    BREAKER_GROWTH,
    UNDONE_THRESHOLD,
    WIND_DOWN_AT,
    WORTH_APPLYING,
    PolicySettings,
    PolicyState,
    breaker_open,
    decide,
)

__all__ = [
    "BREAKER_FAILURES",
    "BREAKER_FRUITLESS",
    "BREAKER_GROWTH",
    "HIGHEST_THRESHOLD",
    "LOWEST_THRESHOLD",
    "UNDONE_THRESHOLD",
    "WIND_DOWN_AT",
    "WORTH_APPLYING",
    "PolicySettings",
    "PolicyState",
    "breaker_open",
    "decide",
]
