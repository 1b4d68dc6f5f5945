"""Pictures of the outline: beside the messages, as a sheet, with hits, and as a page."""

from __future__ import annotations

from playwright.async_api import expect

from tests.browser.pictures import picture, pictures_at
from tests.browser.screen import Screen, imported
from tests.browser.scripts import summary
from tests.browser.test_compression import DETAILS, RULE
from tests.servers import RunningServer
from tests.upstreams import RunningUpstream

QUESTIONS = (
    "Which paper do we print the almanac on?",
    "And the cover: cloth, or card with a cloth spine?",
    "What would 500 copies cost with each, and how long does the binder need?",
    "Send me a schedule that ends before the fair.",
    "Who proofreads the tide tables?",
)


async def of_the_outline(screen: Screen, model: RunningUpstream, product: RunningServer) -> None:
    """A conversation of some weeks, compressed and pinned."""
    page = screen.page
    model.reset()
    texts, written = [], []
    for n in range(60):
        texts += [QUESTIONS[n % len(QUESTIONS)], f"Number {n}. {DETAILS}"]
        written += [f"2026-0{2 + n // 20}-{1 + n % 20:02}T09:30:00Z"] * 2
    texts[0] = f"{RULE} {texts[0]}"
    await page.goto(imported(product, *texts, written=written))
    model.script(*[summary(RULE, seconds=0)] * 12)
    await screen.send("/compact")
    await expect(page.get_by_role("region", name="Compressed messages")).to_be_visible()
    await screen.act(-3, "Pin")
    await screen.button("Outline").click()
    await expect(page.locator("#outline .stratum").first).to_be_visible()
    await picture(screen, "outline")
    await screen.send("/find schedule fair")
    bar = page.get_by_role("search", name="Find in this conversation")
    await expect(bar.get_by_role("status")).to_contain_text("messages")

    async def step() -> None:
        await page.keyboard.press("Enter")
        await expect(bar.get_by_role("status")).to_contain_text(" of ")
        await page.wait_for_function("() => CSS.highlights.get('found-now')?.size === 1")

    await picture(screen, "outline-found", step)
    # A page remembers it, and the scenes that follow look at the messages.
    await screen.button("Outline").click()
    await expect(page.locator("#outline")).to_be_hidden()
    await pictures_at(screen, outline_page=f"{page.url.partition('?')[0]}outline/")
