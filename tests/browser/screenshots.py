"""``python -m tests.browser.screenshots``: each state, four widths, both themes, as pictures.

They are put into ``var/screenshots`` to be looked at before the screen is called done.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, expect

from tests.browser import (
    pictures,
    pictures_of_connections,
    pictures_of_lines,
    pictures_of_menus,
    pictures_of_outline,
    pictures_of_projects,
    pictures_of_reading,
    pictures_of_review,
    pictures_of_settings,
    pictures_of_tools,
    pictures_of_trust,
)
from tests.browser.screen import Screen, sign_in
from tests.browsers import launched
from tests.servers import ROOT, RunningServer, start_server
from tests.upstreams import RunningUpstream, running_upstream


async def take(browser: Browser, product: RunningServer, model: RunningUpstream) -> RunningServer:
    """All states, in the order in which a conversation comes to them; the server at the end."""
    context = await browser.new_context(
        base_url=product.base_url,
        viewport={"width": 1280, "height": 860},
        storage_state=await sign_in(product, browser),
    )
    screen = Screen(await context.new_page())
    await pictures.of_replies(screen, model)
    await pictures_of_reading.of_long_reading(screen, model)
    await pictures.of_refusals(screen, model)
    await pictures.of_a_full_window(screen, model)
    await pictures.of_a_nearly_full_conversation(screen)
    await pictures.of_compression(screen, model)
    await pictures_of_lines.of_lines(screen, model)
    await pictures.of_pages(screen)
    await pictures_of_review.of_the_review(screen)
    await pictures_of_connections.of_connections(screen, model)
    await pictures_of_menus.of_menus(screen)
    await pictures_of_menus.of_a_held_message(screen, model)
    await pictures_of_projects.of_projects(screen)
    await pictures_of_outline.of_the_outline(screen, model, product)
    await pictures_of_tools.of_tools(screen, model, product)
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder)
        await pictures_of_trust.of_hidden_characters(screen, model)
        await pictures_of_trust.of_a_learned_window(screen, model)
        await pictures_of_trust.of_people(screen, product, files)
        await pictures_of_trust.of_a_long_summary(screen, model, product)
        await pictures_of_trust.of_imports(screen, files)
        await pictures_of_settings.of_settings(screen)
        await pictures_of_settings.of_an_import(screen, files)
    product = await pictures.of_an_interruption(screen, model, product)
    await pictures.of_losses(screen, context)
    await context.close()
    context = await browser.new_context(
        base_url=product.base_url, storage_state=await sign_in(product, browser)
    )
    await pictures.of_signing_in(Screen(await context.new_page()), product)
    await context.close()
    return product


async def take_limited(browser: Browser, product: RunningServer, model: RunningUpstream) -> None:
    """What a daily limit looks like, on a server of its own."""
    context = await browser.new_context(
        base_url=product.base_url, storage_state=await sign_in(product, browser)
    )
    await pictures_of_trust.of_a_daily_limit(Screen(await context.new_page()), model)
    await context.close()


async def main() -> None:
    """Start the product and the model, and take the pictures."""
    expect.set_options(timeout=30_000)
    pictures.FOLDER.mkdir(parents=True, exist_ok=True)
    with running_upstream() as model, tempfile.TemporaryDirectory() as folder:
        given: dict[str, Any] = {
            "OPENAI_BASE_URL": model.base_url,
            "OPENAI_API_KEY": "a-key",
            "CONTEXT_WINDOW": "4096",
        }
        product = start_server(Path(folder), **given)
        (Path(folder) / "limited").mkdir()
        limited = start_server(Path(folder) / "limited", DAILY_TOKENS_PER_USER="100", **given)
        try:
            async with launched() as browser:
                await take_limited(browser, limited, model)
                product = await take(browser, product, model)
        finally:
            product.kill()
            limited.kill()
    taken = len(list(pictures.FOLDER.glob("*.png")))
    print(f"{taken} pictures in {pictures.FOLDER.relative_to(ROOT)}")


if __name__ == "__main__":
    asyncio.run(main())
