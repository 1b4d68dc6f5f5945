"""What can be chosen before a conversation begins."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.browser.screen import Screen, sign_in
from tests.servers import start_server
from tests.upstreams import running_upstream

pytestmark = pytest.mark.browser


@pytest_asyncio.fixture(loop_scope="session")
async def choice(browser: Browser, tmp_path: Path) -> AsyncIterator[Screen]:
    """The empty page where there are two models."""
    with running_upstream(large=16384, small=4096) as model:
        server = start_server(tmp_path, OPENAI_BASE_URL=model.base_url, CHAT_MODEL="large")
        context = await browser.new_context(
            base_url=server.base_url, storage_state=await sign_in(server, browser)
        )
        screen = Screen(await context.new_page())
        await screen.page.goto("/?new")
        yield screen
        await context.close()
        server.kill()


async def test_a_conversation_begins_with_the_model_and_instructions_of_its_writer(
    choice: Screen,
) -> None:
    """Breaks when: what is chosen on the empty page is not sent with the first message."""
    picker = choice.page.get_by_role("combobox", name="Model", exact=True)
    await expect(picker.locator("option:checked")).to_have_text("large")
    await choice.send("/model small")
    await expect(picker.locator("option:checked")).to_have_text("small")
    await choice.send("/system Answer in verse.")
    instructions = choice.page.get_by_role("textbox", name="Instructions for the model")
    await expect(instructions).to_have_value("Answer in verse.")
    await choice.send("Hello.")
    await expect(choice.articles.last).to_contain_text("You said: Hello.")
    stored = (await choice.stored())["conversation"]
    assert (stored["model"], stored["system_prompt"]) == ("small", "Answer in verse.")
    # Who chooses nothing has the default, also when that becomes another.
    await choice.page.goto("/?new")
    await choice.send("Hello.")
    await expect(choice.articles.last).to_contain_text("You said: Hello.")
    assert (await choice.stored())["conversation"]["model"] == ""
