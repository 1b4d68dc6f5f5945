"""Figures in the form that people read, and the bar of the context chip."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chatapp.live.view_models import ContextView


def short(count: int) -> str:
    """A number of tokens in at most four characters and a letter: 950, 2.1k, 41k, 1.2M."""
    if count < 1000:
        return str(count)
    for size, letter in ((1_000, "k"), (1_000_000, "M")):
        value = count / size
        # From 999.5 on it would be rounded to four digits, so the next letter is used.
        if value < 999.5 or letter == "M":
            return f"{value:.1f}{letter}" if value < 9.95 else f"{value:.0f}{letter}"
    raise AssertionError("unreachable: the last letter takes every number")


@dataclass(frozen=True, kw_only=True)
class Segment:
    """One part of the bar, in percent of its width."""

    name: str
    x: float
    width: float


@dataclass(frozen=True, kw_only=True)
class Chip:
    """The content of the context chip. Shares are of the whole window, the reserve included."""

    label: str
    spoken: str
    percent: int
    """Usage of the budget, 0 to 100 and above."""
    level: str
    """``calm``, ``near`` (the threshold is less than a tenth away) or ``over``."""
    segments: tuple[Segment, ...]
    tick: float
    """Position of the threshold."""


def chip(context: ContextView) -> Chip:
    """The chip of ``context``: label, words for a screen reader, segments of the bar."""
    about = "~" if context.estimated else ""
    window = max(1, context.window)
    x = 0.0
    segments = []
    parts = (
        ("system", context.system + context.tools),
        ("summary", context.summary + context.pinned),
        ("verbatim", context.tail),
    )
    # The parts are in ruler tokens; scaled, they add up to what the model is expected to count.
    scale = context.total / max(1, sum(tokens for _, tokens in parts))
    for name, tokens in parts:
        width = min(100.0 * scale * tokens / window, 100.0 - x)
        segments.append(Segment(name=name, x=round(x, 2), width=round(width, 2)))
        x += width
    reserve = min(100.0 * context.reserve / window, 100.0)
    segments.append(Segment(name="reserve", x=round(100 - reserve, 2), width=round(reserve, 2)))
    percent = round(100 * context.usage)
    level = "calm"
    if context.usage >= context.threshold:
        level = "over"
    elif context.usage >= context.threshold - 0.1:
        level = "near"
    return Chip(
        label=f"{about}{short(context.total)} / {short(context.window)}",
        spoken=(
            f"{'about ' if context.estimated else ''}{context.total:,} of {context.window:,} "
            f"tokens, {percent} % of the room for a request; compressed at "
            f"{round(100 * context.threshold)} %"
        ),
        percent=percent,
        level=level,
        segments=tuple(segments),
        tick=round(100 * context.threshold * context.budget / window, 2),
    )


@dataclass(frozen=True, kw_only=True)
class ReplyCost:
    """The cost of a reply: ``label`` is shown below it, ``spoken`` is the whole sentence."""

    label: str
    spoken: str


def reply_cost(usage: Mapping[str, Any]) -> ReplyCost | None:
    """The figures of a turn's ``usage`` (tokens; US dollars); None if nothing was counted."""
    read, written = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if read is None or written is None:
        return None
    cached, cost = usage.get("cached_tokens"), usage.get("cost")
    price = "" if cost is None else f"${cost:.4f}" if cost < 1 else f"${cost:.2f}"
    from_cache = f" ({cached:,} of them from the model server's cache)" if cached else ""
    label = f"{short(read)} in, {short(written)} out"
    spoken = f"{read:,} tokens read{from_cache}, {written:,} written"
    return ReplyCost(
        label=f"{label}, {price}" if price else label,
        spoken=f"{spoken}, {price}" if price else spoken,
    )
