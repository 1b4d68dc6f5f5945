"""What no rival has, without the pointer: a summary looked at, chosen, edited, and taken back."""

from __future__ import annotations

import pytest
from playwright.async_api import Locator, Page, expect

from tests.browser.screen import Screen, imported
from tests.browser.test_accessibility import tab_to
from tests.browser.test_compression import DETAILS, RULE
from tests.browser.test_drawer import drawer_of
from tests.browser.test_lines import line_of
from tests.browser.test_outline import outline_of
from tests.browser.test_palette import chosen, field
from tests.servers import RunningServer

pytestmark = pytest.mark.browser

TABS = "Never use tabs."
SPACES = "Never use more than two spaces."
# In view, and with a ring around it. The frames of the two boxes say it by their colour, and so
# does the bar beside the message that was jumped to.
_SHOWS = """() => {
    const one = document.activeElement;
    if (!one?.checkVisibility({opacityProperty: true}) || one === document.body) return false;
    const {top, bottom, left, right} = one.getBoundingClientRect();
    if (bottom <= 0 || right <= 0 || top >= innerHeight || left >= innerWidth) return false;
    const [ring, bar] = [getComputedStyle(one), getComputedStyle(one, "::before")];
    return (ring.outlineStyle !== "none" && parseFloat(ring.outlineWidth) > 0)
        || (bar.borderLeftStyle === "solid" && bar.borderLeftColor === ring.outlineColor)
        || Boolean(one.closest("#composer, #palette > header"));
}"""


async def shows(page: Page, focused: Locator) -> None:
    """The focus is there, in view, and can be seen."""
    await expect(focused).to_be_focused()
    await page.wait_for_function(_SHOWS)


async def press(page: Page, button: Locator, key: str = "Tab") -> None:
    """Go to the button and press it, both by keys."""
    await tab_to(page, button, key)
    await shows(page, button)
    await page.keyboard.press("Enter")


async def preview_is_applied(page: Page, drawer: Locator) -> None:
    """Without one of its lines."""
    body = drawer.locator("#drawer-body")
    await press(page, page.get_by_role("link", name="Preview", exact=True))
    await shows(page, body)
    await press(page, drawer.get_by_role("button", name="Write preview"))
    await expect(drawer.get_by_role("button", name="Apply")).to_be_visible()
    await shows(page, body)
    out = drawer.get_by_role("checkbox", name=f"Take out “{RULE}”", exact=True)
    await tab_to(page, out)
    await shows(page, out)
    await page.keyboard.press("Space")
    await expect(out).to_be_checked()
    await press(page, drawer.get_by_role("button", name="Apply"))
    await expect(line_of(drawer, TABS)).to_be_visible()
    await expect(line_of(drawer, RULE)).to_have_count(0)
    await shows(page, body)


async def line_is_edited_and_undone(page: Page, drawer: Locator) -> None:
    """The focus stays at the line, and at Undo."""
    await press(page, line_of(drawer, TABS).locator("summary"))
    await press(page, line_of(drawer, TABS).get_by_role("button", name="Edit"))
    await shows(page, drawer.get_by_role("textbox", name="Line", exact=True).first)
    await page.keyboard.press("Control+A")
    await page.keyboard.type(SPACES)
    await page.keyboard.press("Control+Enter")
    await shows(page, line_of(drawer, SPACES).locator("summary"))
    undo = drawer.get_by_role("button", name="Undo", exact=True)
    await press(page, undo)
    await expect(line_of(drawer, TABS)).to_be_visible()
    await expect(line_of(drawer, SPACES)).to_have_count(0)
    await shows(page, undo)


async def outline_leads(screen: Screen) -> None:
    """To the first message, above the divider."""
    page, panel = screen.page, outline_of(screen.page)
    await page.keyboard.press("Control+Shift+L")
    await shows(page, panel.locator('[aria-current="location"]'))
    await page.keyboard.press("Home")
    await shows(page, panel.get_by_role("link", name=RULE))
    await page.keyboard.press("Enter")
    await shows(page, screen.articles.first)


async def palette_acts(screen: Screen, drawer: Locator) -> None:
    """A command with words, which leaves the focus where it was; and one that leads elsewhere."""
    page = screen.page
    await page.keyboard.press("Control+k")
    await shows(page, field(page))
    await page.keyboard.type("/title Herons")
    await expect(chosen(page)).to_contain_text("/title Herons")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Herons")
    await shows(page, screen.articles.first)
    await page.keyboard.press("Control+k")
    await page.keyboard.type("model sees")
    await expect(chosen(page)).to_contain_text("What the model sees")
    await page.keyboard.press("Enter")
    await expect(drawer).to_contain_text("kept free for the reply")
    await shows(page, drawer.locator("#drawer-body"))
    await page.keyboard.press("Escape")
    await shows(page, screen.page.locator("#drawer-button"))


@pytest.mark.soak
async def test_the_memory_is_walked_through_by_keyboard_alone(
    screen: Screen, product: RunningServer
) -> None:
    """Preview, choose, apply, edit, undo, outline, palette; whoever sees finds the focus each time.

    Breaks when: what is pressed or replaced takes the focus with it, or an element hides its ring.
    """
    page, drawer = screen.page, drawer_of(screen)
    asked = [f"{rule} {DETAILS}" for rule in (RULE, TABS, *("Walk on." for _ in range(5)))]
    path = imported(product, *[text for question in asked for text in (question, "Noted.")])
    await page.goto(path)
    await shows(page, screen.box)
    await preview_is_applied(page, drawer)
    await line_is_edited_and_undone(page, drawer)
    await page.keyboard.press("Escape")
    await expect(drawer).to_be_hidden()
    await shows(page, page.get_by_role("link", name="Preview", exact=True))
    await outline_leads(screen)
    await palette_acts(screen, drawer)
    assert screen.complaints == []
