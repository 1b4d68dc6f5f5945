"""The palette: what is found and done by a few letters; and the page of a search."""

from __future__ import annotations

import asyncio
import re

import pytest
from playwright.async_api import Locator, Page, Route, expect

from tests.browser.screen import Screen, imported
from tests.browser.test_accessibility import findings, in_both_themes
from tests.servers import RunningServer

pytestmark = pytest.mark.browser


def field(page: Page) -> Locator:
    return page.get_by_role("combobox", name="Search and commands")


def options(page: Page) -> Locator:
    return page.locator("#palette").get_by_role("option")


def chosen(page: Page) -> Locator:
    return page.locator("#palette").get_by_role("option", selected=True)


async def test_what_was_said_is_found_while_one_types(
    screen: Screen, product: RunningServer
) -> None:
    """The keyboard alone: an answer to fewer letters does not take the place of a later one.

    Breaks when: ``ask`` in ``palette.js`` does not drop what was asked before, Enter does not act
    on the chosen option, or the hit is not marked where it leads.
    """
    page = screen.page
    imported(product, "On ruffs", "The turnstone <b>turns</b> stones.")
    await page.goto(imported(product, "On terns", "They dive."))
    late = asyncio.Event()

    async def first(route: Route) -> None:
        await late.wait()
        await route.fulfill(json={"query": "turn", "messages": [], "titles": [], "counts": {}})

    await page.route(re.compile(r"/search/\?q=turn$"), first)
    await page.keyboard.press("Control+k")
    async with page.expect_request(re.compile(r"/search/\?q=turn$")):
        await page.keyboard.type("turn")
    await page.keyboard.type("stone")
    group = page.get_by_role("group", name="On ruffs 1 message")
    hit = group.get_by_role("option")
    await expect(hit).to_have_count(1)
    late.set()
    await expect(hit).to_contain_text("The turnstone <b>turns</b> stones.")
    await expect(hit).to_contain_text(re.compile("(You|Assistant) · .* ago|just now"))
    await expect(chosen(page)).to_contain_text("turnstone")
    await expect(field(page)).to_have_attribute("aria-activedescendant", "palette-0")
    await page.keyboard.press("ArrowUp")
    await expect(chosen(page)).to_have_text("All results for “turnstone”")
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    await page.wait_for_url(re.compile(r"\?around=2&q=turnstone#m-2"))
    await expect(page.locator("article.sought mark")).to_be_in_viewport()
    assert screen.complaints == []


async def test_commands_act_and_leave_what_is_being_written(screen: Screen) -> None:
    """Breaks when: a command of the palette empties the message box, "/" lists anything but
    commands, or Esc does not give the focus back."""
    page = screen.page
    await screen.ask("Call this one whinchat")
    await screen.box.fill("Half a sentence")
    await page.keyboard.press("Control+k")
    await expect(chosen(page)).not_to_have_count(0)
    await page.keyboard.press("Escape")
    await expect(screen.box).to_be_focused()
    await page.keyboard.press("Control+k")
    await page.keyboard.type("model sees")
    await expect(chosen(page)).to_contain_text("What the model sees")
    await page.keyboard.press("Enter")
    drawer = page.get_by_role("complementary", name="What the model sees")
    await expect(drawer).to_contain_text("kept free for the reply")
    await page.keyboard.press("Escape")
    await page.keyboard.press("Control+k")
    await page.keyboard.type("/exp")
    await expect(options(page)).to_have_count(1)
    await expect(options(page)).to_contain_text("/export")
    await field(page).fill("/title Stonechat")
    await expect(chosen(page)).to_contain_text("/title Stonechat")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Stonechat")
    await page.route("**/search/**", lambda route: route.abort())
    await page.keyboard.press("Control+k")
    await page.keyboard.type("chat")
    await expect(page.get_by_text("Messages cannot be searched now.")).to_be_visible()
    await expect(chosen(page)).to_contain_text("Stonechat")
    await page.keyboard.press("Control+k")
    await expect(field(page)).to_be_hidden()
    await expect(screen.box).to_have_value("Half a sentence")
    assert screen.complaints == []


async def test_many_results_stand_beside_the_list(screen: Screen) -> None:
    """The list's menus and the account's work there, by the arrow keys too.

    Breaks when: a module of the search page asks for the message box when it is loaded, or a menu
    does not give the focus back to its button.
    """
    page = screen.page
    await screen.ask("Call this one wheatear")
    await page.keyboard.press("Control+k")
    await page.keyboard.type("wheatear")
    await options(page).filter(has_text="All results").click()
    await page.wait_for_url(re.compile(r"/search/\?q=wheatear"))
    nav = page.get_by_role("navigation", name="Conversations")
    await expect(nav.get_by_text("Today")).to_be_visible()
    more = page.get_by_role("button", name="Actions for Call this one wheatear")
    await more.press("Enter")
    menu = page.get_by_role("group", name="Conversation")
    await expect(menu.get_by_role("button", name="Rename")).to_be_focused()
    await page.keyboard.press("ArrowUp")
    await expect(menu.get_by_role("button", name="Delete")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(more).to_be_focused()
    await more.click()
    await expect(menu).to_be_visible()
    await more.click()
    await expect(menu).to_be_hidden()
    account = page.locator("#account-button")
    await account.press("Enter")
    await page.keyboard.press("ArrowDown")
    await expect(page.get_by_role("link", name="Settings")).to_be_focused()
    await page.mouse.click(700, 700)
    await expect(page.get_by_role("link", name="Settings")).to_be_hidden()
    await page.keyboard.press("Control+k")
    await page.keyboard.type("settings")
    await expect(chosen(page)).to_have_text("Settings")
    await page.keyboard.press("Enter")
    await page.wait_for_url("**/settings/")
    assert screen.complaints == []


async def test_axe_finds_nothing_in_the_palette_and_the_menus(screen: Screen) -> None:
    page = screen.page
    await screen.ask("Call this one ouzel")
    await page.keyboard.press("Control+k")
    await page.keyboard.type("ouzel")
    await expect(page.get_by_role("group", name="This conversation · 2 messages")).to_be_visible()
    found = await in_both_themes(page)
    await page.keyboard.press("Escape")
    await page.get_by_role("button", name="Actions for Call this one ouzel").press("Enter")
    await expect(page.get_by_role("button", name="Rename").first).to_be_focused()
    found += await in_both_themes(page)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("textbox", name="Title")).to_be_focused()
    found += await findings(page)
    await page.keyboard.press("Escape")
    await page.locator("#account-button").press("Enter")
    await expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    found += await in_both_themes(page)
    assert found == []
