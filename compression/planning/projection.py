"""A model of how a provider counts one conversation, from its last reports. Pure.

A model's calibration is smoothed over all its conversations and kept within bounds. What the
provider said of this conversation's last request holds whatever these bounds say: the line that
is drawn here runs through it, so that the next request is never projected below it, and falls with
the request when that is compressed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

#: Provider's tokens for one ruler token. A tokenizer that takes each byte for a token comes to
#: about five; what is far beyond is not this conversation's.
HIGHEST_RATIO = 8.0
#: Share of the window that a provider may be putting before each request without our knowing: a
#: chat template, instructions of its own.
UNSEEN_SHARE = 0.10
#: Ruler tokens by which two requests must differ to say what one more token costs.
ENOUGH = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The provider's count of one request."""

    counted: int
    """Ruler tokens of the request."""
    reported: int
    """The provider's ``prompt_tokens``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A request of ``n`` ruler tokens is counted as (n + unseen) × calibration."""

    calibration: float
    unseen: int = 0
    """Ruler tokens' worth of what the provider counts besides what it is sent."""


def line(calibration: float, reports: Sequence[Report], *, window: int) -> Line:
    """The line for a model of this ``calibration``; ``reports`` of the conversation, newest first.

    It runs through the newest report where that lies above the model's calibration. The excess is
    either a tokenizer that counts more, which grows with the text, or something unseen, which does
    not. As much as may be unseen is taken for unseen, and two reports, where there are two, tell.
    """
    useful = [one for one in reports[:2] if one.counted > 0 and one.reported > 0]
    if not useful:
        return Line(calibration=calibration)
    last = useful[0]
    ratio = last.reported / last.counted
    if ratio <= calibration:
        return Line(calibration=calibration)
    most_unseen = UNSEEN_SHARE * window
    slope = (last.reported - most_unseen) / last.counted
    if len(useful) > 1 and abs(last.counted - useful[1].counted) >= ENOUGH:
        rise = (last.reported - useful[1].reported) / (last.counted - useful[1].counted)
        slope = max(slope, rise)
    slope = min(ratio, HIGHEST_RATIO, max(calibration, slope))
    unseen = min(most_unseen, last.reported - slope * last.counted)
    return Line(calibration=slope, unseen=ceil(unseen / slope))
