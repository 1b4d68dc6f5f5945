"""The outline's list, and its rail: the whole conversation as one column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from chatapp.live.outline import Entry, Outline, Stratum

#: The height of the rail, in units of its own.
HEIGHT: Final = 1000
#: The least height of a band, and the gap between two.
LEAST: Final = 4


@dataclass(frozen=True, kw_only=True)
class Band:
    """A stretch of the conversation on the rail."""

    kind: str
    """``summary``, ``cleared`` or ``verbatim``, what the model sees word for word."""
    y: float
    height: float


@dataclass(frozen=True, kw_only=True)
class Rail:
    """Bands and pins, from the first message down to the last."""

    bands: list[Band]
    pins: list[float]


def rail(outline: Outline) -> Rail:
    """The strata of an outline on its rail, and below them the messages that follow them."""
    last = outline.last_seq
    if not last:
        return Rail(bands=[], pins=[])
    found = [
        _band("cleared" if one.cleared else "summary", one.first_seq, one.through_seq, last)
        for one in outline.strata
    ]
    boundary = outline.strata[-1].through_seq if outline.strata else 0
    if boundary < last:
        found.append(_band("verbatim", boundary + 1, last, last))
    return Rail(bands=found, pins=[_place(seq, last) for seq in outline.pins])


def in_order(outline: Outline) -> list[Entry | Stratum]:
    """Entries and strata of a page as they follow each other.

    A stratum comes after the entry at or before its end, and is on one page only. By the same rule
    static/js/outline.js puts pages together.
    """
    keyed: list[tuple[int, int, Entry | Stratum]] = [(e.seq, 0, e) for e in outline.entries]
    end = outline.entries[-1].seq if outline.has_newer and outline.entries else outline.last_seq + 1
    keyed += [
        (s.through_seq, 1, s) for s in outline.strata if outline.begins_after <= s.through_seq < end
    ]
    return [one for *_, one in sorted(keyed, key=lambda item: item[:2])]


def _place(seq: int, last: int) -> float:
    return HEIGHT * (seq - 1) / last


def _band(kind: str, first: int, through: int, last: int) -> Band:
    height = HEIGHT * (through - first + 1) / last
    return Band(kind=kind, y=_place(first, last), height=max(LEAST, height - LEAST))
