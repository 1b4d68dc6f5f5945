"""Pictures of the summary line by line, of a preview, and of what two versions differ in."""

from __future__ import annotations

from playwright.async_api import expect

from tests.browser.pictures import picture
from tests.browser.screen import Screen
from tests.browser.test_compression import fill
from tests.upstreams import RunningUpstream


async def of_lines(screen: Screen, model: RunningUpstream) -> None:
    """A preview that waits, is looked at and applied; its lines; their versions."""
    page = screen.page
    model.reset()
    await page.goto("/?new")
    await fill(screen, 3)
    await page.get_by_role("link", name="Preview").click()
    await expect(screen.button("Write preview")).to_be_visible()
    await picture(screen, "preview-new")
    await screen.button("Write preview").click()
    await expect(screen.button("Apply").last).to_be_visible()
    drawer = page.locator("#drawer")
    await drawer.get_by_role("checkbox").first.check()
    await picture(screen, "preview")
    await screen.button("Close").click()
    await picture(screen, "preview-waits")
    await page.locator("#notice").get_by_role("button", name="Look at it").click()
    await drawer.get_by_role("textbox", name="Add a rule").fill("Prices are in euros.")
    await drawer.get_by_role("button", name="Apply").click()
    lines = drawer.locator("[data-line]")
    await expect(lines.filter(has_text="in euros")).to_be_visible()
    await picture(screen, "lines")
    await lines.first.locator("summary").click()
    await picture(screen, "line-choices")
    await lines.first.get_by_role("button", name="Edit").click()
    await drawer.get_by_role("textbox", name="Line").first.fill("Always answer in Scots English.")
    await picture(screen, "line-edited")
    await drawer.get_by_role("button", name="Save", exact=True).click()
    await drawer.get_by_role("tab", name="Versions").click()
    await drawer.get_by_text("Changes (1 changed)").click()
    await drawer.locator(".comparison").first.scroll_into_view_if_needed()
    await picture(screen, "versions-compared")
    await screen.button("Close").click()
