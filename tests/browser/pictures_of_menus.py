"""Pictures of the palette, the menus of the list, a held message, and files."""

from __future__ import annotations

from playwright.async_api import expect

from tests.browser.pictures import close_menus, open_list, picture
from tests.browser.screen import Screen
from tests.browser.scripts import unending
from tests.upstreams import RunningUpstream


async def of_menus(screen: Screen) -> None:
    """The palette without and with words, and the menus where the list is beside the messages."""
    page = screen.page
    await page.goto("/?new")
    await screen.ask("Where do herons nest?")
    await page.keyboard.press("Control+k")
    await expect(page.get_by_role("group", name="Commands")).to_be_visible()
    await picture(screen, "palette")
    await page.keyboard.type("heron")
    await expect(page.get_by_role("group", name="This conversation")).to_be_visible()
    await picture(screen, "palette-found")
    await page.keyboard.press("Escape")

    async def row_menu() -> None:
        await open_list(screen)
        row = page.get_by_role("button", name="Actions for Where do herons nest?").first
        await row.press("Enter")
        await expect(page.get_by_role("group", name="Conversation")).to_be_visible()

    async def account_menu() -> None:
        await open_list(screen)
        await page.locator("#account-button").press("Enter")
        await expect(page.get_by_role("button", name="Sign out")).to_be_visible()

    async def row_renaming() -> None:
        await row_menu()
        await page.get_by_role("group", name="Conversation").get_by_text("Rename").click()
        await expect(page.get_by_role("textbox", name="Title")).to_be_focused()

    await picture(screen, "row-menu", row_menu)
    await picture(screen, "row-renaming", row_renaming)
    await page.keyboard.press("Escape")
    await picture(screen, "account-menu", account_menu)
    await close_menus(screen)


async def of_a_held_message(screen: Screen, model: RunningUpstream) -> None:
    """A queued message whose reply was stopped; a file over the page, and one that is refused."""
    page = screen.page
    model.script(unending("Herons nest"))
    await screen.send("Tell me more.")
    await expect(screen.articles.last).to_contain_text("Herons nest")
    await screen.send("And in winter?")
    await expect(page.get_by_text("Will be sent when")).to_be_visible()
    await screen.button("Stop").click()
    await expect(page.locator("[data-held]")).to_be_visible()
    await picture(screen, "held")
    await screen.button("Keep as draft").click()
    await page.locator("#drop").evaluate("zone => zone.hidden = false")
    await picture(screen, "file-dragged")
    await page.locator("#drop").evaluate("zone => zone.hidden = true")
    photo = {"name": "heron.png", "mimeType": "image/png", "buffer": b"x"}
    await page.locator("#files").set_input_files(photo)  # type: ignore[arg-type]
    await expect(page.get_by_role("alert")).to_be_visible()
    await picture(screen, "file-refused")
