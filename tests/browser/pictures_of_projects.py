"""Pictures of projects: their list, the page of one, and the menu that moves a conversation."""

from __future__ import annotations

from playwright.async_api import expect

from tests.browser.pictures import picture, pictures_at
from tests.browser.screen import Screen


async def of_projects(screen: Screen) -> None:
    """Two projects; one has a conversation, lines and a colour."""
    page = screen.page
    for name, colour in (("A novel by the sea", "moss"), ("Taxes", "plum")):
        await page.goto("/projects/")
        await page.get_by_role("textbox", name="New project").fill(name)
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", level=1, name=name)).to_be_visible()
        await page.get_by_role("radio", name=colour).check()
        await page.get_by_role("main").get_by_role("button", name="Save").last.click()
        await expect(page.get_by_role("heading", level=1, name=name)).to_be_visible()
    await picture(screen, "project-empty")
    await page.goto("/?new&project=a_novel_by_the_sea")
    await expect(page.get_by_text("In the project")).to_be_visible()
    await picture(screen, "project-begun")
    await screen.ask("Who is the heroine?")
    await page.get_by_role("button", name="Actions for Who is the heroine?").click()
    await page.get_by_role("button", name="Move to a project").click()
    await page.screenshot(path="var/screenshots/project-move.png")
    await page.keyboard.press("Escape")
    await page.goto("/projects/a_novel_by_the_sea/")
    for text in ("No adverbs, and *never* a semicolon.", "Mira is the heroine; she is nineteen."):
        await page.get_by_role("textbox", name="Line", exact=True).last.fill(text)
        await page.get_by_role("button", name="Add", exact=True).click()
        await expect(page.get_by_label("Change “").first).to_be_visible()
    await page.get_by_label("Change “").first.click()
    await picture(screen, "project")
    await pictures_at(screen, projects="/projects/")
