"""Screenshots as small files: at most 256 colours, which is what a page of text has, or nearly."""

from __future__ import annotations

import base64
import struct
import sys
import zlib
from array import array
from collections import Counter
from dataclasses import dataclass

from playwright.async_api import Page

COLOURS = 256
# Nobody sees the difference: two steps of 255 in each of red, green and blue.
ALIKE = 12
Colour = tuple[int, int, int]
_PIXELS = """async (data) => {
  const picture = await createImageBitmap(await (await fetch(data)).blob());
  const canvas = new OffscreenCanvas(picture.width, picture.height);
  const context = canvas.getContext('2d');
  context.drawImage(picture, 0, 0);
  const {data: bytes} = context.getImageData(0, 0, picture.width, picture.height);
  let text = '';
  for (let at = 0; at < bytes.length; at += 8192)
    text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return [picture.width, picture.height, btoa(text)];
}"""


@dataclass(frozen=True, kw_only=True)
class Pixels:
    """A picture, line by line."""

    width: int
    height: int
    colours: array[int]
    """Of each pixel the bytes red, green, blue and alpha, as one number in the machine's order."""


async def pixels(page: Page, png: bytes) -> Pixels:
    """The picture of a PNG. ``page`` is any that has no content policy, such as an empty one."""
    address = f"data:image/png;base64,{base64.b64encode(png).decode()}"
    width, height, data = await page.evaluate(_PIXELS, address)
    return Pixels(width=width, height=height, colours=array("I", base64.b64decode(data)))


def paletted(picture: Pixels) -> bytes:
    """A PNG of it. Rare shades become the nearest of the others."""
    counted = Counter(picture.colours)
    palette: list[Colour] = []
    for colour, _ in counted.most_common():
        # The shades at the edges of letters are many and alike; a rare hue is like none.
        if all(_distance(_rgb(colour), other) > ALIKE for other in palette):
            palette.append(_rgb(colour))
    palette = palette[:COLOURS]
    numbers = {colour: _nearest(_rgb(colour), palette) for colour in counted}
    indices = bytes(map(numbers.__getitem__, picture.colours))
    # Each line begins with the number of its filter: none.
    lines = (
        b"\0" + indices[at : at + picture.width] for at in range(0, len(indices), picture.width)
    )
    head = struct.pack(">IIBBBBB", picture.width, picture.height, 8, 3, 0, 0, 0)
    return b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            _chunk(b"IHDR", head),
            _chunk(b"PLTE", b"".join(map(bytes, palette))),
            _chunk(b"IDAT", zlib.compress(b"".join(lines), 9)),
            _chunk(b"IEND", b""),
        )
    )


def _rgb(colour: int) -> Colour:
    red, green, blue, _ = colour.to_bytes(4, sys.byteorder)
    return red, green, blue


def _distance(one: Colour, other: Colour) -> int:
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


def _nearest(wanted: Colour, palette: list[Colour]) -> int:
    return min(range(len(palette)), key=lambda n: _distance(wanted, palette[n]))


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
