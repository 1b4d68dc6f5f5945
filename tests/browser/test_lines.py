"""The summary line by line, and previews: by keyboard, with another page open, after a reload."""

from __future__ import annotations

import pytest
from playwright.async_api import BrowserContext, Locator, expect

from tests.browser.screen import Screen
from tests.browser.test_accessibility import in_both_themes
from tests.browser.test_compression import RULE, fill
from tests.browser.test_drawer import drawer_of

pytestmark = pytest.mark.browser

SCOTS = "Always answer in Scots."


def line_of(drawer: Locator, text: str) -> Locator:
    """The line with exactly this text."""
    return drawer.locator(f'[data-line][data-text="{text}"]')


async def compressed(screen: Screen) -> Locator:
    """The drawer with the summary of three turns."""
    await fill(screen, 3)
    await screen.button("Compact").click()
    divider = screen.page.get_by_role("region", name="Compressed messages")
    await divider.get_by_role("button", name="View summary").click()
    drawer = drawer_of(screen)
    await expect(line_of(drawer, RULE)).to_be_visible()
    return drawer


async def unfold(line: Locator) -> None:
    """By keyboard."""
    await line.locator("summary").focus()
    await line.locator("summary").press("Enter")


async def test_by_keyboard_a_line_is_pinned_rewritten_and_struck(screen: Screen) -> None:
    """The focus stays where the person is, whichever of answer and event comes first.

    Breaks when: ``reread`` focuses nothing, or a second press is a second change.
    """
    page, drawer = screen.page, await compressed(screen)
    await unfold(line_of(drawer, RULE))
    await line_of(drawer, RULE).get_by_role("button", name="Pin").press("Enter")
    await expect(drawer).to_contain_text("Version 2")
    await expect(line_of(drawer, RULE)).to_contain_text("yours")
    await expect(line_of(drawer, RULE).locator("summary")).to_be_focused()
    await line_of(drawer, RULE).locator("details").evaluate("one => (one.open = true)")
    await line_of(drawer, RULE).get_by_role("button", name="Edit").press("Enter")
    box = drawer.get_by_role("textbox", name="Line", exact=True).first
    await expect(box).to_be_focused()
    await expect(box).to_have_value(RULE)
    await page.keyboard.press("Escape")
    await expect(line_of(drawer, RULE).locator("summary")).to_be_focused()
    await unfold(line_of(drawer, RULE))
    await line_of(drawer, RULE).get_by_role("button", name="Edit").press("Enter")
    await box.fill(SCOTS)
    await page.keyboard.press("Control+Enter")
    await expect(line_of(drawer, SCOTS)).to_be_visible()
    await expect(screen.status).to_have_text("Line saved. Undo takes it back.")
    await expect(line_of(drawer, SCOTS).locator("summary")).to_be_focused()
    await drawer.get_by_role("tab", name="Versions").click()
    await drawer.get_by_text("Changes (1 changed)").first.click()
    await expect(drawer.locator(".comparison del").first).to_contain_text("British English")
    await expect(drawer.locator(".comparison ins").first).to_contain_text("Scots")

    await drawer.get_by_role("tab", name="Summary").click()
    await unfold(line_of(drawer, SCOTS))
    await line_of(drawer, SCOTS).get_by_role("button", name="Strike").press("Enter")
    await expect(line_of(drawer, SCOTS)).to_have_count(0)
    await expect(screen.status).to_have_text("Line struck. Undo takes it back.")
    await expect(drawer.locator(":focus")).to_have_count(1)
    stored = (await screen.stored())["compression"]
    assert stored["version"] == 4
    await drawer.get_by_role("button", name="Undo", exact=True).click()
    await expect(line_of(drawer, SCOTS)).to_be_visible()
    assert screen.complaints == []


async def test_an_outdated_page_is_refused_and_keeps_what_was_written(
    screen: Screen, signed_in: BrowserContext
) -> None:
    """Breaks when: the version on the page is not sent, or a refusal loses the text."""
    drawer = await compressed(screen)
    await unfold(line_of(drawer, RULE))
    await line_of(drawer, RULE).get_by_role("button", name="Edit").click()
    box = drawer.get_by_role("textbox", name="Line", exact=True).first
    await box.fill(SCOTS)

    other = Screen(await signed_in.new_page())
    await other.page.goto(f"{screen.page.url}summaries/")
    there = other.page.locator("[data-line]").first
    await there.locator("summary").click()
    await there.get_by_role("button", name="Pin").click()
    await expect(other.page.get_by_text("Version 2").first).to_be_visible()

    await expect(screen.page.locator("#divider")).to_contain_text("edited by a person")
    await expect(box).to_have_value(SCOTS)
    await drawer.get_by_role("button", name="Save", exact=True).click()
    await expect(screen.page.get_by_role("alert")).to_contain_text(
        "The summary has changed meanwhile"
    )
    await expect(box).to_be_focused()
    await expect(box).to_have_value(SCOTS)
    await drawer.get_by_role("button", name="Save", exact=True).click()
    await expect(line_of(drawer, SCOTS)).to_be_visible()
    assert (await screen.stored())["compression"]["version"] == 3
    assert screen.complaints == [] == other.complaints


async def test_a_line_is_added_and_its_source_is_jumped_to(screen: Screen) -> None:
    drawer = await compressed(screen)
    await unfold(line_of(drawer, RULE))
    await drawer.get_by_text("Add a line").click()
    assert await in_both_themes(screen.page) == []
    await drawer.get_by_label("Heading").select_option("Decisions")
    await drawer.get_by_role("textbox", name="Line", exact=True).fill("We sail in May.")
    await drawer.get_by_role("button", name="Add", exact=True).click()
    await expect(line_of(drawer, "We sail in May.")).to_be_visible()
    await expect(drawer.get_by_text("Add a line")).to_be_focused()
    await line_of(drawer, RULE).get_by_role("link", name="Message 1").click()
    await expect(screen.articles.first).to_be_in_viewport()
    assert screen.complaints == []


