"""The views of the drawer: their tabs and addresses, and what stays when one is read again."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import BrowserContext, Locator, expect

from tests.browser.screen import Screen
from tests.browser.test_accessibility import in_both_themes
from tests.browser.test_compression import DETAILS, RULE, fill
from tests.browser.test_drawer import drawer_of
from tests.browser.test_threshold import past_the_threshold

pytestmark = pytest.mark.browser

VIEWS = ("Next request", "Summary", "Versions", "This reply")
SELECT = """one => {
    const range = document.createRange();
    range.setStart(one.firstChild, 4);
    range.setEnd(one.firstChild, 20);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    return String(getSelection());
}"""


def tab(screen: Screen, name: str) -> Locator:
    return screen.page.get_by_role("tab", name=name)


def panel(screen: Screen, name: str) -> Locator:
    """What the drawer shows, when it is this view."""
    return screen.page.get_by_role("tabpanel", name=name)


async def compressed(screen: Screen) -> None:
    await fill(screen, 3)
    await screen.button("Compact").click()
    await expect(screen.status).to_have_text("Conversation compressed")


async def test_the_drawer_opens_with_the_summary_open(screen: Screen) -> None:
    """Breaks when: what is read first is the program's own instructions, the summary folded."""
    await compressed(screen)
    await screen.page.keyboard.press("Control+Shift+E")
    next_request = panel(screen, "Next request")
    await expect(next_request.get_by_text(RULE).first).to_be_in_viewport()
    await expect(next_request.get_by_role("list", name="Parts of the window")).to_contain_text(
        re.compile(r"Summary.*%.*Reserve, kept free for the reply.*%.*Still free.*%")
    )
    share = await screen.page.locator("#chip .share").inner_text()
    await expect(next_request.locator(".whole")).to_contain_text(share)


async def test_the_views_are_gone_through_by_keyboard(screen: Screen) -> None:
    """With the arrows, Home and End, round at the ends; what was chosen outlives a reload.

    Breaks when: a swap takes the focus off the tab, each tab is a stop of its own, or the address
    does not name the view.
    """
    page, press = screen.page, screen.page.keyboard.press
    await compressed(screen)
    address = page.url
    await press("Control+Shift+E")
    await expect(panel(screen, "Next request")).to_be_focused()
    await press("Shift+Tab")
    for key, view in (
        ("ArrowRight", "Summary"),
        ("ArrowRight", "Versions"),
        ("End", "This reply"),
        ("ArrowRight", "Next request"),
        ("ArrowLeft", "This reply"),
        ("Home", "Next request"),
        ("ArrowRight", "Summary"),
    ):
        await press(key)
        await expect(panel(screen, view)).to_be_visible()
        await expect(tab(screen, view)).to_be_focused()
        await expect(tab(screen, view)).to_have_attribute("aria-selected", "true")
        await expect(page.locator("[role=tab][aria-selected=true]")).to_have_count(1)
    await press("Tab")
    assert await page.evaluate("document.activeElement.role") != "tab"
    assert page.url == f"{address}#sees=summary"
    await page.reload()
    await expect(panel(screen, "Summary")).to_contain_text(RULE)
    await press("Escape")
    await expect(drawer_of(screen)).to_be_hidden()
    assert page.url == address
    assert screen.complaints == []


async def test_an_address_leads_to_a_view_and_nowhere_else(screen: Screen) -> None:
    """Breaks when: a link to a conversation makes the page ask for whatever stands in it."""
    page = screen.page
    await screen.ask("Hello.")
    await screen.act(1, "What this reply saw")
    await expect(panel(screen, "This reply")).to_contain_text("Message 2")
    link = await tab(screen, "This reply").get_attribute("href")
    assert link is not None
    assert re.search(r"#sees=reply-\d+$", link)
    await screen.ask("And again.")
    conversation = page.url
    for address, view, words in (
        (link, "This reply", "Message 2"),
        ("#sees=reply", "This reply", "Message 4"),
        ("#sees=versions", "Versions", "no summary has been written"),
        ("#sees=../../../settings/", "Next request", "kept free for the reply"),
        ("#sees=reply-../stop/", "Next request", "kept free for the reply"),
    ):
        await page.goto("about:blank")
        screen.requests.clear()
        await page.goto(address if "/c/" in address else conversation + address)
        await expect(panel(screen, view)).to_contain_text(words)
        assert not [one for one in screen.requests if "/stop/" in one or "/settings/" in one]
    assert screen.complaints == []


