"""The plot of the daily sums: bars as figures, which the page draws as SVG. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Final

#: Units of the drawing, in which the template writes.
WIDTH: Final = 720.0
HEIGHT: Final = 160.0
#: The share of a day's room that its bar takes.
FILLED: Final = 0.72
MOST_DAYS: Final = 92
#: Measures that are shares: a bar of the whole height is all of it, not merely the best day.
_SHARES: Final = ("kept",)
#: The kinds of calls from the bottom of a bar to its top; any other kind is drawn last.
KINDS: Final = ("chat", "summary", "title", "probe")


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """The part of a bar that one kind of calls takes."""

    kind: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One day."""

    day: date
    value: float
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """Bars from the first day to the last, days without calls among them."""

    bars: tuple[Bar, ...]
    highest: float
    """The value of the highest bar."""
    top: float
    """The value that a bar of the whole height would have."""
    kinds: tuple[str, ...]
    """Those that occur, for the legend."""

    @property
    def first(self) -> date:
        """The first day."""
        return self.bars[0].day

    @property
    def last(self) -> date:
        """The last day."""
        return self.bars[-1].day


def measured(row: Mapping[str, Any], measure: str) -> float:
    """The value of a row of sums: ``tokens``, ``cost`` or ``calls``."""
    if measure == "tokens":
        return float(row["input_tokens"] + row["output_tokens"])
    return float(row[measure])


def plotted(rows: Iterable[Mapping[str, Any]], *, first: date, last: date, measure: str) -> Plot:
    """The plot of sums by ``day`` and ``kind``; of a longer time, its end."""
    first = max(first, last - timedelta(days=MOST_DAYS - 1))
    days: dict[date, dict[str, float]] = {
        first + timedelta(days=n): {} for n in range((last - first).days + 1)
    }
    for row in rows:
        if row["day"] in days:
            parts = days[row["day"]]
            parts[row["kind"]] = parts.get(row["kind"], 0.0) + measured(row, measure)
    highest = max((sum(parts.values()) for parts in days.values()), default=0.0)
    top = 1.0 if measure in _SHARES else highest
    found = {kind for parts in days.values() for kind, value in parts.items() if value}
    kinds = tuple(sorted(found, key=_order))
    room = WIDTH / max(1, len(days))
    bars = (
        Bar(
            day=day,
            value=sum(parts.values()),
            pieces=_pieces(parts, kinds, n * room, room, top),
        )
        for n, (day, parts) in enumerate(days.items())
    )
    return Plot(bars=tuple(bars), highest=highest, top=top, kinds=kinds)


def _order(kind: str) -> tuple[int, str]:
    return (KINDS.index(kind) if kind in KINDS else len(KINDS), kind)


def _pieces(
    parts: Mapping[str, float], kinds: tuple[str, ...], x: float, room: float, top: float
) -> tuple[Piece, ...]:
    pieces, y = [], HEIGHT
    for kind in kinds:
        value = parts.get(kind, 0.0)
        if value > 0 and top > 0:
            height = HEIGHT * value / top
            y -= height
            side = room * (1 - FILLED) / 2
            pieces.append(Piece(kind=kind, x=x + side, y=y, width=room * FILLED, height=height))
    return tuple(pieces)
