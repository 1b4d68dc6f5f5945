"""Line plots as PNG files, with nothing but the standard library."""

from __future__ import annotations

import struct
import textwrap
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

WIDTH, HEIGHT, MARGIN = 420, 300, 48
COLOURS = (
    (31, 119, 180),
    (255, 127, 14),
    (44, 160, 44),
    (214, 39, 40),
    (148, 103, 189),
    (80, 80, 80),
)
# Three by five pixels a character, one octal digit a row.
GLYPHS = dict(
    zip(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-,",
        textwrap.wrap(
            "257556565634443655567464774644345535575572227111525565544447577556555525552"
            "656442556365655342167222255557555525577555255552227124775557262276124761216"
            "5571174616346527112225252253160000200700"
            "00024",
            5,
        ),
        strict=True,
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One plot: a line a name, over 1, 2, 3 …; ``top`` is the highest value shown."""

    title: str
    lines: Mapping[str, Sequence[float]]
    top: float


class _Canvas:
    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.pixels = bytearray(b"\xff" * (width * height * 3))

    def dot(self, x: int, y: int, colour: tuple[int, int, int], size: int = 1) -> None:
        for row in range(max(0, y), min(self.height, y + size)):
            for column in range(max(0, x), min(self.width, x + size)):
                at = (row * self.width + column) * 3
                self.pixels[at : at + 3] = bytes(colour)

    def line(self, a: tuple[int, int], b: tuple[int, int], colour: tuple[int, int, int]) -> None:
        steps = max(abs(b[0] - a[0]), abs(b[1] - a[1]), 1)
        for step in range(steps + 1):
            x = a[0] + (b[0] - a[0]) * step // steps
            y = a[1] + (b[1] - a[1]) * step // steps
            self.dot(x, y, colour, 2)

    def text(self, x: int, y: int, text: str, colour: tuple[int, int, int] = (0, 0, 0)) -> None:
        for character in text.upper():
            for row, digit in enumerate(GLYPHS.get(character, "00000")):
                for column in range(3):
                    if int(digit) >> (2 - column) & 1:
                        self.dot(x + 2 * column, y + 2 * row, colour, 2)
            x += 8

    def png(self) -> bytes:
        rows = b"".join(
            b"\0" + self.pixels[row * self.width * 3 : (row + 1) * self.width * 3]
            for row in range(self.height)
        )
        header = struct.pack(">IIBBBBB", self.width, self.height, 8, 2, 0, 0, 0)
        parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
        return b"\x89PNG\r\n\x1a\n" + b"".join(
            struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
            for name, body in parts
        )


def write(path: Path, panels: Sequence[Panel]) -> None:
    """Write the panels beside one another, with one legend."""
    canvas = _Canvas(WIDTH * len(panels), HEIGHT + 14 * max(len(one.lines) for one in panels) + 10)
    for number, panel in enumerate(panels):
        left, bottom = number * WIDTH + MARGIN, HEIGHT - MARGIN
        right, top = (number + 1) * WIDTH - 12, MARGIN
        canvas.text(left, 16, panel.title)
        canvas.line((left, top), (left, bottom), (0, 0, 0))
        canvas.line((left, bottom), (right, bottom), (0, 0, 0))
        for share in (0.0, 0.5, 1.0):
            label = f"{panel.top * share:g}"
            height = round(bottom - (bottom - top) * share)
            canvas.text(left - 8 * len(label) - 4, height - 5, label)
        # Each line a little lower than the one before, so that equal ones are all seen.
        for lower, (colour, values) in enumerate(zip(COLOURS, panel.lines.values(), strict=False)):
            wide = (right - left) / max(1, len(values) - 1)
            points = [
                (
                    round(left + index * wide),
                    round(bottom - (bottom - top) * min(1.0, value / panel.top)) + 2 * lower,
                )
                for index, value in enumerate(values)
            ]
            for a, b in pairwise(points):
                canvas.line(a, b, colour)
    for index, name in enumerate(panels[0].lines):
        canvas.text(MARGIN, HEIGHT + 14 * index, name, COLOURS[index % len(COLOURS)])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(canvas.png())
