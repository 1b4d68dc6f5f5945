"""What comes out of the printer."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Page, expect

from tests.browser.screen import Screen, imported
from tests.browser.test_compression import fill
from tests.servers import RunningServer

pytestmark = pytest.mark.browser

COLOURS = """(element) => {
    const style = getComputedStyle(element);
    return [style.color, style.backgroundColor];
}"""
PRESSED = "button, input:not([type=hidden]), select, textarea"


async def nothing_to_press(page: Page) -> None:
    shown = "(all) => all.filter((one) => one.checkVisibility()).length"
    assert await page.locator(PRESSED).evaluate_all(shown) == 0


async def test_a_conversation_is_printed_whole_and_black_on_white(
    screen: Screen, product: RunningServer
) -> None:
    """Breaks when: the panes of the screen, or its dark colours, are those of the paper too."""
    page = screen.page
    await page.goto(imported(product, *[f"Number {n}. " + "word " * 120 for n in range(30)]))
    await expect(screen.articles).to_have_count(30)
    await screen.button("What the model sees").click()
    await expect(page.locator("#drawer-body")).to_contain_text("kept free for the reply")
    await page.emulate_media(media="print", color_scheme="dark")
    for gone in ("navigation", "form", "complementary", "meter"):
        await expect(page.get_by_role(gone)).to_have_count(0)
    await nothing_to_press(page)
    await expect(page.get_by_role("heading", level=1)).to_be_visible()
    for part in (page.locator("body"), screen.articles.first.locator(".body")):
        ink, paper = await part.evaluate(COLOURS)
        assert ink == "rgb(0, 0, 0)"
        assert paper in {"rgb(255, 255, 255)", "rgba(0, 0, 0, 0)"}
    # Thirty messages of 120 words: a pane that is printed as it is fills one page.
    assert len(re.findall(rb"/Type /Page\b", await page.pdf(format="A4"))) >= 5


async def test_a_sheet_is_printed_without_what_is_pressed(screen: Screen) -> None:
    page = screen.page
    await fill(screen, 3)
    await screen.button("Compact").click()
    await expect(page.get_by_role("region", name="Compressed messages")).to_be_visible()
    await page.emulate_media(media="print")
    await expect(page.get_by_text("above are kept here")).to_be_visible()
    conversation = page.url
    for path, kept in (
        ("summaries/?edit=1", ".prose"),
        ("activity/", "table"),
        ("context/", ".seen"),
    ):
        await page.goto(f"{conversation}{path}")
        await expect(page.locator(kept).first).to_be_visible()
        await expect(page.get_by_role("navigation")).to_have_count(0)
        await nothing_to_press(page)
