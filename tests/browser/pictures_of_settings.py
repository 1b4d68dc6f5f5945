"""Pictures of settings and of an import, for ``tests.browser.screenshots``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from playwright.async_api import expect

from tests.browser.pictures import picture, pictures_at
from tests.browser.screen import Screen

INSTRUCTIONS = "I build wooden boats.\nAnswer briefly, in metric units, and say what is a guess."


async def of_settings(screen: Screen) -> None:
    """The account's own instructions, a conversation's settings, and what a reply then saw."""
    page = screen.page
    await page.goto("/settings/")
    box = page.get_by_label("Instructions for all conversations")
    await box.fill(INSTRUCTIONS)
    await box.locator("xpath=ancestor::form").get_by_role("button", name="Save").click()
    await expect(page.get_by_text("Saved.")).to_be_visible()
    await pictures_at(screen, own_instructions="/settings/")
    await page.goto("/?new")
    await screen.ask("How long does a coat of varnish take to dry?")
    await screen.send("/system")
    dialog = page.get_by_role("dialog", name="Conversation settings")
    await expect(dialog).to_be_visible()
    await dialog.get_by_label("Temperature").fill("0.3")
    await dialog.get_by_label("Keep more verbatim").check()
    await dialog.get_by_label("Keep more verbatim").scroll_into_view_if_needed()
    await picture(screen, "settings-of-a-conversation")
    await dialog.get_by_text("The figures", exact=True).click()
    await dialog.get_by_label("Turns kept word for word").scroll_into_view_if_needed()
    await picture(screen, "settings-figures")
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog).to_be_hidden()
    await screen.ask("And in winter?")
    await page.get_by_role("button", name="More about this message").last.click()
    await page.get_by_role("button", name="What this reply saw").click()
    await expect(page.get_by_text("Sent along")).to_be_visible()
    await picture(screen, "what-a-reply-was-asked-with")


def _talk(month: int) -> dict[str, Any]:
    """A conversation as Claude exports it."""
    return {
        "uuid": str(month),
        "name": f"A talk about boats, part {month}",
        "created_at": f"2024-{month:02}-11T09:00:00Z",
        "chat_messages": [
            {"sender": "human", "text": f"Question {month}"},
            {"sender": "assistant", "text": "An answer."},
        ],
    }


def _pictures() -> dict[str, Any]:
    """A conversation with a picture and a discarded reply, as ChatGPT exports it."""
    picture: Any = {"content_type": "image_asset_pointer"}
    texts = {"a": "Look at this.", "b": picture, "c": "A fine hull.", "d": "A hull."}
    roles = {"a": "user", "b": "user", "c": "assistant", "d": "assistant"}
    return {
        "title": "A picture of a hull",
        "create_time": 1_683_000_000,
        "current_node": "c",
        "mapping": {
            name: {
                "id": name,
                "parent": {"b": "a", "c": "b", "d": "b"}.get(name),
                "message": {
                    "author": {"role": roles[name]},
                    "content": {"content_type": "text", "parts": [text]},
                },
            }
            for name, text in texts.items()
        },
    }


async def of_an_import(screen: Screen, folder: Path) -> None:
    """From the offer on the empty page to a report, and its Undo."""
    page = screen.page
    file = folder / "conversations.json"
    file.write_text(
        json.dumps([*(_talk(month) for month in range(1, 10)), _pictures(), {"mapping": {}}])
    )
    await page.goto("/?new")
    await page.locator("#import-file").set_input_files(file)
    await expect(page.get_by_text("10 conversations imported")).to_be_visible()
    await picture(screen, "import-report")
    await page.get_by_role("button", name="Undo import").click()
    await expect(page.get_by_text("This import was undone")).to_be_visible()
    await picture(screen, "import-undone")
