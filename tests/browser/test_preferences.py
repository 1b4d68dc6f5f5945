"""What a person sets for themselves and for one conversation, and bringing conversations along."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from playwright.async_api import Locator, expect

from tests.browser.screen import Screen
from tests.upstreams import RunningUpstream

pytestmark = pytest.mark.browser

WANT = "Call every boat Heron."


def settings_of(screen: Screen) -> Locator:
    """The dialog with the conversation's settings."""
    return screen.page.get_by_role("dialog", name="Conversation settings")


async def test_own_instructions_are_part_of_each_request(
    screen: Screen, model: RunningUpstream
) -> None:
    """Saved in place, sent with the next message, and shown as the person's own in the drawer.

    Breaks when: the form of instructions is not saved, or the drawer shows them as the chat's.
    """
    page = screen.page
    await page.goto("/settings/")
    # What a change comes to is said in view, wherever on the page it was made.
    await page.get_by_label("Notification when a reply ends").scroll_into_view_if_needed()
    await page.get_by_label("Send with").select_option("Enter")
    await expect(page.get_by_role("status")).to_be_in_viewport()
    await page.get_by_label("Instructions for all conversations").fill(WANT)
    await page.get_by_role("button", name="Save").locator("visible=true").click()
    await expect(page.get_by_role("status")).to_have_text("Saved.")
    await page.goto("/?new")
    await screen.ask("Hello.")
    assert WANT in model.chats()[-1]["messages"][0]["content"]
    await page.keyboard.press("ControlOrMeta+Shift+E")
    drawer = page.get_by_role("complementary", name="What the model sees")
    await drawer.get_by_text("Yours, for all conversations").click()
    await expect(drawer.get_by_text(WANT).last).to_be_visible()
    await page.goto("/settings/")
    await expect(page.get_by_label("Instructions for all conversations")).to_have_value(WANT)
    await page.get_by_label("Instructions for all conversations").fill("")
    await page.get_by_role("button", name="Save").locator("visible=true").click()
    await expect(page.get_by_role("status")).to_have_text("Saved.")


async def test_replies_and_compression_are_set_by_keyboard(
    screen: Screen, model: RunningUpstream
) -> None:
    """A preset is one press, its figures can be changed, and only what was changed is sent.

    Breaks when: a preset does not reach the server or does not show its figures, figures that
    nobody changed are stored, an edited figure leaves the preset chosen, or untouched fields count
    as changed, so that the form is not the stored one.
    """
    page, dialog = screen.page, settings_of(screen)
    await screen.ask("Hello.")
    await screen.send("/system")
    await expect(dialog.get_by_label("Title")).to_be_visible()
    await expect(dialog.get_by_text("not saved yet")).to_have_count(0)
    await dialog.get_by_label("Temperature").fill("0.3")
    await dialog.get_by_label("Balanced").focus()
    await page.keyboard.press("ArrowDown")
    await expect(dialog.get_by_label("Summarise early")).to_be_checked()
    await page.keyboard.press("Enter")
    await expect(dialog).to_be_hidden()
    stored = (await screen.stored())["conversation"]
    assert (stored["temperature"], stored["threshold"], stored["keep_turns"]) == (0.3, 0.6, None)
    await screen.ask("And now?")
    assert model.chats()[-1]["temperature"] == 0.3
    await screen.send("/system")
    await expect(dialog.get_by_label("Summarise early")).to_be_checked()
    await dialog.get_by_text("The figures", exact=True).click()
    full = dialog.get_by_label(re.compile("Compress when"))
    turns = dialog.get_by_label("Turns kept word for word")
    await expect(full).to_have_value("60")
    # The figures are those of the preset that is chosen, until they are changed.
    await dialog.get_by_label("Keep more verbatim").check()
    await expect(full).to_have_value("92")
    await expect(turns).to_have_value("6")
    await dialog.get_by_label("Summarise early").check()
    await expect(full).to_have_value("60")
    await expect(turns).to_have_value("2")
    await full.fill("70")
    await expect(dialog.get_by_label("Your own figures")).to_be_checked()
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog).to_be_hidden()
    stored = (await screen.stored())["conversation"]
    assert (stored["temperature"], stored["threshold"], stored["keep_turns"]) == (0.3, 0.7, None)


async def test_a_temperature_that_cannot_be_is_refused_in_the_dialog(screen: Screen) -> None:
    """Breaks when: a refused setting closes the dialog, or its reason stands under it."""
    dialog = settings_of(screen)
    await screen.ask("Hello.")
    await screen.send("/system")
    await expect(dialog).to_be_visible()
    await screen.page.locator("#settings-form").evaluate("form => form.noValidate = true")
    await dialog.get_by_label("Temperature").fill("9")
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog).to_contain_text("This must be a number from 0 to 2.")
    await dialog.get_by_role("button", name="Cancel").click()
    assert (await screen.stored())["conversation"]["temperature"] is None


async def test_an_export_is_brought_from_the_empty_page_and_taken_back(
    screen: Screen, tmp_path: Path
) -> None:
    """Chosen, sent at once, reported with its dates, undone, and brought back.

    Breaks when: choosing a file does not send it, or Undo leaves the conversations in the list.
    """
    page = screen.page
    chat = {
        "uuid": "heron",
        "name": "The heron of 2024",
        "created_at": "2024-03-05T10:00:00Z",
        "updated_at": "2024-03-06T10:00:00Z",
        "chat_messages": [{"sender": "human", "text": "Call this one heron"}],
    }
    file = tmp_path / "from-claude.json"
    file.write_text(json.dumps([chat]))
    await page.get_by_label("Bring your conversations").set_input_files(file)
    await page.wait_for_url(re.compile("/import/.+/$"))
    await expect(page.get_by_text("1 conversation imported, 1 message.")).to_be_visible()
    await expect(page.get_by_text("From 5 March 2024 to 6 March 2024")).to_be_visible()
    await page.get_by_role("button", name="Undo import").click()
    await expect(page.get_by_text("This import was undone")).to_be_visible()
    report = page.url
    await page.goto("/?new")
    await expect(page.get_by_role("link", name="New conversation")).to_be_visible()
    await expect(page.get_by_role("link", name="The heron of 2024")).to_have_count(0)
    await page.goto(report)
    await page.get_by_role("button", name="Bring them back").click()
    await page.get_by_role("main").get_by_role("link", name="The heron of 2024").click()
    await expect(screen.feed).to_contain_text("Call this one heron")


async def test_an_export_is_dropped_on_the_empty_page(screen: Screen) -> None:
    """Breaks when: the archive of an export is refused as no text, or taken into the message."""
    page = screen.page
    await page.evaluate("""() => {
      const data = new DataTransfer();
      data.items.add(new File(["PK no archive"], "export.zip", {type: "application/zip"}));
      document.body.dispatchEvent(new DragEvent("drop", {dataTransfer: data, bubbles: true}));
    }""")
    await expect(page.get_by_role("alert").filter(has_text="Nothing was imported")).to_be_visible()
    await expect(screen.box).to_have_value("")
    assert screen.complaints == []
