"""``python -m tests.browser.readme_picture``: takes the picture that README shows."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from playwright.async_api import Browser, expect

from tests.browser.screen import Screen, imported, sign_in
from tests.browser.small_png import paletted, pixels
from tests.browsers import launched
from tests.servers import ROOT, RunningServer, start_server
from tests.upstreams import RunningUpstream, running_upstream

PICTURE = ROOT / "docs" / "picture.png"
WIDTH, HEIGHT = 1280, 900
# Pixels of the older messages, which the summary stands for.
ABOVE = 80
_TO_THE_TOP = """(line, above) => {
  line.scrollIntoView({block: 'start'});
  let feed = line.parentElement;
  while (feed.scrollHeight <= feed.clientHeight || getComputedStyle(feed).overflowY === 'visible')
    feed = feed.parentElement;
  feed.scrollTop -= above;
}"""
MODEL, WINDOW = "local-model", 4096
# The conversation ``talk``, the ``summary`` that its model writes, and what ``others`` talk about.
TEXTS = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))


@asynccontextmanager
async def arranged(browser: Browser, folder: Path) -> AsyncIterator[Screen]:
    """A page as README shows it, of a product of its own: part of a long conversation is
    summarised, the talk goes on, and the summary is open beside it.
    """
    with running_upstream(**{MODEL: WINDOW}) as model:
        server = start_server(folder, OPENAI_BASE_URL=model.base_url, OPENAI_API_KEY="a-key")
        try:
            context = await browser.new_context(
                base_url=server.base_url,
                viewport={"width": WIDTH, "height": HEIGHT},
                color_scheme="light",
                reduced_motion="reduce",
                storage_state=await sign_in(server, browser),
            )
            screen = Screen(await context.new_page())
            await _talk(screen, server, model)
            yield screen
            await context.close()
        finally:
            server.kill()


async def _talk(screen: Screen, server: RunningServer, model: RunningUpstream) -> None:
    for texts in TEXTS["others"]:
        await asyncio.to_thread(imported, server, *texts)
    await screen.page.goto(await asyncio.to_thread(imported, server, *TEXTS["talk"]))
    model.script({"for": "summaries", "text": json.dumps(TEXTS["summary"])})
    await screen.button("Compact").click()
    divider = screen.page.get_by_role("region", name="Compressed messages")
    await expect(divider).to_be_visible()
    # Without the line that says what has just happened.
    await screen.page.reload()
    await screen.button("View summary").click()
    await expect(screen.page.locator("#drawer-body .prose")).to_be_visible()
    await divider.evaluate(_TO_THE_TOP, ABOVE)
    await screen.page.mouse.move(0, HEIGHT / 2)


async def take(screen: Screen, path: Path) -> None:
    """Write what the page shows now."""
    taken = await screen.page.screenshot(animations="disabled", caret="hide")
    empty = await screen.page.context.new_page()
    await asyncio.to_thread(path.write_bytes, paletted(await pixels(empty, taken)))
    await empty.close()


async def main() -> None:
    """Take it anew."""
    expect.set_options(timeout=30_000)
    with tempfile.TemporaryDirectory() as folder:
        async with launched() as browser, arranged(browser, Path(folder)) as screen:
            await take(screen, PICTURE)
    print(f"{PICTURE.relative_to(ROOT)}: {PICTURE.stat().st_size:,} bytes")


if __name__ == "__main__":
    asyncio.run(main())
