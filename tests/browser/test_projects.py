"""Projects on the page: made, filled by menu and by drag; their lines in each conversation."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Locator, Page, expect

from tests.browser.screen import Screen
from tests.browser.test_accessibility import in_both_themes
from tests.browser.test_compression import RULE
from tests.browser.test_lines import compressed, line_of, unfold
from tests.browser.test_list import entry
from tests.upstreams import RunningUpstream

pytestmark = pytest.mark.browser


async def make(page: Page, name: str) -> None:
    """A new project, whose page is shown."""
    await page.goto("/projects/")
    await page.get_by_role("textbox", name="New project").fill(name)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", level=1, name=name)).to_be_visible()


def in_navigation(page: Page, name: str) -> Locator:
    return page.locator("#projects").get_by_role("link", name=name)


async def test_a_projects_life_by_keyboard(screen: Screen) -> None:
    """The focus is where the person was, though each change loads the page again.

    Breaks when: the answer leads to the top of the page.
    """
    page = screen.page
    await make(page, "Sea voyages")
    kept = page.get_by_role("region", name="Kept for all its conversations")
    for text in ("No adverbs.", "Mira is the heroine."):
        await kept.get_by_role("textbox", name="Line", exact=True).last.fill(text)
        await kept.get_by_role("button", name="Add").press("Enter")
        await expect(kept.get_by_role("listitem").filter(has_text=text)).to_be_visible()
    more = kept.get_by_label("Change “No adverbs.”")
    await more.press("Enter")
    box = kept.get_by_role("textbox", name="Line").first
    await box.fill("Few adverbs.")
    await kept.get_by_role("button", name="Save").press("Enter")
    more = kept.get_by_label("Change “Few adverbs.”")
    await expect(more).to_be_focused()
    await more.press("Enter")
    await kept.get_by_role("button", name="Strike").press("Enter")
    await expect(more).to_have_count(0)
    await expect(kept.get_by_label("Change “Mira is the heroine.”")).to_be_focused()
    await kept.get_by_role("button", name="Undo the last change").press("Enter")
    await expect(more).to_be_visible()

    await page.get_by_role("textbox", name="Name").fill("Voyages")
    await page.get_by_role("radio", name="moss").check()
    await page.get_by_role("textbox", name="Instructions for the model").fill("Be terse.")
    await page.get_by_role("main").get_by_role("button", name="Save").last.press("Enter")
    await expect(page.get_by_role("heading", level=1, name="Voyages")).to_be_visible()
    await expect(in_navigation(page, "Voyages")).to_have_attribute("aria-current", "page")
    await page.get_by_role("button", name="Archive", exact=True).press("Enter")
    await expect(page.get_by_text("This project is archived.")).to_be_visible()
    await expect(in_navigation(page, "Voyages")).to_have_count(0)
    await page.get_by_text("Delete…").click()
    await page.get_by_role("button", name="Delete the project").press("Enter")
    await expect(page.get_by_role("heading", level=1, name="Projects")).to_be_visible()
    assert screen.complaints == []


async def test_a_conversation_is_moved_by_menu_and_by_drag(screen: Screen) -> None:
    """By keyboard, with Undo, and by the pointer.

    Breaks when: a drop does nothing, the menu of projects cannot be reached by keys, or the
    project's page has to be loaded again.
    """
    page = screen.page
    await make(page, "Birds")
    await page.goto("/?new")
    await screen.ask("Call this one turnstone")
    actions = page.get_by_role("button", name="Actions for Call this one turnstone")
    await actions.press("Enter")
    await page.get_by_role("button", name="Move to a project").press("Enter")
    menu = page.get_by_role("group", name="Move to a project")
    await expect(menu.get_by_role("button").first).to_be_focused()
    await menu.get_by_role("button", name="Birds").press("Enter")
    row = entry(screen, "Call this one turnstone")
    await expect(row.get_by_title("In Birds")).to_be_visible()
    await expect(actions).to_be_focused()
    undo = page.get_by_role("button", name="Undo", exact=True)
    await undo.press("Enter")
    await expect(row.get_by_title("In Birds")).to_have_count(0)

    link = row.get_by_role("link").first
    await link.drag_to(in_navigation(page, "Birds"))
    await expect(row.get_by_title("In Birds")).to_be_visible()
    await expect(undo).to_be_visible()
    await screen.button("Conversation settings").click()
    await expect(page.get_by_label("Project", exact=True)).to_have_value("birds")
    await page.keyboard.press("Escape")
    await in_navigation(page, "Birds").click()
    main = page.get_by_role("main")
    listed = main.get_by_role("link", name="Call this one turnstone")
    await expect(listed).to_be_visible()
    # The project's own page follows what is done in the list beside it, and what is taken back.
    await actions.press("Enter")
    await page.get_by_role("button", name="Move to a project").press("Enter")
    await menu.get_by_role("button", name="No project").press("Enter")
    await expect(main.get_by_text("No conversations yet.")).to_be_visible()
    await undo.press("Enter")
    await expect(listed).to_be_visible()
    assert screen.complaints == []


async def test_two_conversations_know_the_projects_lines(
    screen: Screen, model: RunningUpstream
) -> None:
    """A line kept from one summary is in the requests of both, and in neither after Undo.

    Breaks when: the button beside a line does nothing, or the drawer hides what is sent.
    """
    page = screen.page
    await make(page, "Prices")
    await page.get_by_role("link", name="New conversation in this project").click()
    await expect(page.get_by_text("In the project Prices")).to_be_visible()
    drawer = await _compressed_here(screen)
    await unfold(line_of(drawer, RULE))
    keep = line_of(drawer, RULE).get_by_role("button", name="Keep for the project")
    await keep.press("Enter")
    await expect(screen.status).to_have_text("Kept for the project. Its page has Undo.")
    await expect(line_of(drawer, RULE).get_by_text("Kept for the project")).to_be_focused()

    await in_navigation(page, "Prices").click()
    kept = page.get_by_role("region", name="Kept for all its conversations")
    await expect(kept).to_contain_text(RULE)
    await page.get_by_role("link", name="New conversation in this project").click()
    await screen.ask("What do you know?")
    assert RULE in model.chats()[-1]["messages"][0]["content"]
    await screen.button("What the model sees").click()
    seen = page.locator("#seen-project-lines")
    await expect(seen).to_contain_text("Kept for the project")
    await seen.locator("summary").click()
    await seen.get_by_role("link", name="Change it for the project").click()
    await kept.get_by_role("button", name="Undo the last change").click()
    await expect(kept).not_to_contain_text(RULE)
    await page.go_back()
    await page.go_back()
    await expect(screen.box).to_be_visible()
    await screen.ask("And now?")
    assert RULE not in model.chats()[-1]["messages"][0]["content"]
    assert screen.complaints == []


async def _compressed_here(screen: Screen) -> Locator:
    """As :func:`compressed`, in the conversation that begins here."""
    drawer = await compressed(screen)
    await expect(screen.page).to_have_url(re.compile("/c/"))
    return drawer


async def test_axe_finds_nothing_on_the_pages_of_projects(screen: Screen) -> None:
    page = screen.page
    await make(page, "Axes")
    address = page.url
    await page.get_by_role("textbox", name="Line", exact=True).last.fill("Sharp.")
    await page.get_by_role("button", name="Add").click()
    await expect(page.get_by_label("Change “Sharp.”")).to_be_visible()
    found = []
    for path in ("/projects/", address):
        for width in (1280, 390):
            await page.set_viewport_size({"width": width, "height": 844})
            await page.goto(path)
            found += await in_both_themes(page)
            wide = await page.evaluate("document.documentElement.scrollWidth > innerWidth")
            assert not wide, f"{path} at {width}"
    assert found == []