async def test_the_view_of_a_reply_is_of_the_one_it_was_asked_for(screen: Screen) -> None:
    """Otherwise of the last, and then it follows the conversation.

    Breaks when: the tab forgets the reply as soon as another view was looked at.
    """
    for words in ("Hello.", "And again."):
        await screen.ask(words)
    await screen.page.keyboard.press("Control+Shift+E")
    await tab(screen, "This reply").click()
    await expect(panel(screen, "This reply")).to_contain_text("Message 4")
    await screen.ask("And now?")
    await expect(panel(screen, "This reply")).to_contain_text("Message 6")
    await screen.act(1, "What this reply saw")
    await expect(panel(screen, "This reply")).to_contain_text("Message 2")
    await tab(screen, "Summary").click()
    await expect(panel(screen, "Summary")).to_contain_text("There is no summary")
    await tab(screen, "This reply").click()
    await expect(panel(screen, "This reply")).to_contain_text("Message 2")


async def test_what_is_read_stays_when_the_drawer_is_read_again(
    screen: Screen, signed_in: BrowserContext
) -> None:
    """The selection, the focus, what is folded and unfolded, and how far one has scrolled.

    Breaks when: a refresh replaces what has not changed.
    """
    await compressed(screen)
    for number in range(3):
        await screen.ask(f"More, number {number}. {'Words to scroll by. ' * 20}")
    page, drawer = screen.page, drawer_of(screen)
    await page.keyboard.press("Control+Shift+E")
    await drawer.get_by_text("As it reads").click()
    await expect(drawer.locator("#seen-reading")).not_to_have_attribute("open", "")
    fold = drawer.locator("#seen-7")
    await fold.locator("summary").click()
    await fold.get_by_role("button", name="Pin").focus()
    selected = await fold.locator("pre").evaluate(SELECT)
    assert len(selected) == 16
    await drawer.evaluate("one => { one.scrollTop = 150; }")
    before = await drawer.evaluate("one => one.scrollTop")
    other = Screen(await signed_in.new_page())
    await other.page.goto(page.url)
    await other.ask("From another tab.")
    await expect(drawer).to_contain_text("From another tab.")
    assert await page.evaluate("String(getSelection())") == selected
    assert await drawer.evaluate("one => one.scrollTop") == before > 0
    await expect(fold).to_have_attribute("open", "")
    await expect(drawer.locator("#seen-reading")).not_to_have_attribute("open", "")
    await expect(fold.get_by_role("button", name="Pin")).to_be_focused()
    # What came with the new text works, and so does what was there before.
    await fold.get_by_role("button", name="Pin").press("Enter")
    await expect(fold.get_by_role("button", name="Unpin")).to_be_focused()
    await fold.get_by_role("button", name="Unpin").press("Enter")
    await expect(fold.get_by_role("button", name="Pin", exact=True)).to_be_focused()
    assert screen.complaints == []


@pytest.mark.parametrize(
    ("path", "heading", "view", "words"),
    [
        ("preview/", "Preview of the next summary", "Summary", "The summary"),
        ("context/?masked", "Masked for the model", "Next request", "The next request"),
        (
            "context/?left-out",
            "Left out when summarising fails",
            "Next request",
            "The next request",
        ),
        ("messages/1/replaced/", "Before message 1", "Next request", "The next request"),
    ],
)
async def test_a_view_below_a_tab_keeps_it_and_leads_back(
    screen: Screen, path: str, heading: str, view: str, words: str
) -> None:
    """Breaks when: no tab is marked, nothing leads back, or the focus is lost on the way."""
    await screen.ask("Hello.")
    await screen.page.keyboard.press("Control+Shift+E")
    await expect(panel(screen, "Next request")).to_be_visible()
    await screen.page.evaluate(
        """path => htmx.ajax('GET', path,
            {source: '#drawer-button', target: '#drawer-body', swap: 'innerHTML'})""",
        path,
    )
    below = panel(screen, view)
    await expect(below.get_by_role("heading", name=heading)).to_be_visible()
    await expect(screen.page.locator("[role=tab][aria-selected=true]")).to_have_count(1)
    await below.get_by_role("link", name=words).press("Enter")
    await expect(below.get_by_role("heading", name=heading)).to_have_count(0)
    await expect(below).to_be_focused()
    await expect(tab(screen, view)).to_have_attribute("aria-selected", "true")
    assert screen.complaints == []


