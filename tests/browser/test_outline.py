"""The map of a conversation: its outline, jumps in it and back, and the bar that finds words."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.async_api import BrowserContext, Locator, Page, Route, expect

from tests.browser.screen import Screen, imported
from tests.browser.test_accessibility import in_both_themes
from tests.browser.test_compression import fill
from tests.servers import RunningServer
from tests.upstreams import RunningUpstream

pytestmark = pytest.mark.browser

MESSAGES = 600
TALL = "\n\n".join(f"Line {n} of an answer." for n in range(12))
# Whether the words that were gone to, in this message, are on top of everything else there. Those
# before stay marked until the next are found.
_ON_TOP = """seq => {
    const [range] = CSS.highlights.get("found-now") ?? [];
    if (!range?.startContainer.parentElement.closest(`#m-${seq}`)) return false;
    const {left, top, width, height} = range.getBoundingClientRect();
    const there = document.elementFromPoint(left + width / 2, top + height / 2);
    return there !== null && there.contains(range.startContainer);
}"""
TOP = """article => article.getBoundingClientRect().top
    - document.querySelector("#scroller").getBoundingClientRect().top"""


def long_talk(product: RunningServer) -> str:
    """The path of a conversation of 600 messages over three days; some name a lighthouse."""
    found = dict.fromkeys(range(1, MESSAGES, 100), "a lighthouse.")
    answers = (f"Answer {n}, {found.get(n, TALL)}" for n in range(1, MESSAGES, 2))
    texts = [text for n, answer in enumerate(answers) for text in (f"Question {2 * n}?", answer)]
    written = [f"2026-03-{1 + n // 250:02}T12:00:00Z" for n in range(MESSAGES)]
    return imported(product, *texts, written=written)


def outline_of(page: Page) -> Locator:
    """The panel."""
    return page.get_by_role("complementary", name="Outline")


async def opened(screen: Screen) -> Locator:
    """The panel, opened by its button."""
    await screen.button("Outline").click()
    panel = outline_of(screen.page)
    await expect(panel.locator(".entry").first).to_be_visible()
    return panel


def at(screen: Screen, seq: int) -> Locator:
    """The message of that number."""
    return screen.page.locator(f"#m-{seq}")


async def test_a_jump_lands_on_the_message_and_back_returns(
    screen: Screen, product: RunningServer
) -> None:
    """Far away, with few messages in the document; Back leads to the pixel.

    Breaks when: messages are loaded page after page on the way, or the place is not remembered.
    """
    page = screen.page
    await page.goto(long_talk(product))
    panel = await opened(screen)
    current = panel.locator('[aria-current="location"]')
    await expect(current).to_be_focused()
    await expect(current).to_contain_text("Question 59")
    assert await panel.locator(".entry").count() <= 100
    await page.keyboard.press("Home")
    await expect(panel.get_by_role("link", name="Question 0?")).to_be_focused()
    await expect(panel.locator(".entry").first.locator(".day")).to_contain_text("1")
    assert await panel.locator(".day").count() == 1
    for _ in range(3):
        await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    target = at(screen, 7)
    await expect(target).to_be_focused()
    assert abs(await target.evaluate(TOP) - 16) < 2
    assert await screen.articles.count() < 60
    await expect(panel.locator('[aria-current="location"]')).to_contain_text("Question 6?")
    assert page.url.endswith("?around=7#m-7")

    # By the wheel a little down, then to another place, and back.
    await screen.page.locator("#scroller").evaluate("one => one.scrollTop += 137")
    before = await target.evaluate(TOP)
    await panel.get_by_role("link", name="Question 40?").click()
    await expect(at(screen, 41)).to_be_focused()
    # Within 2 pixels of it, once it is loaded.
    there = f"""() => {{
        const article = document.querySelector("#m-7");
        return article && Math.abs(({TOP})(article) - {before}) < 2;
    }}"""
    await page.go_back()
    await page.wait_for_function(there)
    await page.go_back()
    await expect(at(screen, MESSAGES)).to_be_in_viewport()
    await page.go_forward()
    await page.wait_for_function(there)
    assert screen.complaints == []


async def test_a_reload_keeps_the_place_and_the_way_back(
    screen: Screen, product: RunningServer
) -> None:
    """What is sent from there is shown at the end, where it belongs.

    Breaks when: only a jump of the same page load listens to Back, or the end is not loaded first.
    """
    page = screen.page
    await page.goto(long_talk(product))
    panel = await opened(screen)
    await page.keyboard.press("Home")
    await panel.get_by_role("link", name="Question 6?").click()
    target = at(screen, 7)
    await expect(target).to_be_focused()
    await page.reload()
    await expect(target).to_be_focused()
    # Back and forward lead to the same places in the page that was loaded again.
    await page.go_back()
    await expect(at(screen, MESSAGES)).to_be_in_viewport()
    await page.go_forward()
    await expect(target).to_be_focused()
    await expect(panel.locator('[aria-current="location"]')).to_contain_text("Question")
    await screen.send("And now?")
    await expect(screen.feed).to_contain_text("And now?")
    await expect(at(screen, MESSAGES)).to_have_count(1)
    assert screen.complaints == []


async def test_the_list_is_bounded_and_goes_on_by_keys(
    screen: Screen, product: RunningServer
) -> None:
    """More is loaded at the ends, the far end is let go; the slider leads anywhere.

    Breaks when: pages are put together without a limit, or the focus is lost where one begins.
    """
    page = screen.page
    await page.goto(long_talk(product))
    panel = await opened(screen)
    await page.keyboard.press("Home")
    await expect(panel.get_by_role("link", name="Question 0?")).to_be_focused()
    for _ in range(6):
        await page.keyboard.press("PageDown")
    await expect(panel.get_by_role("link", name="Question 120?")).to_be_focused()
    assert await panel.locator(".entry").count() > 100
    slider = panel.get_by_role("slider", name="Place in the conversation")
    await slider.focus()
    await page.keyboard.press("End")
    await expect(panel.get_by_role("link", name="Question 598?")).to_be_visible()
    await expect(slider).to_be_focused()
    await expect(slider).to_have_attribute("aria-valuetext", re.compile(r"Message (\d+) of \1$"))
    await page.keyboard.press("Escape")
    await expect(panel).to_be_hidden()
    await expect(screen.button("Outline")).to_be_focused()


async def test_it_keeps_up_without_being_read_anew(
    screen: Screen, signed_in: BrowserContext, model: RunningUpstream
) -> None:
    """Messages from another tab, an edit, a pin, a compression, its undoing, a new start.

    Breaks when: the list is not merged with what has changed, or is asked for whole.
    """
    page = screen.page
    await fill(screen, 3)
    panel = await opened(screen)
    entries, strata = panel.locator(".entry"), panel.locator(".stratum")
    before = await entries.count()
    screen.requests.clear()
    other = Screen(await signed_in.new_page())
    await other.page.goto(page.url)
    await other.ask("From the other tab.")
    await expect(entries).to_have_count(before + 1)
    await expect(entries.last).to_contain_text("From the other tab.")
    await other.box.press("ArrowUp")
    await other.page.get_by_role("textbox", name="Edit message").fill("Said differently.")
    await other.page.keyboard.press("Enter")
    await expect(entries.last).to_contain_text("Said differently.")
    await expect(entries).to_have_count(before + 1)
    await other.act(-1, "Pin")
    await expect(panel.locator(".entry.assistant")).to_have_count(1)
    await expect(strata).to_have_count(0)
    await other.send("/compact")
    await expect(strata).to_have_count(1)
    await expect(strata).to_contain_text("In the summary 1–")
    assert await panel.locator(".rail rect.summary").count() == 1
    await other.send("/undo")
    await expect(strata).to_have_count(0)
    await other.send("/clear")
    await expect(strata).to_contain_text("Left behind by a new start")
    asked = [one for one in screen.requests if "/outline/" in one]
    assert asked
    assert all("?since=" in one for one in asked)
    assert screen.complaints == []


async def test_what_could_not_be_asked_for_is_asked_for_again(screen: Screen) -> None:
    """With no other change that would lead to it.

    Breaks when: ``ask`` does not call ``changed`` where the server gave no answer.
    """
    await fill(screen, 1)
    panel = await opened(screen)
    refused: list[str] = []

    async def refuse(route: Route) -> None:
        refused.append(route.request.url)
        if len(refused) > 3:
            await route.continue_()
        else:
            await route.fulfill(status=503)

    await screen.page.route("**/outline/?since=*", refuse)
    await screen.ask("And now?")
    await expect(panel.get_by_role("status")).to_have_text(re.compile("tried again"))
    await expect(panel.locator(".entry").last).to_contain_text("And now?")
    await expect(panel.get_by_role("status")).to_have_text("")


async def test_words_are_found_marked_and_stepped_through(
    screen: Screen, product: RunningServer
) -> None:
    """From the command; counted, in the text, in the outline; the focus stays in the bar.

    Breaks when: a step takes the focus, the hits are looked for in the loaded messages only, or the
    outline marks what stands above the hit.
    """
    page = screen.page
    await page.goto(long_talk(product))
    panel = await opened(screen)
    await screen.send("/find lighthouses")
    bar = page.get_by_role("search", name="Find in this conversation")
    field, count = bar.get_by_role("searchbox"), bar.get_by_role("status")
    await expect(field).to_be_focused()
    await expect(count).to_have_text("6 messages")
    await expect(panel.locator(".rail .found rect")).to_have_count(6)
    await page.keyboard.press("Shift+Enter")
    await expect(count).to_have_text("6 of 6 messages")
    await expect(at(screen, 502)).to_be_in_viewport()
    await expect(field).to_be_focused()
    marked: Any = "() => [...CSS.highlights.get('found-now')].map(String)"
    await page.wait_for_function("() => CSS.highlights.get('found-now')?.size === 1")
    assert await page.evaluate(marked) == ["lighthouse"]
    question = panel.get_by_role("link", name="Question 500?")
    await expect(question.locator(".count")).to_have_text("1 message found")
    await expect(question).to_have_attribute("aria-current", "location")
    await page.keyboard.press("Enter")
    await expect(count).to_have_text("1 of 6 messages")
    await expect(at(screen, 2)).to_be_in_viewport()
    await field.fill("lighthouse submarine")
    await expect(count).to_contain_text("some of the words")
    await field.fill("nothing of this")
    await expect(count).to_have_text("Not found")
    await expect(panel.locator(".count")).to_have_count(0)
    await page.keyboard.press("Escape")
    await expect(bar).to_be_hidden()
    # All steps were one: Back leads to where the reader began.
    await page.go_back()
    await expect(at(screen, MESSAGES)).to_be_in_viewport()
    assert screen.complaints == []


@pytest.mark.parametrize("size", [(1440, 900), (390, 844)])
async def test_what_is_found_is_in_sight(
    screen: Screen, product: RunningServer, size: tuple[int, int]
) -> None:
    """Neither the bar nor the outline, a sheet on a phone, lies upon it; what is read stays.

    Breaks when: the bar floats over the messages, or the sheet keeps its height meanwhile.
    """
    page = screen.page
    await page.set_viewport_size({"width": size[0], "height": size[1]})
    await page.goto(long_talk(product))
    await opened(screen)
    await page.locator("#scroller").evaluate("one => one.scrollTop -= 2000")
    read = "() => document.querySelector('#m-595').getBoundingClientRect().top"
    before = await page.evaluate(read)
    await screen.send("/find lighthouses")
    bar = page.get_by_role("search", name="Find in this conversation")
    await expect(bar.get_by_role("status")).to_have_text("6 messages")
    assert abs(await page.evaluate(read) - before) < 2
    for seq in (502, 402, 302):
        await page.keyboard.press("Shift+Enter")
        await page.wait_for_function(_ON_TOP, arg=seq)
    edges = [await one.bounding_box() for one in (bar, page.locator("#scroller"))]
    assert edges[0]
    assert edges[1]
    assert edges[0]["y"] + edges[0]["height"] <= edges[1]["y"]


@pytest.mark.soak
async def test_on_a_phone_it_is_a_sheet(screen: Screen, product: RunningServer) -> None:
    """It goes away when it has led somewhere; wide, it stays, and is there after a reload.

    Breaks when: the sheet covers the message that it led to, or loses the reader's place.
    """
    page = screen.page
    await page.goto(long_talk(product))
    await page.set_viewport_size({"width": 390, "height": 844})
    panel = await opened(screen)
    assert await in_both_themes(page) == []
    await panel.get_by_role("link", name="Question 560?").click()
    await expect(panel).to_be_hidden()
    await expect(at(screen, 561)).to_be_focused()
    await expect(at(screen, 561)).to_be_in_viewport()
    await page.set_viewport_size({"width": 1440, "height": 900})
    await page.keyboard.press("Control+Shift+L")
    await expect(panel.locator('[aria-current="location"]')).to_be_focused()
    assert await in_both_themes(page) == []
    await page.reload()
    await expect(panel.locator('[aria-current="location"]')).to_be_in_viewport()
    # A window that is made narrow, or a phone that is turned.
    await page.set_viewport_size({"width": 390, "height": 844})
    await expect(panel.locator('[aria-current="location"]')).to_be_in_viewport()
    await page.set_viewport_size({"width": 1440, "height": 900})
    await page.keyboard.press("Control+Shift+E")
    drawer = page.get_by_role("complementary", name="What the model sees")
    await expect(drawer).to_be_visible()
    await expect(panel).to_be_hidden()


async def test_without_scripts_it_is_a_page(
    screen: Screen, product: RunningServer, signed_in: BrowserContext
) -> None:
    """Breaks when: the outline is put together by scripts only."""
    path = long_talk(product)
    plain = await signed_in.browser.new_context(  # type: ignore[union-attr]
        base_url=product.base_url,
        java_script_enabled=False,
        storage_state=await signed_in.storage_state(),
    )
    page = await plain.new_page()
    await page.goto(path)
    await page.get_by_role("link", name="Outline").click()
    await page.get_by_role("link", name="Earlier").click()
    await page.get_by_role("link", name="Question 210?").click()
    await expect(page.locator("#m-211")).to_contain_text("Question 210?")
    await plain.close()
