"""What was looked up in older messages, on the screen: it leads to the words themselves."""

from __future__ import annotations

import json

import pytest
from playwright.async_api import expect

from tests.browser.screen import Screen, imported
from tests.servers import RunningServer
from tests.upstreams import RunningUpstream

pytestmark = pytest.mark.browser

READ = {
    "steps": [
        {"tool": {"name": "read_messages", "arguments": json.dumps({"first": 1, "last": 1})}},
        {"finish": "tool_calls"},
        {"done": True},
    ]
}


async def _compressed(screen: Screen, product: RunningServer, first: str) -> None:
    """A conversation whose first message is compressed, and not on the page that opens."""
    words = "word " * 70
    rest = (f"Remark {number}: {words}" for number in range(43))
    await screen.page.goto(imported(product, first, *rest))
    await screen.button("Compact").click()
    await expect(screen.status).to_have_text("Conversation compressed")
    await expect(screen.page.locator("#m-1")).to_have_count(0)


async def test_what_the_model_has_read_leads_to_the_message(
    screen: Screen, model: RunningUpstream, product: RunningServer
) -> None:
    """Breaks when: the result of a look-up has no links, or they lead nowhere."""
    secret = "The spare key hangs behind the third beehive, on a brass hook."
    await _compressed(screen, product, secret)
    model.script(READ, {"text": "Behind the beehive."})
    await screen.send("Where is it?")
    await expect(screen.articles.last).to_contain_text("Behind the beehive.")
    await expect(screen.button("Stop")).to_be_hidden()
    result = screen.articles.filter(has=screen.page.get_by_text("Tool: read_messages"))
    await result.locator("summary").press("Enter")
    await expect(result.locator("pre")).to_contain_text(secret)
    await result.get_by_role("link", name="Message 1", exact=True).click()
    await expect(screen.page.locator("#m-1")).to_be_in_viewport()
    await expect(screen.page.locator("#m-1")).to_contain_text(secret)


async def test_what_came_along_with_a_message_is_shown_with_it(
    screen: Screen, model: RunningUpstream, product: RunningServer
) -> None:
    """Breaks when: the model is sent more of older messages than the screen shows."""
    secret = "The spare key KX-4021 hangs behind the fourth beehive, on an iron hook."
    await _compressed(screen, product, secret)
    await screen.ask("Is KX-4021 still there?")
    sent = model.chats()[-1]["messages"][-1]["content"]
    assert secret in sent
    asked = screen.articles.nth(-2)
    await asked.get_by_text("Looked up in this conversation").press("Enter")
    shown = await asked.locator("pre").inner_text()
    assert shown.strip() in sent
    await asked.get_by_role("link", name="Message 1", exact=True).click()
    await expect(screen.page.locator("#m-1")).to_be_in_viewport()
    await screen.page.goto(screen.page.url.split("?")[0])
    await expect(screen.articles.filter(has_text="Looked up in this conversation")).to_have_count(1)
