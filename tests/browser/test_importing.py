"""A file of conversations, imported while one looks on."""

from __future__ import annotations

import json
import re
from pathlib import Path

from playwright.async_api import expect

from tests.browser.screen import Screen
from tests.chatapp.transfer.test_files import claude_chat, said


async def test_an_import_is_followed_and_cancelled(screen: Screen, tmp_path: Path) -> None:
    """The page says how far it is by itself, and the report stays where it was.

    Breaks when: the page of a running import does not ask again, or its report is not kept.
    """
    page = screen.page
    short = claude_chat(said("Call this one heron"), uuid="1", name="A heron")
    long = claude_chat(*(said(f"word {number}") for number in range(30_000)), uuid="2")
    file = tmp_path / "conversations.json"
    file.write_text(json.dumps([short, long]))
    await page.goto("/settings/")
    await page.get_by_label("A file of conversations").set_input_files(file)
    await page.get_by_role("button", name="Import").click()
    await page.wait_for_url(re.compile("/import/.+/$"))
    await expect(page.get_by_text("1 of 2 conversations")).to_be_visible()
    await expect(page.get_by_role("progressbar", name="Import")).to_have_attribute("value", "0.5")
    await page.get_by_role("button", name="Cancel import").click()
    await expect(page.get_by_role("status")).to_contain_text("The import was cancelled.")
    await expect(page.get_by_text("1 conversation imported, 1 message.")).to_be_visible()
    await page.get_by_role("link", name="Your imports").click()
    await page.get_by_role("link", name="conversations.json").click()
    await page.get_by_role("main").get_by_role("link", name="A heron").click()
    await expect(screen.feed).to_contain_text("Call this one heron")
