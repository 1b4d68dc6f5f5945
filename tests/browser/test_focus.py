"""Where the focus is once an answer has come late: wherever the person has gone meanwhile."""

from __future__ import annotations

import asyncio

import pytest
from playwright.async_api import Locator, Route, expect

from tests.browser.screen import Screen

pytestmark = pytest.mark.browser


async def elsewhere(screen: Screen) -> Locator:
    """Go to the account's button, as one does who does not wait."""
    account = screen.page.locator("#account-button")
    await account.focus()
    return account


async def hold(screen: Screen, pattern: str) -> asyncio.Queue[Route]:
    """The next request for it, which waits until the test lets it go on."""
    routes: asyncio.Queue[Route] = asyncio.Queue()
    await screen.page.route(pattern, routes.put, times=1)
    return routes


async def test_the_list_read_again_does_not_take_it(screen: Screen) -> None:
    """Breaks when: leaving a title's field focuses its menu after the list has come."""
    page = screen.page
    await screen.ask("Call this one ouzel")
    menu = page.get_by_role("button", name="Actions for Call this one ouzel")
    await menu.press("Enter")
    await expect(page.get_by_role("button", name="Rename").first).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("textbox", name="Title")).to_be_focused()
    late = await hold(screen, "**/?current=*")
    old = await menu.element_handle()
    await page.keyboard.press("Escape")
    route = await late.get()
    account = await elsewhere(screen)
    await route.continue_()
    await page.wait_for_function("old => !old.isConnected", arg=old)
    await expect(account).to_be_focused()


async def test_a_refusal_does_not_take_it(screen: Screen) -> None:
    """Breaks when: a refused text that is put back into its box takes the focus with it."""
    await screen.ask("Hello.")
    late = await hold(screen, "**/messages/")
    await screen.send("Not this one.")
    route = await late.get()
    account = await elsewhere(screen)
    refusal = {"error": {"code": "x", "message": "Not now.", "retryable": False}}
    await route.fulfill(status=422, json=refusal)
    await expect(screen.box).to_have_value("Not this one.")
    await expect(screen.page.get_by_role("alert")).to_contain_text("Not now.")
    await expect(account).to_be_focused()


async def test_a_message_sent_again_does_not_take_it(screen: Screen) -> None:
    """Breaks when: an editor that closes after its answer focuses the message box."""
    await screen.ask("Hello.")
    first = screen.articles.first
    await first.hover()
    await first.get_by_role("button", name="Edit", exact=True).click()
    late = await hold(screen, "**/edit/")
    await screen.page.keyboard.type(" And you?")
    await screen.page.keyboard.press("Enter")
    route = await late.get()
    account = await elsewhere(screen)
    await route.continue_()
    await expect(screen.page.get_by_role("textbox", name="Edit message")).to_have_count(0)
    await expect(screen.articles.last).to_contain_text("You said: Hello. And you?")
    await expect(account).to_be_focused()


async def test_an_outline_does_not_take_it(screen: Screen) -> None:
    """Breaks when: an outline that was long in coming takes the focus from who writes by now."""
    await screen.ask("Hello.")
    late = await hold(screen, "**/outline/?around=*")
    await screen.button("Outline").press("Enter")
    route = await late.get()
    await screen.box.focus()
    await route.continue_()
    panel = screen.page.get_by_role("complementary", name="Outline")
    await expect(panel.locator(".entry").first).to_be_visible()
    await expect(screen.box).to_be_focused()
