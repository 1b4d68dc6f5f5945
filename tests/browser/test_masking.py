"""Masked tool results as a person sees them: the notice, what the model sees, and the way back."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from playwright.async_api import BrowserContext, expect

from tests.browser.screen import Screen, imported_messages
from tests.servers import RunningServer

pytestmark = pytest.mark.browser


def looked() -> list[dict[str, Any]]:
    """A conversation with six long results, which pass the soft threshold of this window."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Look at the files."}]
    for number in range(6):
        arguments = json.dumps({"path": f"src/{number}.py"})
        call = {
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": "look", "arguments": arguments},
        }
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        result = f"line of output {number}\n" * 60
        messages.append({"role": "tool", "tool_call_id": f"call_{number}", "content": result})
    messages.append({"role": "assistant", "content": "I have looked."})
    for number in range(3):
        messages.append({"role": "user", "content": f"Question {number}"})
        messages.append({"role": "assistant", "content": f"Answer {number}"})
    return messages


async def test_masked_results_are_told_shown_and_taken_back(
    screen: Screen, signed_in: BrowserContext, product: RunningServer
) -> None:
    """On every open page, and after a reload as before it.

    Breaks when: a page learns of masks only by a reload, the notice is not in a fresh page, or Undo
    leaves a mask or puts it on again with the next message.
    """
    path = imported_messages(product, looked())
    other = Screen(await signed_in.new_page())
    for one in (screen, other):
        await one.page.goto(path)
    await screen.ask("And now?")
    said = re.compile(r"6 tool results masked, \S+ tokens freed\.")
    for one in (screen, other):
        await expect(one.page.locator("#notice")).to_contain_text(said)
        await expect(one.feed.get_by_text("Masked", exact=True)).to_have_count(6)
    streamed = [await screen.feed_html(), await screen.page.locator("#notice").inner_html()]
    await screen.page.reload()
    await expect(screen.page.locator("#notice")).to_contain_text(said)
    assert streamed == [
        await screen.feed_html(),
        await screen.page.locator("#notice").inner_html(),
    ]
    # The reader has every word.
    assert "line of output 3" in await screen.feed_html()
    await screen.button("Show what is masked").click()
    drawer = screen.page.get_by_role("complementary", name="What the model sees")
    await drawer.get_by_text("message 3").locator("..").click()
    await expect(drawer).to_contain_text("61 lines, starts with: line of output 0]")
    await screen.button("Undo masking").click()
    for one in (screen, other):
        await expect(one.page.locator("#notice")).to_be_empty()
        await expect(one.feed.get_by_text("Masked", exact=True)).to_have_count(0)
    await screen.ask("And then?")
    told = await screen.stored()
    assert told["compression"]["mask_batch"] == 0
    assert not any(one["masked"] for one in told["messages"])
    assert screen.complaints == []
