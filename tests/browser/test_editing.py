"""Editing a message in its place: the keys, how it looks, and what becomes of what follows."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace

import pytest
from playwright.async_api import Locator, WebSocketRoute, expect

from tests.browser.screen import Screen, imported
from tests.servers import RunningServer

pytestmark = pytest.mark.browser


async def edit(screen: Screen, number: int) -> Locator:
    """The box of the message of that number, counted from 0, opened."""
    article = screen.articles.nth(number)
    await article.hover()
    await article.get_by_role("button", name="Edit", exact=True).click()
    box = article.get_by_role("textbox", name="Edit message")
    await expect(box).to_be_focused()
    return box


@pytest.mark.parametrize(
    ("chosen", "breaks", "sends"),
    [("enter", "Shift+Enter", "Enter"), ("modifier-enter", "Enter", "Control+Enter")],
)
async def test_the_keys_are_those_of_the_composer(
    screen: Screen, chosen: str, breaks: str, sends: str
) -> None:
    """Breaks when: the box has no rule of its own keys, or takes what an input method composes."""
    await screen.ask("Hello.")
    await screen.page.locator("#conversation").evaluate(
        "(main, chosen) => { main.dataset.sendKey = chosen; }", chosen
    )
    box = await edit(screen, 0)
    await box.press("End")
    await box.press(breaks)
    await box.press("x")
    await expect(box).to_have_value("Hello.\nx")
    for key in ("Enter", "Escape"):
        await box.dispatch_event(
            "keydown", {"key": key, "isComposing": True, "ctrlKey": chosen != "enter"}
        )
    await expect(box).to_be_focused()
    await box.press(sends)
    await expect(box).to_have_count(0)
    await expect(screen.articles.last).to_contain_text("You said: Hello.\nx")
    await expect(screen.articles).to_have_count(2)
    await expect(screen.box).to_be_focused()


@pytest.mark.parametrize("fits_itself", [True, False])
async def test_the_words_stay_where_they_are(screen: Screen, fits_itself: bool) -> None:
    """In browsers too in which a box does not fit its text by itself.

    Breaks when: the box has other spaces or other letters than the message, or another height.
    """
    if not fits_itself:
        await screen.page.add_init_script("CSS.supports = () => false")
        await screen.page.reload()
    await screen.ask("One line.\n\nAnd another " + "that is rather long " * 12)
    body = await screen.articles.first.locator(".body").bounding_box()
    box = await edit(screen, 0)
    if not fits_itself:
        await box.evaluate("box => { box.style.fieldSizing = 'fixed'; }")
        await box.press("End")
        await box.press("x")
        await box.press("Backspace")
    edited = await box.bounding_box()
    assert body is not None
    assert edited == pytest.approx(dict(body), abs=1)
    shown = """box => ["padding", "font", "lineHeight", "borderLeft"].map(
        (name) => getComputedStyle(box)[name])"""
    hidden = screen.articles.first.locator(".body")
    assert await box.evaluate(shown) == await hidden.evaluate(shown)
    await box.fill("A line.\n" * 100)
    long = await box.bounding_box()
    assert long is not None
    assert long["height"] <= 0.6 * 860 + 1


async def test_what_it_replaces_is_said_and_can_be_kept(screen: Screen) -> None:
    """Breaks when: the messages below are not counted, or the branch takes in the edited one."""
    page = screen.page
    for text in ("Hello.", "And again.", "The last."):
        await screen.ask(text)
    await edit(screen, 4)
    await expect(screen.articles.nth(4)).to_contain_text("Replaces the message below")
    await page.keyboard.press("Escape")
    box, before = await edit(screen, 2), page.url
    await expect(screen.articles.nth(2)).to_contain_text("Replaces the 3 messages below")
    await box.fill("And otherwise.")
    page.once("dialog", lambda dialog: pytest.fail(f"The page asks: {dialog.type}"))
    await screen.button("Branch instead").click()
    await expect(page).not_to_have_url(before)
    await expect(screen.articles.last).to_contain_text("You said: And otherwise.")
    await expect(screen.articles).to_have_count(4)
    await expect(screen.articles.first).to_contain_text("Hello.")
    await page.goto(before)
    await expect(screen.articles).to_have_count(6)
    await expect(screen.articles.nth(2)).to_contain_text("And again.")
    assert screen.complaints == []


async def test_a_branch_that_is_refused_is_not_made(screen: Screen) -> None:
    """Breaks when: it is made before its message is taken, or the text that was edited is lost."""
    await screen.ask("Hello.")
    box, before = await edit(screen, 0), await screen.listed()
    too_long = "far too long " * 2000
    await box.fill(too_long)
    await screen.button("Branch instead").click()
    alert = screen.page.get_by_role("alert")
    await expect(alert).to_contain_text("Shorten it by about")
    await expect(alert.get_by_role("button", name="Change model")).to_be_visible()
    await expect(box).to_have_value(too_long)
    assert await screen.listed() == before
    await box.fill("Shorter.")
    await screen.button("Branch instead").click()
    await expect(screen.articles.last).to_contain_text("You said: Shorter.")


async def test_the_first_message_can_be_sent_elsewhere_too(screen: Screen) -> None:
    await screen.ask("Hello.")
    box, before = await edit(screen, 0), screen.page.url
    await box.fill("Good evening.")
    await screen.button("Branch instead").click()
    await expect(screen.page).not_to_have_url(before)
    await expect(screen.articles.last).to_contain_text("You said: Good evening.")
    await expect(screen.articles).to_have_count(2)
    await screen.button("Conversation settings").click()
    settings = screen.page.get_by_role("dialog", name="Conversation settings")
    await expect(settings).to_contain_text("Branched from")


async def test_a_message_that_comes_once_more_stays_open(
    screen: Screen, product: RunningServer
) -> None:
    """Those of the last change do whenever the page connects: at first, and when it was cut off.

    Breaks when: an article that comes in takes the editor away, or the focus out of it.
    """
    path = imported(product, "Hello.", "Good morning.")
    connect = asyncio.Event()

    async def follow(socket: WebSocketRoute) -> None:
        await connect.wait()
        socket.connect_to_server()

    await screen.page.route_web_socket("**/ws/**", follow)
    await screen.page.goto(path)
    box = await edit(screen, 0)
    await box.fill("Good evening")
    first = await screen.articles.first.element_handle()
    connect.set()
    await screen.page.wait_for_function("one => !one.isConnected", arg=first)
    await expect(box).to_be_focused()
    await screen.page.keyboard.type(" to you")
    await expect(box).to_have_value("Good evening to you")
    await screen.page.keyboard.press("Escape")
    await expect(box).to_have_count(0)
    await expect(screen.articles.first).to_contain_text("Hello.")
    edits = screen.articles.first.get_by_role("button", name="Edit", exact=True)
    await expect(edits).to_be_focused()


async def test_what_was_written_outlives_the_message(screen: Screen) -> None:
    """It is edited on another page meanwhile.

    Breaks when: an article leaves with the editor in it, or stays when that is closed.
    """
    await screen.ask("Hello.")
    other = await screen.page.context.new_page()
    await other.goto(screen.page.url)
    box = await edit(screen, 0)
    await box.fill("Good evening.")
    there = await edit(replace(screen, page=other), 0)
    await there.fill("Good morning.")
    await there.press("Enter")
    await expect(screen.feed).to_contain_text("You said: Good morning.")
    await expect(box).to_have_value("Good evening.")
    await box.press("Escape")
    await expect(screen.articles).to_have_count(2)
    await expect(screen.feed).not_to_contain_text("Hello.")
    await expect(screen.box).to_be_focused()
    await other.close()


async def test_what_is_not_loaded_is_not_counted(screen: Screen, product: RunningServer) -> None:
    """Breaks when: the loaded ones are taken for all. The last message replaces nothing."""
    path = imported(product, *(f"Message {number}." for number in range(121)))
    await screen.page.goto(f"{path}?around=5")
    await expect(screen.page.get_by_role("link", name="Newer messages")).to_be_attached()
    await edit(screen, 0)
    note = screen.articles.first.get_by_text("Replaces")
    await expect(note).to_have_text("Replaces the messages below")
    await screen.page.goto(path)
    await screen.articles.last.hover()
    await edit(screen, await screen.articles.count() - 1)
    await expect(screen.button("Send again")).to_be_visible()
    await expect(screen.button("Branch instead")).to_be_hidden()
    await expect(screen.page.get_by_text(re.compile("^Replaces"))).to_be_hidden()
