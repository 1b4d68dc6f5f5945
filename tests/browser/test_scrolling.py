"""Where the reader is in the text: what other browsers than Chromium make of it, shown in Chromium.

WebKit sizes no box by its text, anchors nothing, tells of its own corrections by a scroll event
and lays a query container out before the new elements in it.
"""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import BrowserContext, Locator, Page, expect

from tests.browser.screen import Screen, imported
from tests.browser.scripts import pausing
from tests.servers import RunningServer
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


async def top_of(article: Locator) -> float:
    """Where it stands in the window, in pixels."""
    box = await article.bounding_box()
    assert box is not None
    return float(box["y"])


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


async def test_the_reader_lets_go_also_while_the_text_shrinks(
    screen: Screen, signed_in: BrowserContext, model: RunningUpstream
) -> None:
    """A jump upward in the frame in which the text gets shorter is told of as one scroll.

    Breaks when: ``scrolled`` in ``scroll.js`` takes a whole movement for the browser's, because the
    text is shorter than before.
    """
    page = screen.page
    model.script({"text": LONG})
    await screen.ask("A long one.")
    await without_anchoring(page)
    await page.evaluate(TWO_FRAMES)
    await page.evaluate(
        """() => {
            document.querySelector("#feed article:last-of-type .body").lastElementChild.remove();
            document.querySelector("#scroller").scrollTop = 0;
        }"""
    )
    await page.evaluate(TWO_FRAMES)
    other = Screen(await signed_in.new_page())
    await other.page.goto(page.url)
    await other.ask("From elsewhere.")
    await expect(screen.articles).to_have_count(4)
    await page.evaluate(TWO_FRAMES)
    assert await scroller_of(screen).evaluate("scroller => scroller.scrollTop") == 0


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


@pytest.mark.parametrize("anchoring", [pytest.param(True, marks=pytest.mark.soak), False])
async def test_what_is_read_stays_when_messages_come_above_it_and_leave(
    screen: Screen, product: RunningServer, anchoring: bool
) -> None:
    """Older messages come, and newer ones push the oldest out of the page.

    Breaks when: ``hold`` in ``scroll.js`` moves nothing, or ``trim`` does not hold.
    """
    texts = [f"Message {n + 1}.\n" + "A line.\n" * (n % 4) for n in range(500)]
    await screen.page.goto(imported(product, *texts))
    # The page follows its end once more when the fonts have come.
    await screen.page.evaluate("document.fonts.ready")
    if not anchoring:
        await without_anchoring(screen.page)
    for n, count in enumerate((80, 130, 180, 230, 280, 330, 380, 400)):
        read = screen.page.locator("#" + str(await screen.articles.first.get_attribute("id")))
        before: float = await scroller_of(screen).evaluate(
            """(scroller, top) => {
                scroller.scrollTop = top;
                return document.querySelector("article").getBoundingClientRect().top;
            }""",
            n % 3 * 10,
        )
        await expect(screen.articles).to_have_count(count)
        assert abs(await top_of(read) - before) < 2
    newer = screen.page.get_by_role("link", name="Newer messages")
    await newer.scroll_into_view_if_needed()
    read = screen.page.locator("#" + str(await screen.articles.last.get_attribute("id")))
    before = await top_of(read)
    await newer.click()
    await expect(screen.articles.last).to_contain_text("Message 500.")
    await expect(screen.articles).to_have_count(400)
    await screen.page.evaluate(TWO_FRAMES)
    assert abs(await top_of(read) - before) < 2


@pytest.mark.parametrize("anchoring", [pytest.param(True, marks=pytest.mark.soak), False])
async def test_what_is_read_stays_when_a_divider_comes_above_it(
    screen: Screen, signed_in: BrowserContext, model: RunningUpstream, anchoring: bool
) -> None:
    """Breaks when: ``app.js`` does not hold while it takes in what came."""
    for number in range(3):
        await screen.ask(f"Question {number}. " + "The same price again. " * 60)
    model.script({"text": LONG})
    await screen.ask("A long one.")
    if not anchoring:
        await without_anchoring(screen.page)
    read = screen.articles.last
    await scroller_of(screen).hover()
    await screen.page.mouse.wheel(0, -600)
    await expect(read.get_by_text("number 59 ")).not_to_be_in_viewport()
    await screen.page.evaluate(TWO_FRAMES)
    before = await top_of(read)
    other = Screen(await signed_in.new_page())
    await other.page.goto(screen.page.url)
    await other.send("/compact")
    await expect(screen.page.get_by_role("region", name="Compressed messages")).to_be_attached()
    await expect(screen.box).to_be_editable()
    await screen.page.evaluate(TWO_FRAMES)
    assert abs(await top_of(read) - before) < 2


