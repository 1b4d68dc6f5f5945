"""The defaults of compression's settings, each in this one place.

Its own values are made with them, and so are the settings of a host that reads what is asked for
from somewhere else, such as the environment. Imports nothing, so that a settings module may too.
"""

from __future__ import annotations

THRESHOLD = 0.8
SOFT_THRESHOLD = 0.65
KEEP_TURNS = 2
SUMMARY_TOKENS = 1500
PREPARE_MESSAGES = 0
TOOL_RESULT_MAX_LENGTH = 2000
MAX_CALLS = 40
PROBE = False
LEASE_SECONDS = 30.0
RENEW_SECONDS = 10.0

#: Below 0.5, compressions come every few turns; above 0.95, one long message overflows.
LOWEST_THRESHOLD = 0.5
HIGHEST_THRESHOLD = 0.95
LOWEST_SOFT_THRESHOLD = 0.1
MOST_KEEP_TURNS = 1000


def clamped(threshold: float) -> float:
    """The nearest threshold that is possible."""
    return min(HIGHEST_THRESHOLD, max(LOWEST_THRESHOLD, threshold))


def possible(threshold: float) -> bool:
    """Whether a threshold is taken as it is."""
    return clamped(threshold) == threshold
