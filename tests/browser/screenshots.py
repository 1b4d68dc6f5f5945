"""``python -m tests.browser.screenshots``: each state, three widths, both themes, as pictures.

They are put into ``var/screenshots`` to be looked at before the screen is called done.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Literal

from playwright.async_api import Browser, expect

from tests.browser.screen import Screen, sign_in
from tests.browser.scripts import MARKDOWN, summary, unending
from tests.browser.test_compression import RULE, fill
from tests.browsers import launched
from tests.servers import ROOT, RunningServer, start_server
from tests.upstreams import RunningUpstream, running_upstream

FOLDER = ROOT / "var" / "screenshots"
WIDTHS = {1280: 860, 768: 1024, 390: 844}
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")


async def picture(screen: Screen, name: str) -> None:
    """The page as it is now, in each width and theme."""
    for width, height in WIDTHS.items():
        await screen.page.set_viewport_size({"width": width, "height": height})
        for theme in THEMES:
            await screen.page.emulate_media(color_scheme=theme, reduced_motion="reduce")
            await screen.page.screenshot(path=FOLDER / f"{name}-{width}-{theme}.png")
    await screen.page.set_viewport_size({"width": 1280, "height": 860})


async def of_replies(screen: Screen, model: RunningUpstream) -> None:
    """From the empty page to an error."""
    page = screen.page
    await page.goto("/?new")
    await picture(screen, "empty")
    model.script({"text": MARKDOWN, "reasoning": "A list and a table, then."})
    await screen.ask("Show me a list, a table and some code.")
    await picture(screen, "answered")
    model.script(unending("The beginning of an answer that is still being written"))
    await screen.send("And now a long one.")
    await expect(screen.articles.last).to_contain_text("beginning")
    await screen.box.fill("/")
    await picture(screen, "streaming-and-commands")
    await screen.send("This one waits.")
    await expect(page.get_by_text("Will be sent when")).to_be_visible()
    await picture(screen, "queued")
    await screen.button("Remove").click()
    await screen.button("Stop").click()
    await expect(screen.articles.last).to_contain_text("Stopped")
    await picture(screen, "stopped")
    model.script(*[{"status": 429, "message": "Slow down.", "headers": {"Retry-After": "90"}}] * 4)
    await screen.send("And now?")
    await expect(page.get_by_text("Try again in")).to_be_visible()
    await picture(screen, "error")
    await page.get_by_role("button", name="More about this message").last.click()
    await picture(screen, "message-menu")
    await page.keyboard.press("Escape")


async def of_compression(screen: Screen, model: RunningUpstream) -> None:
    """From a long conversation to its summary and what stands around it."""
    page = screen.page
    model.reset()
    await page.goto("/?new")
    await fill(screen, 3)
    model.script(summary(RULE, seconds=8))
    await screen.button("Compact").click()
    await expect(page.get_by_role("progressbar")).to_be_visible()
    await picture(screen, "compressing")
    await expect(page.get_by_role("region", name="Compressed messages")).to_be_visible()
    await picture(screen, "compressed")
    await screen.button("View summary").click()
    await expect(page.get_by_role("heading", name="Versions")).to_be_visible()
    await picture(screen, "drawer-summary")
    await page.keyboard.press("Escape")
    await screen.button("Conversation settings").click()
    await picture(screen, "settings")
    await page.keyboard.press("Escape")
    await screen.send("far too long " * 2000)
    await expect(page.get_by_role("alert")).to_be_visible()
    await picture(screen, "too-large")
    for name, path in (("search", "/search/?q=project"), ("person", "/settings/")):
        await page.goto(path)
        await picture(screen, name)


async def take(browser: Browser, product: RunningServer, model: RunningUpstream) -> None:
    """All states, in the order in which a conversation comes to them."""
    context = await browser.new_context(
        base_url=product.base_url,
        viewport={"width": 1280, "height": 860},
        storage_state=await sign_in(product, browser),
    )
    screen = Screen(await context.new_page())
    await of_replies(screen, model)
    await of_compression(screen, model)
    await context.close()


async def main() -> None:
    """Start the product and the model, and take the pictures."""
    expect.set_options(timeout=30_000)
    FOLDER.mkdir(parents=True, exist_ok=True)
    with running_upstream() as model, tempfile.TemporaryDirectory() as folder:
        product = start_server(
            Path(folder),
            OPENAI_BASE_URL=model.base_url,
            OPENAI_API_KEY="a-key",
            CONTEXT_WINDOW="4096",
        )
        try:
            async with launched() as browser:
                await take(browser, product, model)
        finally:
            product.kill()
    print(f"{len(list(FOLDER.glob('*.png')))} pictures in {FOLDER.relative_to(ROOT)}")


if __name__ == "__main__":
    asyncio.run(main())