async def written_preview(screen: Screen) -> Locator:
    """The drawer with a preview of three turns."""
    await fill(screen, 3)
    await screen.page.get_by_role("link", name="Preview").click()
    drawer = drawer_of(screen)
    await drawer.get_by_role("button", name="Write preview").click()
    await expect(drawer.get_by_role("button", name="Apply")).to_be_visible()
    return drawer


async def test_a_preview_is_looked_at_changed_and_applied(screen: Screen) -> None:
    """Nothing changes before Apply, and it is one version.

    Breaks when: what was ticked is lost when the drawer is read again, or is not sent.
    """
    page, drawer = screen.page, await written_preview(screen)
    await expect(page.locator("#notice")).to_contain_text("A preview of the next summary waits")
    await expect(screen.box).not_to_have_attribute("readonly", "")
    rule = drawer.get_by_role("checkbox", name=f"Take out “{RULE}”")
    await rule.press("Space")
    await drawer.get_by_role("textbox", name="Add a rule").fill(SCOTS)
    assert await in_both_themes(page) == []
    # Whatever else happens meanwhile.
    await screen.ask("And one more thing?")
    assert (await screen.stored())["compression"]["version"] == 0
    await expect(rule).to_be_checked()
    await drawer.get_by_role("button", name="Apply").press("Enter")
    await expect(line_of(drawer, SCOTS)).to_be_visible()
    await expect(line_of(drawer, RULE)).to_have_count(0)
    await expect(drawer.locator("#drawer-body")).to_be_focused()
    await expect(page.locator("#notice")).to_be_empty()
    await expect(screen.status).to_have_text("Conversation compressed")
    assert (await screen.stored())["compression"]["version"] == 1
    assert screen.complaints == []


async def test_what_was_ticked_counts_wherever_apply_is_pressed(screen: Screen) -> None:
    """The notice above the message box has the same buttons, for while the drawer is closed.

    Breaks when: its Apply takes the preview as it was written, or stands beside that of the form.
    """
    page, drawer = screen.page, await written_preview(screen)
    notice = page.locator("#notice")
    await expect(notice).to_contain_text("A preview of the next summary waits")
    await expect(notice.get_by_role("button")).to_have_count(0)
    await drawer.get_by_role("checkbox", name=f"Take out “{RULE}”").check()
    await drawer.get_by_role("textbox", name="Add a rule").fill(SCOTS)
    await screen.button("Close").click()
    await notice.get_by_role("button", name="Apply").click()
    await expect(notice).to_be_empty()
    await expect(screen.status).to_have_text("Conversation compressed")
    await page.get_by_role("button", name="View summary").click()
    await expect(line_of(drawer, SCOTS)).to_be_visible()
    await expect(line_of(drawer, RULE)).to_have_count(0)
    assert screen.complaints == []


async def test_a_preview_outlives_the_page_and_says_when_it_is_out_of_date(
    screen: Screen,
) -> None:
    """Breaks when: an outdated preview can be applied, or a new one is not made with one press."""
    page, drawer = screen.page, await written_preview(screen)
    await page.reload()
    notice = page.locator("#notice")
    await expect(notice.get_by_role("button", name="Apply")).to_be_visible()
    await screen.send("/clear")
    await expect(notice).to_contain_text("The preview is out of date")
    await expect(notice.get_by_role("button", name="Apply")).to_have_count(0)
    await screen.send("/undo")
    await expect(page.get_by_text("Undone").first).to_be_visible()
    await notice.get_by_role("button", name="Look at it").click()
    await drawer.get_by_role("button", name="Make it anew").click()
    await expect(drawer.get_by_role("button", name="Apply")).to_be_visible()
    await drawer.get_by_role("button", name="Discard").click()
    await expect(drawer).to_contain_text("No preview waits")
    await expect(notice).to_be_empty()
    assert screen.complaints == []


async def test_nothing_to_preview_is_no_error(screen: Screen) -> None:
    """Breaks when: the script's card does not say which error it is of, and is red."""
    await screen.ask("Hello.")
    await screen.page.get_by_role("link", name="Preview").click()
    await drawer_of(screen).get_by_role("button", name="Write preview").click()
    card = screen.page.get_by_role("alert").filter(has_text="nothing to compress")
    await expect(card).to_be_visible()
    amber = "one => getComputedStyle(one).getPropertyValue('--amber').trim()"
    border = "one => getComputedStyle(one).borderTopColor"
    probe = """(one, colour) => { one.style.color = colour; return getComputedStyle(one).color; }"""
    colour = await card.evaluate(amber)
    assert await card.evaluate(border) == await card.evaluate(probe, colour)


async def test_a_range_is_begun_at_a_message(screen: Screen) -> None:
    """Breaks when: the menu's message is not the one in the form."""
    await fill(screen, 3)
    await screen.act(2, "Compress from here …")
    drawer = drawer_of(screen)
    first = drawer.get_by_role("textbox", name="From message")
    await expect(first).to_have_value("3")
    await drawer.get_by_role("textbox", name="to message").fill("1")
    await drawer.get_by_role("button", name="Write preview").click()
    await expect(screen.page.get_by_role("alert")).to_contain_text("must not end before it begins")
    await expect(first).to_have_value("3")
    assert screen.complaints == []
