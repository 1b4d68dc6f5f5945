"""Where the reader is in the text: what other browsers than Chromium make of it, shown in Chromium.

WebKit sizes no box by its text, anchors nothing, tells of its own corrections by a scroll event
and lays a query container out before the new elements in it.
"""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import BrowserContext, Locator, Page, expect

from tests.browser.screen import Screen
from tests.upstreams import RunningUpstream

pytestmark = pytest.mark.browser

LONG = "".join(f"Paragraph number {n} of a long reply.\n\n" for n in range(60))
AWAY = "scroller => scroller.scrollHeight - scroller.clientHeight - scroller.scrollTop"
WITHOUT_FIELD_SIZING = """
    const supports = CSS.supports;
    CSS.supports = (...words) => words[0] !== "field-sizing" && supports.apply(CSS, words);
"""
STYLE = """style => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(style);
    document.adoptedStyleSheets = [sheet];
}"""
TWO_FRAMES = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


def scroller_of(screen: Screen) -> Locator:
    """What is scrolled."""
    return screen.page.locator("#scroller")


async def without_anchoring(page: Page, more: str = "") -> None:
    """From now on the browser corrects nothing by itself; ``more`` rules of style hold as well."""
    await page.evaluate(STYLE, "* { overflow-anchor: none !important }" + more)


async def test_a_box_that_is_measured_leaves_the_text_where_it_is(
    screen: Screen, model: RunningUpstream
) -> None:
    """Where a box is not sized by its text, writing in its second line moves nothing.

    Breaks when: ``fit`` in ``composer.js`` lets the composer shrink while it measures the box.
    """
    page = screen.page
    await page.add_init_script(WITHOUT_FIELD_SIZING)
    await page.goto("/?new")
    model.script({"text": LONG})
    await screen.ask("A long one.")
    await without_anchoring(page, "#text { field-sizing: fixed !important }")
    await screen.box.press_sequentially("one")
    one = await screen.box.bounding_box()
    await screen.box.press("Shift+Enter")
    await screen.box.press_sequentially("two")
    two = await screen.box.bounding_box()
    assert one is not None
    assert two is not None
    assert two["height"] > one["height"]
    assert await scroller_of(screen).evaluate(AWAY) < 2
    await screen.box.fill("")
    none = await screen.box.bounding_box()
    assert none is not None
    assert none["height"] == one["height"]


async def test_only_the_reader_lets_go(
    screen: Screen, signed_in: BrowserContext, model: RunningUpstream
) -> None:
    """A view that grows moves the text down; told of as a scroll, it is not taken for the reader's.

    Breaks when: ``scrolled`` in ``scroll.js`` takes every movement upward for the reader's.
    """
    page = screen.page
    model.script({"text": LONG})
    await screen.ask("A long one.")
    await without_anchoring(page)
    await screen.box.fill("line\n" * 6)
    await page.evaluate(TWO_FRAMES)
    assert await scroller_of(screen).evaluate(AWAY) < 2
    await page.evaluate(
        """() => {
            const scroller = document.querySelector("#scroller");
            document.querySelector("#text").value = "";
            scroller.scrollHeight; // Laid out now, and again with what comes before the next frame.
            const more = document.createElement("p");
            more.style.height = "300px";
            document.querySelector("#feed article:last-of-type .body").append(more);
            scroller.dispatchEvent(new Event("scroll"));
        }"""
    )
    other = Screen(await signed_in.new_page())
    await other.page.goto(page.url)
    await other.ask("From elsewhere.")
    await expect(screen.articles).to_have_count(4)
    await expect(screen.articles.last).to_be_in_viewport()
    await page.evaluate(TWO_FRAMES)
    assert await scroller_of(screen).evaluate(AWAY) < 2


async def test_nothing_around_the_feed_is_a_query_container(screen: Screen) -> None:
    """Breaks when: ``container-type`` is set for an element that the feed is in."""
    await screen.ask("Hello.")
    kinds: Any = await screen.feed.evaluate(
        """feed => {
            const kinds = [];
            for (let one = feed; one; one = one.parentElement)
                kinds.push(getComputedStyle(one).containerType);
            return kinds;
        }"""
    )
    assert set(kinds) == {"normal"}
