"""Each key of the list, and the commands after a slash."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser.screen import Screen, sign_in
from tests.browser.scripts import unending
from tests.servers import RunningServer
from tests.upstreams import RunningUpstream

pytestmark = pytest.mark.browser


async def press(page: Page, *keys: str) -> None:
    """One key after the other."""
    for key in keys:
        await page.keyboard.press(key)


async def test_each_key_does_what_the_list_says(screen: Screen) -> None:
    page = screen.page
    await screen.ask("Hello.")
    await screen.box.fill("one")
    await press(page, "Shift+Enter")
    await page.keyboard.type("two")
    await expect(screen.box).to_have_value("one\ntwo")
    await press(page, "Enter")
    await expect(screen.articles).to_have_count(4)
    await expect(screen.box).to_have_value("")
    await expect(screen.button("Stop")).to_be_hidden()

    await press(page, "Alt+ArrowUp")
    await expect(screen.articles.last).to_be_focused()
    await press(page, "Alt+ArrowUp")
    await expect(screen.articles.nth(2)).to_be_focused()
    await press(page, "Alt+ArrowDown")
    await expect(screen.articles.last).to_be_focused()
    await press(page, "Shift+Escape")
    await expect(screen.box).to_be_focused()

    await press(page, "ArrowUp")
    await expect(page.get_by_role("textbox", name="Edit message")).to_be_focused()
    await press(page, "Escape")
    await expect(page.get_by_role("textbox", name="Edit message")).to_have_count(0)
    await expect(screen.box).to_be_focused()

    drawer = page.get_by_role("complementary", name="What the model sees")
    await press(page, "Control+Shift+E")
    await expect(drawer).to_contain_text("kept free for the reply")
    await press(page, "Escape")
    await expect(drawer).to_be_hidden()
    await press(page, "Control+Shift+E")
    await expect(drawer).to_be_visible()
    await press(page, "Control+Shift+E")
    await expect(drawer).to_be_hidden()

    await press(page, "Control+/")
    await expect(page.get_by_role("dialog", name="Keys and commands")).to_be_visible()
    await press(page, "Escape")
    await press(page, "Control+k")
    await expect(page.get_by_role("combobox", name="Search and commands")).to_be_focused()
    await press(page, "Escape", "Control+Shift+O")
    await expect(page).to_have_url(re.compile(r"\?new$"))


async def test_the_browsers_own_keys_stay_its_own(screen: Screen) -> None:
    await screen.ask("Hello.")
    taken = await screen.box.evaluate(
        """box => [..."rfsnl"].flatMap((key) => ["ctrlKey", "metaKey"].map((control) => {
            const event = new KeyboardEvent("keydown", {
                key, code: `Key${key.toUpperCase()}`, [control]: true, bubbles: true,
                cancelable: true,
            });
            return box.dispatchEvent(event) ? "" : `${control} ${key}`;
        })).filter(Boolean)"""
    )
    assert taken == []


async def test_one_can_write_on_without_looking_for_the_box(
    screen: Screen, product: RunningServer, browser: Browser
) -> None:
    """But on a telephone its keyboard, which takes half of the screen, waits until it is wanted."""
    await expect(screen.box).to_be_focused()
    await screen.page.keyboard.type("Hello.")
    await press(screen.page, "Enter")
    await screen.page.wait_for_url(re.compile("/c/"))
    await expect(screen.box).to_be_focused()
    telephone = await browser.new_context(
        base_url=product.base_url,
        has_touch=True,
        is_mobile=True,
        storage_state=await sign_in(product, browser),
    )
    held = Screen(await telephone.new_page())
    await held.page.goto("/?new")
    await expect(held.box).to_be_visible()
    await expect(held.box).not_to_be_focused()
    await telephone.close()


async def test_the_command_key_does_what_control_does(screen: Screen) -> None:
    page = screen.page
    await screen.ask("Hello.")
    await press(page, "Meta+k")
    await expect(page.get_by_role("combobox", name="Search and commands")).to_be_focused()
    await press(page, "Meta+k", "Meta+/")
    await expect(page.get_by_role("dialog", name="Keys and commands")).to_be_visible()
    await press(page, "Escape", "Meta+Shift+E")
    drawer = page.get_by_role("complementary", name="What the model sees")
    await expect(drawer).to_contain_text("kept free for the reply")
    await press(page, "Meta+Shift+O")
    await expect(page).to_have_url(re.compile(r"\?new$"))


async def test_escape_stops_a_reply(screen: Screen, model: RunningUpstream) -> None:
    await screen.ask("Hello.")
    model.script(unending("Once upon a time"))
    await screen.send("A story.")
    await expect(screen.articles.last).to_contain_text("Once upon a time")
    await screen.page.keyboard.press("Escape")
    await expect(screen.articles.last).to_contain_text("Stopped")


async def test_escape_leaves_the_innermost_and_then_stops(
    screen: Screen, model: RunningUpstream
) -> None:
    """Whatever is open during a reply, one Esc each, and the reply last of all.

    Breaks when: ``escape`` in ``keys.js`` does not ask for an open menu, for what was handled in
    its place already, or for an open dialog.
    """
    page = screen.page
    await screen.ask("Hello.")
    model.script(unending("Once upon a time"))
    await screen.send("A story.")
    await expect(screen.articles.last).to_contain_text("Once upon a time")
    first = screen.articles.first
    menu, edited = page.get_by_role("group", name="Message", exact=True), first.locator("textarea")
    drawer = page.get_by_role("complementary", name="What the model sees")
    await first.get_by_role("button", name="More about this message").press("Enter")
    await expect(menu).to_be_visible()
    await press(page, "Escape")
    await expect(menu).to_be_hidden()
    await expect(first.get_by_role("button", name="More about this message")).to_be_focused()
    await screen.button("Rename").press("Enter")
    await expect(page.get_by_role("textbox", name="Title")).to_be_focused()
    await press(page, "Escape")
    await expect(page.get_by_role("textbox", name="Title")).to_be_hidden()
    await expect(screen.button("Rename")).to_be_focused()
    await first.get_by_role("button", name="Edit", exact=True).press("Enter")
    await expect(edited).to_be_focused()
    await press(page, "Escape")
    await expect(edited).to_have_count(0)
    await press(page, "Control+k", "x", "Escape")
    await expect(page.get_by_role("dialog")).to_be_hidden()
    await expect(first.get_by_role("button", name="Edit", exact=True)).to_be_focused()
    await press(page, "Control+Shift+E", "Shift+Escape", "/")
    await expect(page.get_by_role("listbox", name="Commands")).to_be_visible()
    await press(page, "Escape")
    await expect(page.get_by_role("listbox", name="Commands")).to_be_hidden()
    await expect(drawer).to_be_visible()
    await press(page, "Escape")
    await expect(drawer).to_be_hidden()
    assert not any(address.endswith("/stop/") for address in screen.requests)
    await press(page, "Escape")
    await expect(screen.articles.last).to_contain_text("Stopped")


async def test_the_palette_takes_the_whole_width_of_a_phone(screen: Screen) -> None:
    """Breaks when: the palette is less wide than a phone, or closing it loses the focus."""
    page = screen.page
    await screen.ask("Hello.")
    await page.set_viewport_size({"width": 390, "height": 844})
    await screen.box.focus()
    dialog = page.get_by_role("dialog", name="Search and commands")
    for _ in range(2):
        await press(page, "Control+k")
        await expect(page.get_by_role("combobox", name="Search and commands")).to_be_focused()
        assert await dialog.evaluate("dialog => dialog.offsetWidth") == 390
        await press(page, "Escape")
        await expect(dialog).to_be_hidden()
        await expect(screen.box).to_be_focused()


async def test_an_input_method_keeps_its_enter_and_escape(screen: Screen) -> None:
    await screen.ask("Hello.")
    await screen.box.focus()
    session = await screen.page.context.new_cdp_session(screen.page)
    await session.send(
        "Input.imeSetComposition", {"text": "にほ", "selectionStart": 2, "selectionEnd": 2}
    )
    for key in ("Enter", "Escape"):
        await screen.box.dispatch_event(
            "keydown", {"key": key, "isComposing": True, "bubbles": True, "cancelable": True}
        )
    await session.send("Input.insertText", {"text": "日本"})
    await expect(screen.box).to_have_value("日本")
    await expect(screen.articles).to_have_count(2)
    await screen.box.press("Enter")
    await expect(screen.articles.nth(2)).to_contain_text("日本")


async def test_the_menu_of_commands_is_a_combobox_with_a_listbox(screen: Screen) -> None:
    page = screen.page
    await screen.ask("Hello.")
    await screen.box.press_sequentially("/")
    options = page.get_by_role("listbox", name="Commands").get_by_role("option")
    await expect(options).to_have_count(16)
    listed = page.locator("#help [data-command]")
    names = await listed.evaluate_all("terms => terms.map((term) => term.textContent.trim())")
    meant = await listed.evaluate_all(
        "terms => terms.map((term) => term.nextElementSibling.textContent)"
    )
    words = [f"{name} {meaning}" for name, meaning in zip(names, meant, strict=True)]
    assert words[0] == "/compact [focus] summarise older messages now"
    await expect(options).to_have_text(words)
    await expect(page.get_by_role("combobox", name="Commands")).to_be_visible()
    await expect(options.first).to_have_attribute("aria-selected", "true")
    await press(page, "ArrowDown")
    await expect(options.nth(1)).to_have_attribute("aria-selected", "true")
    await press(page, "ArrowUp", "ArrowUp")
    await expect(options.last).to_have_attribute("aria-selected", "true")
    await press(page, "Escape")
    await expect(options).to_have_count(0)
    await screen.box.press_sequentially("mo")
    await press(page, "Tab")
    await expect(screen.box).to_have_value("/model ")


async def test_each_command_does_its_work(screen: Screen) -> None:
    page = screen.page
    await screen.ask("Hello.")
    home = page.url
    await screen.send("/context")
    drawer = page.get_by_role("complementary", name="What the model sees")
    await expect(drawer).to_contain_text("kept free for the reply")
    await press(page, "Escape")
    await screen.send("/system Answer in rhyme.")
    await screen.send("/context")
    await expect(drawer).to_contain_text("Answer in rhyme.")
    await screen.send("/model no-such-model")
    await expect(page.get_by_role("alert")).to_contain_text("There is no model no-such-model")
    await screen.send("/undo")
    await expect(page.get_by_role("alert")).to_be_visible()
    await screen.send("/clear")
    divider = page.get_by_role("region", name="Compressed messages")
    await expect(divider).to_contain_text("The model starts afresh below")
    await screen.send("/undo")
    await expect(divider).to_contain_text("The new start was undone")
    await screen.send("/help")
    await expect(page.get_by_role("dialog", name="Keys and commands")).to_be_visible()
    await press(page, "Escape")
    async with page.expect_download() as waiting:
        await screen.send("/export json")
    assert (await waiting.value).suggested_filename.endswith(".json")
    await screen.send("/stats")
    await expect(page).to_have_url(re.compile("activity/$"))
    await page.goto(home)
    await screen.send("/branch")
    await expect(page).not_to_have_url(home)
    await expect(screen.articles).to_have_count(2)
    await screen.send("/new")
    await expect(page).to_have_url(re.compile(r"\?new$"))
