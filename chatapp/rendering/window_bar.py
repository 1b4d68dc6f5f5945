"""The bar of the window: the parts of a request, each with its colour, tokens and share. Pure.

The chip in the header and the bar in the drawer are both made here, so they show the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chatapp.live.view_models import ContextView

#: The parts of a request in the order of the bar, with the colour that each has.
COLOURS = {
    "system": "system",
    "tools": "system",
    "summary": "summary",
    "pinned": "summary",
    "tail": "verbatim",
}
#: Parts that are named even when they are empty; the others only when there is something in them.
ALWAYS = ("system", "tail")
#: Tokens that a stored figure may be at most; more is no figure of a request.
MOST = 10**12


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of the window. ``x`` and ``width`` are in percent of the bar."""

    name: str
    """A part of the request as in the JSON of the context, ``adjustment`` included, or ``reserve``
    or ``free``."""
    colour: str
    """The chip's segment it belongs to; empty for what is free."""
    tokens: int
    """Of an ``adjustment`` possibly negative."""
    share: float
    """Of the window."""
    x: float
    width: float


@dataclass(frozen=True, kw_only=True)
class WindowBar:
    """A whole window: what is sent, what is kept for the reply, what is free."""

    total: int
    window: int
    share: float
    """Of the window: the percentage of the chip."""
    parts: tuple[Part, ...]
    tick: float | None = None
    """Position of the threshold in percent of the bar; None if it is not known."""

    @property
    def drawn(self) -> tuple[Part, ...]:
        """The parts that the bar has a rectangle for."""
        return tuple(part for part in self.parts if part.colour and part.width)


def bar_of(
    tokens: Mapping[str, int],
    *,
    window: int,
    reserve: int,
    adjustment: int = 0,
    tick: float | None = None,
) -> WindowBar:
    """The bar of a request whose parts have these tokens; ``total`` is among them.

    The parts are in ruler tokens, as everywhere on the screen. What the model is expected to count
    beside them is a part of its own, the ``adjustment``, so that the parts add up to ``total``.
    Their widths are scaled to it.
    """
    whole = max(1, window)
    total = tokens["total"]
    scale = total / max(1, sum(tokens[name] for name in COLOURS))
    x = 0.0
    parts = []
    for name, colour in COLOURS.items():
        count = tokens[name]
        width = min(100.0 * scale * count / whole, 100.0 - x)
        if count or name in ALWAYS:
            parts.append(_part(name, colour, count, whole, x, width))
        x += width
    if adjustment:
        parts.append(_part("adjustment", "", adjustment, whole, x, 0.0))
    width = min(100.0 * reserve / whole, 100.0)
    parts.append(_part("reserve", "reserve", reserve, whole, 100 - width, width))
    free = max(0, window - reserve - total)
    if free:
        parts.append(_part("free", "", free, whole, x, 0.0))
    return WindowBar(
        total=total, window=window, share=round(total / whole, 4), parts=tuple(parts), tick=tick
    )


def _part(name: str, colour: str, count: int, window: int, x: float, width: float) -> Part:
    return Part(
        name=name,
        colour=colour,
        tokens=count,
        share=count / window,
        x=round(x, 2),
        width=round(width, 2),
    )


def of_context(context: ContextView) -> WindowBar:
    """The bar of the next request."""
    tokens = {name: int(getattr(context, name)) for name in (*COLOURS, "total")}
    tick = round(100 * context.threshold * context.budget / max(1, context.window), 2)
    return bar_of(
        tokens,
        window=context.window,
        reserve=context.reserve,
        adjustment=context.adjustment,
        tick=tick,
    )


def of_manifest(manifest: Mapping[str, Any]) -> WindowBar | None:
    """The bar of a request that was sent; None if its figures were not recorded.

    Manifests were stored by any version of this program: what is missing counts as 0.
    """
    figures, window = manifest.get("tokens"), _figure(manifest.get("window"))
    if not isinstance(figures, Mapping) or not window:
        return None
    tokens = {name: _figure(figures.get(name)) for name in (*COLOURS, "total")}
    budget = _figure(manifest.get("budget")) or window
    return bar_of(
        tokens,
        window=window,
        reserve=max(0, window - budget),
        adjustment=_figure(figures.get("adjustment"), least=-MOST),
    )


def _figure(value: Any, least: int = 0) -> int:
    """The value if it is a number of tokens from ``least`` on, else 0."""
    known = isinstance(value, int) and not isinstance(value, bool) and least <= value <= MOST
    return value if known else 0
