"""The drawer "What the model sees": what it shows, and what can be done in it."""

from __future__ import annotations

import asyncio
import re

import pytest
from playwright.async_api import Locator, Page, Route, expect

from tests.browser.screen import Screen
from tests.browser.test_compression import fill

pytestmark = pytest.mark.browser

LOADED = "({come: new Promise(come => addEventListener('htmx:afterOnLoad', come, {once: true}))})"


def drawer_of(screen: Screen) -> Locator:
    return screen.page.get_by_role("complementary", name="What the model sees")


async def held(page: Page, pattern: str) -> asyncio.Event:
    """Requests to such addresses go on once the event is set."""
    goes_on = asyncio.Event()

    async def late(route: Route) -> None:
        await goes_on.wait()
        await route.continue_()

    await page.route(pattern, late)
    return goes_on


async def comes(page: Page, late: asyncio.Event) -> None:
    """Let what is held go on, until the page has taken the answer in."""
    came = await page.evaluate_handle(LOADED)
    late.set()
    await came.evaluate("({come}) => come.then(() => null)")


async def test_the_drawer_acts_on_what_it_shows(screen: Screen) -> None:
    page = screen.page
    await fill(screen, 5)
    await page.keyboard.press("Control+Shift+E")
    drawer = drawer_of(screen)
    second, sixth = drawer.locator("#seen-2"), drawer.locator("#seen-6")
    await second.locator("summary").click()
    await expect(second).to_contain_text("You said: Always answer in British English.")
    await second.get_by_role("button", name="Pin").click()
    await expect(second.get_by_text("Pinned")).to_be_visible()
    await expect(second).to_have_attribute("open", "")
    await expect(second.get_by_role("button", name="Unpin")).to_be_focused()
    await expect(screen.articles.nth(1).get_by_text("Pinned")).to_be_visible()
    await sixth.locator("summary").click()
    await sixth.get_by_role("button", name="Compress up to here").click()
    divider = page.get_by_role("region", name="Compressed messages")
    await expect(divider).to_have_attribute("data-boundary", "6")
    await page.keyboard.press("Escape")
    await page.keyboard.press("Control+Shift+E")
    await expect(sixth).to_have_count(0)
    await expect(drawer.get_by_role("link", name="Edit")).to_be_visible()
    await drawer.get_by_role("link", name="Versions").click()
    await expect(drawer.get_by_role("heading", name="Versions")).to_be_visible()
    await page.keyboard.press("Escape")
    await page.keyboard.press("Control+Shift+E")
    await drawer.get_by_role("button", name="Undo").click()
    await expect(sixth).to_have_count(1)
    await expect(divider).to_contain_text("The summary was removed")


@pytest.mark.parametrize("how", ["button", "key", "command"])
async def test_whoever_opens_the_drawer_is_in_it(screen: Screen, how: str) -> None:
    """However it is opened, and back at its button afterwards; what is read stays in view.

    Breaks when: ``show`` in ``drawer.js`` leaves the focus where it was.
    """
    page, body = screen.page, screen.page.locator("#drawer-body")
    await screen.ask("Hello.")
    if how == "button":
        await screen.button("What the model sees").press("Enter")
    elif how == "key":
        await page.keyboard.press("Control+Shift+E")
    else:
        await screen.send("/context")
    await expect(body).to_be_focused()
    await expect(body).to_contain_text("kept free for the reply")
    await expect(body).to_be_focused()
    await page.keyboard.press("Tab")
    assert await body.evaluate("body => body.contains(document.activeElement)")
    assert await page.evaluate("scrollY + document.querySelector('.layout').scrollTop") == 0
    await page.keyboard.press("Escape")
    await expect(screen.button("What the model sees")).to_be_focused()


@pytest.mark.parametrize("width", [1024, 1279])
async def test_between_wide_and_narrow_the_navigation_gives_way(screen: Screen, width: int) -> None:
    """Breaks when: the columns beside the open drawer are those of a wide screen."""
    page, nav = screen.page, screen.page.get_by_role("navigation", name="Conversations")
    await page.set_viewport_size({"width": width, "height": 700})
    await screen.ask("Hello.")
    await expect(nav).to_be_visible()
    await page.keyboard.press("Control+Shift+E")
    await expect(drawer_of(screen)).to_be_visible()
    await expect(nav).to_have_count(0)
    main = await page.get_by_role("main").bounding_box()
    title = await page.get_by_role("heading", level=1).bounding_box()
    assert main is not None
    assert title is not None
    assert main["width"] >= 600
    assert title["width"] > 0
    await screen.button("Conversations").click()
    dialog = page.get_by_role("dialog", name="Conversations")
    await expect(dialog.get_by_role("navigation", name="Conversations")).to_be_visible()
    await page.keyboard.press("Escape")
    await page.keyboard.press("Control+K")
    await expect(page.get_by_role("combobox", name="Search and commands")).to_be_focused()
    await page.keyboard.press("Escape")
    await page.keyboard.press("Escape")
    await expect(drawer_of(screen)).to_be_hidden()
    await expect(nav).to_be_visible()
    await expect(screen.button("Conversations")).to_be_hidden()


