"""Figures in the form that people read, and the bar of the context chip."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chatapp.live.view_models import ContextView
from chatapp.rendering import window_bar


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


def signed(count: int) -> str:
    """A difference in tokens: "+1.2k", "−350"."""
    return f"{'−' if count < 0 else '+'}{short(abs(count))}"


def percent(share: float) -> str:
    """A share as a percentage: "42 %"; "<1 %" for what is there and would be rounded to nothing.

    A negative one is the share of a difference: "−42 %".
    """
    if share < 0:
        return f"−{percent(-share)}"
    rounded = round(100 * share)
    return "<1 %" if share > 0 and not rounded else f"{rounded} %"


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
    share: str
    """The percentage beside the label."""
    spoken: str
    percent: int
    """The same as a number, 0 to 100 and above."""
    level: str
    """``calm``, ``near`` (the threshold is less than a tenth away) or ``over``."""
    segments: tuple[Segment, ...]
    tick: float
    """Position of the threshold."""


def chip(context: ContextView) -> Chip:
    """The chip of ``context``: label, words for a screen reader, segments of the bar."""
    about = "~" if context.estimated else ""
    bar = window_bar.of_context(context)
    level = "calm"
    if context.usage >= context.threshold:
        level = "over"
    elif context.usage >= context.threshold - 0.1:
        level = "near"
    limit = "beyond the threshold of" if level == "over" else "compresses at"
    return Chip(
        label=f"{about}{short(context.total)} / {short(context.window)}",
        share=percent(bar.share),
        spoken=(
            f"{'about ' if context.estimated else ''}{context.total:,} of {context.window:,} "
            f"tokens, {percent(bar.share)} of the window; {limit} {context.limit:,} tokens, "
            f"{percent(context.limit / max(1, context.window))}"
        ),
        percent=round(100 * bar.share),
        level=level,
        segments=_segments(bar),
        tick=bar.tick or 0.0,
    )


def _segments(bar: window_bar.WindowBar) -> tuple[Segment, ...]:
    """The bar with the parts of one colour as one."""
    segments: list[Segment] = []
    for colour in dict.fromkeys([*window_bar.COLOURS.values(), "reserve"]):
        parts = [part for part in bar.parts if part.colour == colour]
        start = parts[0].x if parts else segments[-1].x + segments[-1].width
        width = sum(part.width for part in parts)
        segments.append(Segment(name=colour, x=round(start, 2), width=round(width, 2)))
    return tuple(segments)


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
