"""A conversation shared by a link, and one that goes on in a new one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser.screen import Screen, imported, sign_in
from tests.browser.scripts import MARKDOWN
from tests.browser.test_accessibility import findings
from tests.browser.test_printing import nothing_to_press
from tests.servers import RunningServer, start_server
from tests.upstreams import RunningUpstream

pytestmark = pytest.mark.browser

# Of a window of 4,096 tokens: 3,072 for the request. All of these take more than nine tenths of it
# by the model's count, and five of them do not by the count for a model that was never asked.
PARTS = [f"Message {number}. " + "word " * 425 for number in range(6)]


async def _prints(page: Page) -> None:
    """The messages are on paper, and nothing that could be pressed."""
    await page.emulate_media(media="print")
    await expect(page.get_by_role("article").last).to_be_visible()
    await nothing_to_press(page)


async def test_a_link_is_made_read_by_a_stranger_and_revoked(
    screen: Screen, model: RunningUpstream, browser: Browser
) -> None:
    """From the settings to the page of somebody without a session, and its end.

    Breaks when: the link is not shown, or made again by a reload, its page needs a session or a
    script, or it cannot be ended.
    """
    page = screen.page
    await page.goto("/?new")
    model.script({"text": f"{MARKDOWN}\n\n```\n{'wide ' * 60}\n```"})
    await screen.ask("Show me a list, a table and some code.")
    await screen.button("Conversation settings").click()
    await page.get_by_role("link", name="Share", exact=True).click()
    await expect(page.get_by_text("nobody but you can read it")).to_be_visible()
    await page.get_by_label("The link works").select_option("for a week")
    await screen.button("Make a link").click()
    url = await page.get_by_label("Link", exact=True).input_value()
    assert re.search(r"/s/[\w-]{32}/$", url)
    assert await findings(page) == []
    await page.reload()
    await expect(page.get_by_label("Link", exact=True)).to_have_count(0)
    await expect(page.get_by_role("button", name=re.compile("^Revoke"))).to_have_count(1)
    context = await browser.new_context(java_script_enabled=False)
    reader = Screen(await context.new_page())
    await reader.page.goto(url)
    await expect(reader.page.get_by_role("article")).to_have_count(2)
    await expect(reader.page.get_by_role("table")).to_be_visible()
    widths = [
        await reader.page.locator(one).evaluate("element => element.offsetWidth")
        for one in (".shared", ".brand > span")
    ]
    assert widths[0] > 700 > 200 > widths[1], "a column to read, and a name beside its sign"
    await expect(reader.page.locator("form, button, input, script")).to_have_count(0)
    await reader.page.set_viewport_size({"width": 390, "height": 844})
    fits = "document.documentElement.scrollWidth <= 390"
    assert await reader.page.evaluate(fits), "wide code is wrapped"
    assert await context.cookies() == []
    await _prints(reader.page)
    await page.goto(url)
    assert await findings(page) == []
    await page.goto("/shares/")
    await page.get_by_role("button", name=re.compile("^Revoke")).first.click()
    await expect(page.get_by_text("Revoked").first).to_be_visible()
    await expect(page.get_by_role("button", name=re.compile("^Revoke"))).to_have_count(0)
    await reader.page.reload()
    await expect(reader.page.get_by_text("There is nothing here any more")).to_be_visible()
    assert reader.complaints == []
    await context.close()


async def test_a_nearly_full_conversation_goes_on_in_its_next_part(
    browser: Browser, model: RunningUpstream, tmp_path: Path
) -> None:
    """The warning comes by itself, before anything is refused; both parts lead to each other.

    Breaks when: events do not bring the warning, its button sends the form of messages, what was
    being written is lost, or a part does not name the other.
    """
    # A server of its own, whose model was never asked: by its answers the count would change.
    server = start_server(tmp_path, OPENAI_BASE_URL=model.base_url, CONTEXT_WINDOW="4096")
    try:
        model.script({"text": "Noted."})
        await goes_on(server, browser)
    finally:
        server.kill()


async def goes_on(server: RunningServer, browser: Browser) -> None:
    context = await browser.new_context(
        base_url=server.base_url, storage_state=await sign_in(server, browser)
    )
    screen = Screen(await context.new_page())
    page = screen.page
    await page.goto(imported(server, *PARTS[:5]))
    await screen.button("Conversation settings").click()
    dialog = page.get_by_role("dialog", name="Conversation settings")
    await dialog.get_by_label("Only when you ask").check()
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog).to_be_hidden()
    warning = page.locator("#nearly-full")
    await expect(warning).to_be_empty()
    await screen.ask(PARTS[5])
    await expect(warning).to_contain_text("is nearly full")
    await screen.box.fill("half a sentence")
    first = page.url
    await warning.get_by_role("button", name="Continue in a new conversation").click()
    await expect(page.get_by_text("Part 2 of")).to_be_visible()
    assert page.url != first
    await expect(screen.articles.last).to_contain_text("Noted.")
    await page.get_by_role("link", name="Back to part 1").click()
    await expect(page).to_have_url(first)
    await expect(screen.box).to_have_value("half a sentence")
    await page.get_by_role("link", name="part 2", exact=True).click()
    await expect(page.get_by_text("Part 2 of")).to_be_visible()
    await context.close()