async def test_the_drawer_follows_what_is_done_outside_it(screen: Screen) -> None:
    """Breaks when: a pin or other instructions do not count as a change of what the model sees."""
    await screen.ask("Hello.")
    await screen.page.keyboard.press("Control+Shift+E")
    drawer = drawer_of(screen)
    await expect(drawer).to_contain_text("kept free for the reply")
    await screen.act(0, "Pin")
    await expect(drawer.locator("#seen-1")).to_contain_text("Pinned")
    await screen.send("/system Answer in rhyme.")
    await expect(drawer).to_contain_text("Answer in rhyme.")


@pytest.mark.parametrize("key", ["Escape", "Control+Shift+E"])
async def test_what_was_closed_stays_closed(screen: Screen, key: str) -> None:
    """Before its text has come, too.

    Breaks when: that text opens the drawer again, or is what tells that the key opened it.
    """
    await screen.ask("Hello.")
    page, drawer = screen.page, drawer_of(screen)
    late = await held(page, "**/context/")
    await page.keyboard.press("Control+Shift+E")
    await expect(drawer).to_be_visible()
    await page.keyboard.press(key)
    await expect(drawer).to_be_hidden()
    await comes(page, late)
    await expect(drawer).to_be_hidden()


async def test_a_summary_is_edited_in_its_place(screen: Screen) -> None:
    """Breaks when: the text that is read stays above the box, or Cancel leaves the box open."""
    page = screen.page
    await fill(screen, 3)
    await screen.button("Compact").click()
    await screen.button("Edit summary").click()
    conversation = page.url
    for path in ("", "summaries/?edit=1"):
        if path:
            await page.goto(f"{conversation}{path}")
        text, prose = page.get_by_role("textbox", name="Summary"), page.locator(".prose")
        await expect(text).to_be_visible()
        await expect(prose).to_be_hidden()
        before = await text.input_value()
        # As high as its text, up to a limit.
        await text.fill("One line.")
        low = await text.bounding_box()
        await text.fill("A line.\n" * 200)
        high = await text.bounding_box()
        assert low is not None
        assert high is not None
        assert low["height"] < high["height"] < 860
        await screen.button("Cancel").click()
        await expect(text).to_be_hidden()
        await expect(prose).to_be_visible()
        await page.locator(".edit > summary").click()
        await expect(text).to_have_value(before)


async def test_a_summary_that_is_written_is_not_lost(screen: Screen) -> None:
    """Breaks when: another view takes the place of the words, or the page goes without asking."""
    page, text = screen.page, screen.page.get_by_role("textbox", name="Summary")
    await fill(screen, 3)
    await screen.button("Compact").click()
    await screen.button("Edit summary").click()
    await text.fill("## Context\n- Words that nobody has saved.")
    await page.keyboard.press("Escape")
    await expect(text).to_be_hidden()
    await screen.button("Edit summary").click()
    await expect(text).to_be_focused()
    await expect(text).to_have_value(re.compile("nobody has saved"))
    await expect(page.get_by_role("alert")).to_have_count(0)
    await page.keyboard.press("Escape")
    await page.keyboard.press("Control+Shift+E")
    await expect(text).to_have_value(re.compile("nobody has saved"))
    await expect(page.get_by_role("alert")).to_contain_text("Save or cancel them first")
    await screen.button("Cancel").click()
    await page.keyboard.press("Escape")
    await page.keyboard.press("Control+Shift+E")
    await expect(drawer_of(screen)).to_contain_text("kept free for the reply")
    assert await screen.leaves() is None
    await screen.button("Edit summary").click()
    await text.press_sequentially("Other words.")
    assert await screen.leaves() == "beforeunload"


async def test_a_message_that_is_edited_is_not_lost_with_the_page(screen: Screen) -> None:
    await screen.ask("Hello.")
    await screen.box.press("ArrowUp")
    text = screen.page.get_by_role("textbox", name="Edit message")
    await expect(text).to_be_focused()
    assert await screen.leaves() is None
    await screen.box.press("ArrowUp")
    await text.press_sequentially("Hello there.")
    assert await screen.leaves() == "beforeunload"


async def test_the_drawer_shows_what_was_asked_for_last(screen: Screen) -> None:
    """Breaks when: answers are shown in the order in which they come."""
    await screen.ask("Hello.")
    page, drawer = screen.page, drawer_of(screen)
    late = await held(page, "**/turns/*/")
    await screen.act(1, "What this reply saw")
    await expect(drawer).to_be_visible()
    await page.keyboard.press("Control+Shift+E")
    await expect(drawer).to_contain_text("kept free for the reply")
    await comes(page, late)
    await expect(drawer).to_contain_text("kept free for the reply")


async def test_the_drawer_is_not_older_than_what_was_told_meanwhile(screen: Screen) -> None:
    """Breaks when: a change is passed over because what it outdates has not come yet."""
    await screen.ask("Hello.")
    later = asyncio.Event()

    async def outdated(route: Route) -> None:
        answer = await route.fetch()
        await later.wait()
        await route.fulfill(response=answer)

    page, drawer = screen.page, drawer_of(screen)
    await page.route("**/context/", outdated, times=1)
    async with page.expect_request("**/context/"):
        await page.keyboard.press("Control+Shift+E")
    await screen.ask("And now?")
    later.set()
    await expect(drawer).to_contain_text("And now?")
