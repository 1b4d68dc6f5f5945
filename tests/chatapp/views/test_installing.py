"""The chat as an application: its manifest, and the icons that it names."""

from __future__ import annotations

import re
import struct
from pathlib import Path

from django.contrib.staticfiles import finders
from django.test import AsyncClient

from tests.browser.app_icons import SIZES


def size_of(path: str) -> tuple[int, int]:
    png = Path(path).read_bytes()
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", png[16:24])
    return width, height


async def test_the_manifest_names_icons_that_are_there() -> None:
    """Anybody may ask, since browsers ask without cookies.

    Breaks when: an icon is missing or of another size, or the manifest asks to sign in.
    """
    answer = await AsyncClient().get("/manifest.webmanifest")
    assert answer.status_code == 200
    assert answer["Content-Type"] == "application/manifest+json"
    found = answer.json()
    assert (found["display"], found["start_url"], found["scope"]) == ("standalone", "/", "/")
    sizes: dict[str, set[int]] = {"any": set(), "maskable": set()}
    for icon in found["icons"]:
        path = finders.find(re.sub(r"\.[0-9a-f]{12}\.", ".", icon["src"].split("/static/")[1]))
        assert path, icon["src"]
        if icon["type"] == "image/png":
            width, height = size_of(path)
            assert icon["sizes"] == f"{width}x{height}"
            sizes[icon["purpose"]].add(width)
    assert sizes == {"any": set(SIZES), "maskable": set(SIZES)}


async def test_it_takes_no_command() -> None:
    assert (await AsyncClient().post("/manifest.webmanifest")).status_code == 405
