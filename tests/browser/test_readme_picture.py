"""The picture of the README is of this program, as its command takes it."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.browser import readme_picture
from tests.browser.small_png import Pixels, pixels
from tests.documents import README
from tests.servers import ROOT

pytestmark = pytest.mark.browser

MOST_BYTES = 120_000
# A page of one colour has 1; the least that letters need is some 30.
LEAST_COLOURS = 40


@pytest.mark.soak
async def test_it_is_taken_anew_like_the_one_that_is_shown(
    browser: Browser, tmp_path: Path
) -> None:
    """What it is about is in view, and both files are pictures of a page of that size.

    Breaks when: the function no longer reaches this state, the divider or the drawer leaves the
    view, or README shows another file.
    """
    (shown,) = re.findall(r"^!\[[^\]]{20,}\]\((.+)\)$", README.read_text("utf-8"), re.MULTILINE)
    assert ROOT / shown == readme_picture.PICTURE
    assert readme_picture.PICTURE.stat().st_size <= MOST_BYTES
    anew = tmp_path / "picture.png"
    async with readme_picture.arranged(browser, tmp_path) as screen:
        page = screen.page
        for part in (
            page.get_by_role("region", name="Compressed messages"),
            page.get_by_role("complementary", name="What the model sees"),
            page.get_by_role("heading", name="Rules"),
            screen.feed.get_by_role("table"),
            screen.box,
        ):
            await expect(part).to_be_in_viewport()
        # What the model wrote, and one line of figures that code keeps word for word.
        lines = page.locator("#drawer-body .prose li")
        await expect(lines).to_have_count(2 + len(readme_picture.TEXTS["summary"]["add"]))
        await expect(page.get_by_role("alert")).to_have_count(0)
        assert screen.complaints == []
        await readme_picture.take(screen, anew)
        empty = await page.context.new_page()
        taken = [await pixels(empty, file.read_bytes()) for file in (anew, readme_picture.PICTURE)]
    for picture in taken:
        assert (picture.width, picture.height) == (readme_picture.WIDTH, readme_picture.HEIGHT)
        assert_shows_something(picture)


def assert_shows_something(picture: Pixels) -> None:
    """In each quarter of it, so that no part is missing."""
    half, middle = picture.width // 2, picture.height // 2
    for top in (0, middle):
        for left in (0, half):
            seen: Counter[int] = Counter()
            for line in range(top, top + middle):
                at = line * picture.width + left
                seen.update(picture.colours[at : at + half])
            assert len(seen) >= LEAST_COLOURS
            assert seen.most_common(1)[0][1] < 0.98 * half * middle
