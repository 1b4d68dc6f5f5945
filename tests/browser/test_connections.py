"""Connecting a model on the page: from the demo's note to its first reply, and what goes wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.browser.screen import Screen, sign_in
from tests.browser.test_accessibility import findings
from tests.servers import RunningServer, start_server
from tests.upstreams import RunningUpstream

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A product of the first start: nothing but the demo model."""
    server = start_server(tmp_path_factory.mktemp("demo"))
    yield server
    server.kill()


@pytest_asyncio.fixture(loop_scope="session")
async def screen(
    demo: RunningServer, browser: Browser, model: RunningUpstream
) -> AsyncIterator[Screen]:
    """The page that begins a conversation there, as wide as a phone."""
    context = await browser.new_context(
        base_url=demo.base_url,
        viewport={"width": 390, "height": 800},
        storage_state=await sign_in(demo, browser),
    )
    page = await context.new_page()
    screen = Screen(page)
    await page.goto("/?new")
    yield screen
    assert screen.complaints == []
    await context.close()


async def test_from_the_demos_note_to_a_reply_of_a_connected_model(
    screen: Screen, model: RunningUpstream
) -> None:
    """By keyboard; with a mistake first, which is said in words and keeps what was typed.

    Breaks when: the demo's note leads elsewhere, a failed test stores something or forgets the
    address, or a new conversation does not begin with the connected model.
    """
    page = screen.page
    await page.get_by_role("link", name="Connect a model", exact=True).click()
    await expect(page.get_by_role("heading", name="Models", exact=True)).to_be_visible()
    await page.get_by_label("Name").fill("study")
    await page.get_by_label("Address").fill(model.base_url)
    await page.get_by_label("Key", exact=True).fill("a-key")
    await page.get_by_label("Key", exact=True).press("Enter")
    await expect(page.get_by_role("alert")).to_contain_text("on this computer or in its network")
    assert await page.get_by_label("Address").input_value() == model.base_url
    assert await page.get_by_label("Key", exact=True).input_value() == ""
    assert await findings(page) == []
    await page.get_by_label("On this computer or in its network").check()
    await page.get_by_role("button", name="Test and connect").click()
    section = page.get_by_role("region", name="study")
    await expect(section).to_contain_text("8.2k tokens")
    await expect(section.get_by_label("fake-model")).to_be_checked()
    assert await findings(page) == []
    wide = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    assert await page.evaluate(wide)
    await page.goto("/?new")
    await expect(page.get_by_text("The built-in demo model answers")).to_be_hidden()
    model.script({"text": "Good evening from the study."})
    await screen.ask("Hello?")
    await expect(screen.articles.last).to_contain_text("Good evening from the study.")
    await expect(screen.articles.last).to_contain_text("fake-model")
    await page.goto("/connections/")
    await section.get_by_text("Disconnect", exact=True).click()
    await section.get_by_role("button", name="Disconnect study").click()
    await expect(section).to_have_count(0)
    await page.goto("/")
    await screen.send("Are you still there?")
    for place in (screen.feed, page.locator("#nearly-full")):
        await expect(place).to_contain_text("The connection “study” is not there any more")
