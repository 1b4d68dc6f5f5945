"""A page that is reloaded, cut off and opened again while a reply is written."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, expect

from tests.browser.screen import Screen, sign_in
from tests.browser.scripts import MARKDOWN
from tests.faults.proxy import Proxy
from tests.servers import free_port, start_server
from tests.upstreams import RunningUpstream

pytestmark = pytest.mark.browser

# Seconds in which two pages come to show the same; a busy computer is slow.
PATIENCE = 30
# Seconds between the lines of the reply, in which two pages can be compared.
PAUSE = 1.0
# The feed but for the seconds that a page counts by itself.
SHOWN = """() => {
  const feed = document.querySelector("#feed").cloneNode(true);
  for (const clock of feed.querySelectorAll("[data-since]")) clock.textContent = "";
  return feed.innerHTML;
}"""


@pytest_asyncio.fixture(loop_scope="session")
async def line() -> AsyncIterator[Proxy]:
    """The line between the browser and the server; its target comes with ``context``."""
    async with Proxy(f"127.0.0.1:{free_port()}", port=free_port()) as proxy:
        yield proxy


@pytest_asyncio.fixture(loop_scope="session")
async def context(
    line: Proxy, browser: Browser, model: RunningUpstream, tmp_path: Path
) -> AsyncIterator[BrowserContext]:
    """A signed-in browser at the other end of the line."""
    origin = f"http://{line.address}"
    port = line.target_port
    server = start_server(
        tmp_path,
        port=port,
        OPENAI_BASE_URL=model.base_url,
        ALLOWED_ORIGINS=f"http://127.0.0.1:{port},{origin}",
    )
    context = await browser.new_context(
        base_url=origin, storage_state=await sign_in(server, browser)
    )
    yield context
    await context.close()
    server.kill()


async def equals_a_fresh_load(page: Page) -> None:
    """The page comes to show what one shows that is opened now."""
    fresh = await page.context.new_page()
    await fresh.goto(page.url)
    shown = there = ""
    try:
        async with asyncio.timeout(PATIENCE):
            while not shown or shown != there:
                shown, there = await page.evaluate(SHOWN), await fresh.evaluate(SHOWN)
    except TimeoutError:
        assert shown == there
    await fresh.close()


async def test_i4_reloaded_cut_off_and_in_three_tabs(
    line: Proxy, context: BrowserContext, model: RunningUpstream
) -> None:
    """Ten reloads in the middle of a reply, a lost connection, two more tabs: each time the page is
    what a fresh one is.

    Breaks when: what came while nobody looked is rendered with the next update, or a page that is
    loaded gives a table a ``tabindex`` while the reply is written (``feed.js``).
    """
    lines = [f"{text}\n" for text in (MARKDOWN + "\n\n").splitlines()] * 12
    steps = [step for text in lines for step in ({"text": text}, {"delay": PAUSE})]
    model.script({"steps": [*steps, {"finish": "stop"}, {"done": None}]})
    screen = Screen(await context.new_page())
    await screen.page.goto("/?new")
    await screen.send("Show me lists, tables and code.")
    await expect(screen.articles.nth(1)).to_contain_text("A list:")
    writing = screen.feed.locator("[aria-busy]")
    for _ in range(10):
        await screen.page.reload()
        await expect(writing).to_have_count(1)
        await equals_a_fresh_load(screen.page)
    line.refusing = True
    line.cut()
    banner = screen.page.get_by_text("No connection.")
    await expect(banner).to_be_visible()
    line.refusing = False
    await expect(banner).to_be_hidden()
    await equals_a_fresh_load(screen.page)
    tabs = [screen]
    for _ in range(2):
        tabs.append(Screen(await context.new_page()))
        await tabs[-1].page.goto(screen.page.url)
        for tab in tabs:
            await equals_a_fresh_load(tab.page)
    await expect(writing).to_have_count(1)
    await tabs[-1].button("Stop").click()
    for tab in tabs:
        await expect(tab.articles.nth(1)).to_contain_text(re.compile(r"Stopped( after|\.)"))
        await expect(tab.feed.locator("[aria-busy]")).to_have_count(0)
        await equals_a_fresh_load(tab.page)
        assert tab.complaints == []


async def test_d08_pages_do_not_come_back_all_at_once(screen: Screen) -> None:
    """However often it has failed, a page waits for a time of its own, and never long.

    Breaks when: the delay in ``socket.js`` has no random part, or no limit.
    """
    await screen.ask("Hello.")
    for failures, least, most in ((0, 100, 250), (3, 900, 2000), (60, 3900, 8000)):
        waits = await screen.page.evaluate(
            "tries => Array.from({length: 50}, () => htmx.config.wsReconnectDelay(tries))", failures
        )
        assert least < min(waits) < max(waits) <= most
        assert len(set(waits)) > 40