async def test_what_has_just_come_works_at_once(screen: Screen) -> None:
    """Breaks when: for a moment a new link is only a link, and leads away from the conversation."""
    await screen.ask("Hello.")
    page, conversation = screen.page, screen.page.url
    await page.keyboard.press("Control+Shift+E")
    await expect(panel(screen, "Next request")).to_be_visible()
    await page.evaluate(
        """() => new Promise((pressed) => {
            const press = () => document.querySelector(".back a").click() ?? pressed();
            document.body.addEventListener("htmx:afterSwap", () => setTimeout(press), {once: true});
            htmx.ajax('GET', 'context/?masked',
                {source: '#drawer-button', target: '#drawer-body', swap: 'innerHTML'});
        })"""
    )
    await expect(page.get_by_role("heading", name="Masked for the model")).to_have_count(0)
    await expect(panel(screen, "Next request")).to_be_focused()
    assert page.url.split("#")[0] == conversation
    assert screen.complaints == []


async def test_words_that_are_not_saved_keep_their_view(screen: Screen) -> None:
    """Breaks when: another tab is marked, or named in the address, while the words stay in view."""
    await compressed(screen)
    page, text = screen.page, screen.page.get_by_role("textbox", name="Summary")
    await screen.button("Edit summary").click()
    await text.fill("## Context\n- Words that nobody has saved.")
    await tab(screen, "Versions").click()
    await expect(page.get_by_role("alert")).to_contain_text("Save or cancel them first")
    await expect(text).to_be_focused()
    await expect(tab(screen, "Summary")).to_have_attribute("aria-selected", "true")
    assert "#sees=versions" not in page.url


@pytest.mark.soak
async def test_the_sheet_of_a_phone_shows_every_view(screen: Screen) -> None:
    """No wider than the screen, everything as large as a finger, and nothing that axe finds.

    Breaks when: a line of the bar's legend, of a version or of a manifest cannot be broken, the
    meter is not what opens it, or the title is left no room.
    """
    await compressed(screen)
    page = screen.page
    await page.set_viewport_size({"width": 390, "height": 844})
    title = await page.get_by_role("heading", level=1).bounding_box()
    meter = await page.get_by_role("meter", name="Context used").bounding_box()
    assert title is not None
    assert meter is not None
    assert title["width"] > 120
    await page.mouse.click(meter["x"] + meter["width"] / 2, meter["y"] + meter["height"] / 2)
    for view in VIEWS:
        await tab(screen, view).click()
        await expect(panel(screen, view)).to_be_visible()
        box = await tab(screen, view).bounding_box()
        assert box is not None
        assert box["height"] >= 44
        assert box["x"] + box["width"] <= 390
        assert await drawer_of(screen).evaluate("one => one.scrollWidth - one.clientWidth") <= 0
    assert await in_both_themes(page) == []


async def test_beyond_the_threshold_the_header_warns(screen: Screen) -> None:
    """Breaks when: nothing but a colour says so, or the words of the meter do not."""
    page, meter = screen.page, screen.page.get_by_role("meter", name="Context used")
    await screen.ask("Hello.")
    await screen.button("Conversation settings").click()
    await page.get_by_role("radio", name="Only when you ask").check()
    await screen.button("Save").click()
    await expect(page.get_by_role("dialog", name="Conversation settings")).to_be_hidden()
    await screen.ask(DETAILS)
    await expect(meter.locator(".share")).to_have_text(re.compile(r"^\d+ %$"))
    await expect(meter.locator(".icon")).to_have_count(0)
    await screen.ask(f"And all of it? {await past_the_threshold(screen)}")
    await expect(meter.locator(".icon")).to_be_visible()
    await expect(meter).to_have_attribute("aria-valuetext", re.compile("beyond the threshold of"))