async def test_there_is_a_way_back_to_the_end(screen: Screen, model: RunningUpstream) -> None:
    """Breaks when: the pill is there for new text only."""
    model.script({"text": LONG * 2})
    await screen.ask("A long one.")
    way = screen.button("To the end")
    await expect(way).to_be_hidden()
    await scroller_of(screen).hover()
    await screen.page.mouse.wheel(0, -200)
    await expect(way).to_be_hidden()
    await screen.page.mouse.wheel(0, -4000)
    await way.click()
    await expect(way).to_be_hidden()
    assert await scroller_of(screen).evaluate(AWAY) < 2


@pytest.mark.parametrize("key", ["End", "Control+End"])
async def test_the_end_key_reaches_the_end_of_a_reply_that_grows(
    screen: Screen, model: RunningUpstream, key: str
) -> None:
    """And the view follows from there, until the reader goes up again.

    Breaks when: the key is left to the browser, which glides to where the end was.
    """
    model.script(pausing(LONG, *["One more paragraph.\n\n" * 3] * 60, seconds=0.05))
    await screen.send("A story.")
    reply, scroller = screen.articles.last, scroller_of(screen)
    await expect(reply).to_contain_text("One more paragraph.")
    await reply.get_by_text("Paragraph number 59 ").click()
    await screen.page.mouse.wheel(0, -3000)
    await expect(reply.get_by_text("Paragraph number 59 ")).not_to_be_in_viewport()
    await screen.page.keyboard.press(key)
    more = reply.get_by_text("One more paragraph.")
    seen = await more.count()
    await expect(more.nth(seen + 50)).to_be_attached()
    # As far as one piece goes, not fifty.
    assert await scroller.evaluate(AWAY) < 600
    await screen.page.mouse.wheel(0, -4)
    await screen.page.evaluate(TWO_FRAMES)
    top = await scroller.evaluate("scroller => scroller.scrollTop")
    await expect(screen.button("Stop")).to_be_hidden()
    assert await scroller.evaluate("scroller => scroller.scrollTop") == top


async def test_the_end_key_belongs_to_what_is_written_or_scrolled_in_itself(
    screen: Screen, model: RunningUpstream
) -> None:
    """Breaks when: the key leads to the end of the feed wherever it is pressed."""
    model.script({"text": LONG})
    await screen.ask("A long one.")
    await screen.box.fill("one\ntwo")
    await scroller_of(screen).hover()
    await screen.page.mouse.wheel(0, -2000)
    await expect(screen.button("To the end")).to_be_visible()
    await screen.box.evaluate("box => box.setSelectionRange(0, 0)")
    await screen.box.press("End")
    assert await screen.box.evaluate("box => box.selectionStart") == 3
    inner = await scroller_of(screen).evaluate_handle("""scroller => {
        const inner = document.createElement("pre");
        inner.tabIndex = 0;
        inner.style.cssText = "height: 5rem; overflow: auto";
        inner.textContent = "line\\n".repeat(50);
        scroller.querySelector("article .body").append(inner);
        inner.focus({ preventScroll: true });
        return inner;
    }""")
    ended = "inner => new Promise(done => inner.addEventListener('scrollend', done, {once: true}))"
    reached = screen.page.evaluate_handle(f"inner => ({{ end: ({ended})(inner) }})", inner)
    waiting = await reached
    await screen.page.keyboard.press("End")
    await screen.page.evaluate("async waiting => { await waiting.end; }", waiting)
    assert await inner.evaluate(AWAY) < 2
    await expect(screen.button("To the end")).to_be_visible()


async def test_whoever_starts_afresh_sees_the_line_that_says_so(
    screen: Screen, model: RunningUpstream
) -> None:
    """Breaks when: ``/clear`` leaves the reader further up."""
    model.script({"text": LONG})
    await screen.ask("A long one.")
    await scroller_of(screen).hover()
    await screen.page.mouse.wheel(0, -600)
    await expect(screen.articles.last.get_by_text("number 59 ")).not_to_be_in_viewport()
    await screen.send("/clear")
    divider = screen.page.get_by_role("region", name="Compressed messages")
    await expect(divider).to_contain_text("starts afresh")
    await expect(divider).to_be_in_viewport(ratio=1)
