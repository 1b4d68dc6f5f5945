"""The list of conversations, search and settings, as a reader uses them."""

from __future__ import annotations

import asyncio
import re

import pytest
from playwright.async_api import Route, expect

from tests.browser.screen import Screen
from tests.browser.scripts import held
from tests.upstreams import RunningUpstream

pytestmark = [pytest.mark.browser]


def entry(screen: Screen, title: str):  # type: ignore[no-untyped-def]
    nav = screen.page.get_by_role("navigation", name="Conversations")
    return nav.get_by_role("listitem").filter(has_text=title)


async def test_rename_pin_archive_and_delete_with_undo(screen: Screen) -> None:
    """By the keyboard alone, once the menu is reached."""
    page = screen.page
    await screen.send("Call this one heron")
    await page.wait_for_url(re.compile("/c/"))
    await expect(screen.feed.locator("[aria-busy]")).to_have_count(0)
    await expect(entry(screen, "Call this one heron")).to_have_count(1)

    menu = page.get_by_role("button", name="Actions for Call this one heron")
    await menu.focus()
    await page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Conversation")
    await expect(dialog).to_be_visible()
    await page.keyboard.type("Grey <b>heron</b>")
    await page.keyboard.press("Enter")
    await expect(entry(screen, "Grey <b>heron</b>")).to_have_count(1)
    await expect(page.get_by_role("heading", level=1)).to_have_text("Grey <b>heron</b>")

    actions = page.get_by_role("button", name="Actions for Grey <b>heron</b>")
    await actions.press("Enter")
    await dialog.get_by_role("button", name="Pin").press("Enter")
    await expect(page.get_by_text("Pinned", exact=True)).to_be_visible()

    await actions.press("Enter")
    await dialog.get_by_role("button", name="Delete").press("Enter")
    undo = page.get_by_role("button", name="Undo", exact=True)
    await expect(undo).to_be_visible()
    await undo.press("Enter")
    await page.wait_for_url(re.compile("/c/"))
    await expect(page.get_by_role("heading", level=1)).to_have_text("Grey <b>heron</b>")
    assert screen.complaints == []


async def test_a_search_leads_to_the_message(screen: Screen) -> None:
    page = screen.page
    await screen.send("The word is quetzal")
    await page.wait_for_url(re.compile("/c/"))
    await expect(screen.feed.locator("[aria-busy]")).to_have_count(0)
    await page.keyboard.press("Control+k")
    await expect(page.get_by_role("searchbox", name="Search messages")).to_be_focused()
    await page.keyboard.type("quetzal")
    await page.keyboard.press("Enter")
    await page.wait_for_url(re.compile(r"/search/\?q=quetzal"))
    await page.locator(".found .where a").last.click()
    await page.wait_for_url(re.compile(r"\?around=\d+#m-\d+"))
    await expect(page.locator("article.sought")).to_be_in_viewport()
    await expect(page.locator("article.sought")).to_contain_text("quetzal")
    assert screen.complaints == []


async def test_settings_save_themselves_and_hold(screen: Screen) -> None:
    page = screen.page
    await page.goto("/settings/")
    await page.get_by_label("Send with").select_option("modifier-enter")
    await expect(page.get_by_role("status")).to_have_text("Saved.")
    await page.goto("/?new")
    await screen.box.fill("line one")
    await screen.box.press("Enter")
    await screen.box.press("x")
    assert await screen.box.input_value() == "line one\nx"
    await screen.box.press("Control+Enter")
    await page.wait_for_url(re.compile("/c/"))
    await page.goto("/settings/")
    await page.get_by_label("Send with").select_option("enter")
    await expect(page.get_by_role("status")).to_have_text("Saved.")
    assert screen.complaints == []


async def test_the_mark_of_an_answer_goes_with_the_answer(
    screen: Screen, model: RunningUpstream
) -> None:
    """Also when the list that was asked for at its beginning comes after its end.

    Breaks when: ``refresh`` in ``list.js`` is not done again for a change while it is under way.
    """
    await screen.ask("Hello.")
    read, ended = asyncio.Event(), asyncio.Event()

    async def late(route: Route) -> None:
        answer = await route.fetch()
        read.set()
        await ended.wait()
        await route.fulfill(response=answer)

    await screen.page.route("**/?current=*", late)
    model.script(held("An answer", " that takes long"))
    await screen.send("And now?")
    await read.wait()
    model.release()
    await expect(screen.button("Stop")).to_be_hidden()
    async with screen.page.expect_request("**/?current=*"):
        ended.set()
    await expect(entry(screen, "Hello.").locator(".answering")).to_be_hidden()
