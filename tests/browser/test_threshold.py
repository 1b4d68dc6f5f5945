"""A conversation that compresses itself while it is chatted in."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.async_api import Browser, Locator, expect

from tests.browser.screen import Screen, sign_in
from tests.browser.test_compression import DETAILS, RULE
from tests.servers import start_server

pytestmark = pytest.mark.browser

MOST_TURNS = 12


async def is_compressed(screen: Screen) -> None:
    """The indicator and the lock are there, and go; the divider comes and stays."""
    bar = screen.page.get_by_role("progressbar", name="Compressing conversation")
    await expect(bar).to_be_visible()
    await expect(screen.box).to_have_attribute("readonly", "")
    await expect(screen.status).to_have_text("Compressing conversation")
    await expect(divider_of(screen)).to_contain_text(re.compile(r"\d+ messages above are kept"))
    await expect(bar).to_be_hidden()
    await expect(screen.box).not_to_have_attribute("readonly", "")
    await expect(screen.feed.locator("[aria-busy]")).to_have_count(0)


def divider_of(screen: Screen) -> Locator:
    return screen.page.get_by_role("region", name="Compressed messages")


async def originals_are_above(screen: Screen) -> None:
    """Every message is still there, the first of them above the divider, word for word."""
    await expect(screen.articles.first).to_contain_text(RULE)
    above = await screen.articles.first.bounding_box()
    below = await divider_of(screen).bounding_box()
    assert above is not None
    assert below is not None
    assert above["y"] < below["y"]


async def test_a_chat_with_the_demo_model_compresses_itself(
    browser: Browser, tmp_path: Path
) -> None:
    """Without a key and without a network, as it comes."""
    server = start_server(tmp_path)
    try:
        context = await browser.new_context(
            base_url=server.base_url, storage_state=await sign_in(server, browser)
        )
        screen = Screen(await context.new_page())
        await screen.page.goto("/?new")
        await screen.ask(f"{RULE} {DETAILS}")
        for number in range(MOST_TURNS):
            meter = screen.page.get_by_role("meter", name="Context used")
            await screen.send(f"Question {number}. {DETAILS}")
            await expect(screen.articles).to_have_count(2 * number + 4)
            if await screen.button("Cancel").count():
                break
            await expect(screen.button("Stop")).to_be_hidden()
            await expect(meter).to_have_attribute("aria-valuetext", re.compile("."))
        await is_compressed(screen)
        await originals_are_above(screen)
        # The demo model says what reached it: the rule came through.
        await screen.ask("What do you know of British English?")
        await expect(screen.articles.last).to_contain_text(RULE)
        await context.close()
    finally:
        server.kill()
