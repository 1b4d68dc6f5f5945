"""The choice of the messages to compress.

Hosts import from here; the code is in :mod:`compression.planning.planner`.
"""

from compression.planning.planner import (
    AUTOMATIC_FREES,
    CAP_SHARE,
    FALLBACK_FREES,
    MANUAL_FREES,
    TAIL_SHARE,
    PlannerSettings,
    cap_tokens,
    plan,
    usage,
    usage_of,
    worth_applying,
)

__all__ = [
    "AUTOMATIC_FREES",
    "CAP_SHARE",
    "FALLBACK_FREES",
    "MANUAL_FREES",
    "TAIL_SHARE",
    "PlannerSettings",
    "cap_tokens",
    "plan",
    "usage",
    "usage_of",
    "worth_applying",
]
