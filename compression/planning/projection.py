"""An estimate of how a provider counts one conversation, from its latest reports. Pure.

A model's calibration is smoothed over all its conversations and clamped. A provider may count one
conversation higher than that. The line computed here then goes through its last report, so that
the projection of the next request is never too low, and falls when the request is compressed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

#: Provider's tokens for one ruler token. A tokenizer with one token per byte comes to about five;
#: a report far beyond that cannot be about this conversation.
HIGHEST_RATIO = 8.0
#: Share of the window that a provider may add to each request unseen: a chat template, its own
#: instructions.
UNSEEN_SHARE = 0.10
#: Two requests must differ by this many ruler tokens to tell what one more token costs.
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
    """A count of (n + unseen) × calibration for a request of ``n`` ruler tokens."""

    calibration: float
    unseen: int = 0
    """What the provider counts besides what it is sent, in ruler tokens."""


def line(calibration: float, reports: Sequence[Report], *, window: int) -> Line:
    """The line for a model of this ``calibration``; ``reports`` of the conversation, newest first.

    The line goes through the newest report if that lies above the model's calibration. The excess
    is either a tokenizer that counts more, which grows with the text, or something unseen, which
    does not grow. As much as ``UNSEEN_SHARE`` allows is taken as unseen, unless two reports show
    that more of it grows with the text.
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
