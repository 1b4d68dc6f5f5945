"""What keeps people out: axe-core on every page in both themes, and the job by keyboard alone."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Literal

import pytest
from playwright.async_api import Browser, Page, expect

from tests.browser.screen import Screen
from tests.browser.scripts import MARKDOWN, pausing
from tests.servers import RunningServer
from tests.upstreams import RunningUpstream

pytestmark = pytest.mark.browser

_FILES = files("axe_playwright_python")
AXE = _FILES.joinpath("axe.min.js").read_text(encoding="utf-8")
Theme = Literal["light", "dark"]
THEMES: tuple[Theme, ...] = ("light", "dark")
# Pages without a conversation; those of one are looked at as the job goes on.
PAGES = ("/?new", "/?archived", "/search/", "/settings/", "/no-such-page")
OF_A_CONVERSATION = ("", "context/", "context/?left-out", "summaries/", "activity/")
RULE = "Always answer in British English."
DETAILS = " ".join(f"Project number {n} costs {n * 13} euros and ends in May." for n in range(20))


async def findings(page: Page) -> list[str]:
    """What axe-core finds on the page as it is now: rule, and where."""
    # Evaluated by the debugger: the page's policy allows no script of ours.
    await page.evaluate(AXE)
    found = await page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{one['id']}: {node['target']} {node.get('failureSummary', '')}"
        for one in found["violations"]
        for node in one["nodes"]
    ]


async def in_both_themes(page: Page) -> list[str]:
    """The findings in light and in dark."""
    found: list[str] = []
    for theme in THEMES:
        await page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        found += [f"{theme} {page.url} {one}" for one in await findings(page)]
    return found


async def test_axe_finds_nothing_on_pages_without_a_conversation(
    screen: Screen, browser: Browser, product: RunningServer
) -> None:
    found: list[str] = []
    for path in PAGES:
        await screen.page.goto(path)
        found += await in_both_themes(screen.page)
    stranger = await browser.new_page(base_url=product.base_url)
    await stranger.goto("/accounts/login/")
    found += await in_both_themes(stranger)
    assert found == []


async def test_axe_finds_nothing_in_a_conversation(screen: Screen, model: RunningUpstream) -> None:
    page, found = screen.page, list[str]()
    model.script({"text": MARKDOWN, "reasoning": "Let me think."})
    await screen.ask(f"{RULE} {DETAILS}")
    found += await in_both_themes(page)
    for number in range(2):
        await screen.ask(f"Question {number}. {DETAILS}")
    await screen.button("Compact").click()
    await expect(page.get_by_role("region", name="Compressed messages")).to_be_visible()
    await screen.button("View summary").click()
    await expect(page.get_by_role("heading", name="Versions")).to_be_visible()
    found += await in_both_themes(page)
    await page.get_by_role("button", name="More about this message").last.click()
    await expect(page.get_by_role("group", name="Message", exact=True)).to_be_visible()
    found += await in_both_themes(page)
    await page.keyboard.press("Escape")
    for opened in ("Conversation settings", "What the model sees"):
        await page.get_by_role("button", name=opened).click()
        found += await in_both_themes(page)
        await page.keyboard.press("Escape")
    await page.keyboard.press("Control+/")
    found += await in_both_themes(page)
    await page.keyboard.press("Escape")
    model.script({"status": 429, "message": "Slow down", "headers": {"Retry-After": "30"}})
    await screen.send("And now?")
    await expect(page.get_by_role("alert").first).to_be_visible()
    found += await in_both_themes(page)
    home = page.url
    for path in OF_A_CONVERSATION:
        await page.goto(f"{home}{path}")
        found += await in_both_themes(page)
    assert found == []


async def test_the_whole_job_can_be_done_by_keyboard(
    screen: Screen, model: RunningUpstream
) -> None:
    page, keyboard = screen.page, screen.page.keyboard
    await keyboard.press("Shift+Escape")
    await expect(screen.box).to_be_focused()
    await keyboard.type(f"{RULE} {DETAILS}")
    await keyboard.press("Enter")
    await expect(page).to_have_url(re.compile("/c/"))
    for number in range(1, 3):
        await expect(screen.articles).to_have_count(2 * number)
        await expect(screen.button("Stop")).to_be_hidden()
        await keyboard.press("Shift+Escape")
        await keyboard.type(f"Question {number}. {DETAILS}")
        await keyboard.press("Enter")
    await expect(screen.articles).to_have_count(6)
    await expect(screen.button("Stop")).to_be_hidden()
    await keyboard.type("/comp")
    await keyboard.press("Tab")
    await keyboard.type("prices")
    await keyboard.press("Enter")
    divider = page.get_by_role("region", name="Compressed messages")
    await expect(divider).to_be_visible()
    await divider.get_by_role("button", name="Edit summary").focus()
    await keyboard.press("Enter")
    text = page.get_by_role("textbox", name="Summary")
    await expect(text).to_be_focused()
    await keyboard.press("Control+Home")
    await keyboard.press("Tab")
    await expect(screen.button("Save summary")).to_be_focused()
    # Esc leaves the drawer, and the focus is where it came from.
    await keyboard.press("Escape")
    await expect(page.get_by_role("complementary", name="What the model sees")).to_be_hidden()
    await expect(divider.get_by_role("button", name="Edit summary")).to_be_focused()
    await divider.get_by_role("button", name="Undo compression").focus()
    await keyboard.press("Enter")
    await expect(divider).to_contain_text("The summary was taken away")
    await keyboard.press("Alt+ArrowUp")
    await expect(screen.articles.last).to_be_focused()
    for _ in range(3):
        await keyboard.press("Tab")
    await expect(screen.articles.last.get_by_role("button").last).to_be_focused()
    await keyboard.press("Enter")
    await expect(page.get_by_role("button", name="Pin", exact=True)).to_be_focused()
    await keyboard.press("Enter")
    await expect(screen.articles.last.get_by_text("Pinned")).to_be_visible()


async def test_a_screen_reader_hears_the_boundaries_and_nothing_between(
    screen: Screen, model: RunningUpstream
) -> None:
    await screen.ask(f"{RULE} {DETAILS}")
    await screen.page.evaluate(
        """() => {
            window.heard = [];
            const region = document.querySelector("#spoken");
            new MutationObserver(() => {
                const said = region.textContent;
                if (said && said !== window.heard.at(-1)) window.heard.push(said);
            }).observe(region, {childList: true, characterData: true, subtree: true});
        }"""
    )
    model.script(pausing(*["and so on "] * 40, seconds=0.02))
    await screen.ask(f"Question 1. {DETAILS}")
    await screen.ask(f"Question 2. {DETAILS}")
    await screen.button("Compact").click()
    await expect(screen.status).to_have_text("Conversation compressed")
    heard = await screen.page.evaluate("window.heard")
    assert heard == [
        *["Answering", "Answer complete"] * 2,
        "Compressing conversation",
        "Conversation compressed",
    ]
