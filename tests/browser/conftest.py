"""One running product for each module, and a signed-in page for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from playwright.async_api import Browser, BrowserContext, Page, expect

from tests.browser.screen import Screen, sign_in
from tests.servers import RunningServer, start_server

# A shared computer is slow now and then; the demo model writes for about four seconds.
expect.set_options(timeout=20_000)


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """The product with the demo model, for all tests of a module."""
    server = start_server(tmp_path_factory.mktemp("product"))
    yield server
    server.kill()


@pytest.fixture
async def signed_in(product: RunningServer, browser: Browser) -> AsyncIterator[BrowserContext]:
    """A desktop browser in which the owner is signed in."""
    context = await browser.new_context(
        base_url=product.base_url,
        viewport={"width": 1280, "height": 860},
        storage_state=await sign_in(product, browser),
    )
    yield context
    await context.close()


@pytest.fixture
async def screen(signed_in: BrowserContext) -> Screen:
    """A new conversation that has not begun."""
    page: Page = await signed_in.new_page()
    screen = Screen(page)
    await page.goto("/?new")
    return screen
