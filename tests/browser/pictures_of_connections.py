"""Pictures of connecting a model, for ``tests.browser.screenshots``."""

from __future__ import annotations

from playwright.async_api import expect

from tests.browser.pictures import picture, pictures_at
from tests.browser.screen import Screen
from tests.upstreams import RunningUpstream


async def of_connections(screen: Screen, model: RunningUpstream) -> None:
    """The empty form, what is wrong, a connected server; it is disconnected at the end."""
    page = screen.page
    await pictures_at(screen, connections_none="/connections/")
    await page.goto("/connections/")
    await page.get_by_label("Name").fill("study")
    await page.get_by_label("Address").fill(model.base_url)
    await page.get_by_role("button", name="Test and connect").click()
    await expect(page.get_by_role("alert")).to_be_visible()
    await picture(screen, "connections-what-is-wrong")
    await page.get_by_label("On this computer or in its network").check()
    await page.get_by_role("button", name="Test and connect").click()
    section = page.get_by_role("region", name="study")
    await expect(section).to_be_visible()
    await picture(screen, "connections-study")
    await section.get_by_text("Disconnect", exact=True).click()
    await section.get_by_text("Enter a key", exact=True).click()
    await picture(screen, "connections-key-and-disconnect")
    await section.get_by_role("button", name="Disconnect study").click()
    await expect(section).to_have_count(0)
