"""One running product with a scripted model server, and a signed-in page for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, expect

from tests import browsers
from tests.browser.screen import Screen, forget_conversations, sign_in
from tests.servers import RunningServer, start_server
from tests.upstreams import RunningUpstream, running_upstream

# A shared computer is slow now and then.
expect.set_options(timeout=20_000)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of this folder share one loop, and so one browser: starting it takes a second."""
    folder = Path(__file__).parent
    for item in items:
        if folder in item.path.parents:
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser(chromium: str) -> AsyncIterator[Browser]:
    """A headless Chromium; each test has a profile of its own in it."""
    async with browsers.launched() as launched:
        yield launched


@pytest.fixture(scope="session")
def model_server() -> Iterator[RunningUpstream]:
    """The fake model server: it answers at once, and as it is told."""
    with running_upstream() as upstream:
        yield upstream


@pytest.fixture(scope="session")
def product(
    tmp_path_factory: pytest.TempPathFactory, model_server: RunningUpstream
) -> Iterator[RunningServer]:
    """The product with that model, whose window is small, for all tests of a run."""
    server = start_server(
        tmp_path_factory.mktemp("product"),
        OPENAI_BASE_URL=model_server.base_url,
        OPENAI_API_KEY="a-key",
        CONTEXT_WINDOW="4096",
    )
    yield server
    server.kill()


@pytest.fixture
def model(model_server: RunningUpstream) -> RunningUpstream:
    """The model server without the scripts and requests of the test before."""
    model_server.reset()
    return model_server


@pytest_asyncio.fixture(loop_scope="session")
async def signed_in(
    product: RunningServer, browser: Browser, model: RunningUpstream
) -> AsyncIterator[BrowserContext]:
    """A desktop browser in which the owner is signed in, who wants less motion: it takes time."""
    context = await browser.new_context(
        base_url=product.base_url,
        reduced_motion="reduce",
        viewport={"width": 1280, "height": 860},
        storage_state=await sign_in(product, browser),
    )
    yield context
    for page in context.pages:
        # A handler that is still at work must not fail the test that comes next.
        await page.unroute_all(behavior="ignoreErrors")
    await context.close()
    # A summary that is still to be prepared would take what the next test has the model say.
    forget_conversations(product)
    assert model.left_alone()


@pytest_asyncio.fixture(loop_scope="session")
async def screen(signed_in: BrowserContext) -> Screen:
    """A new conversation that has not begun."""
    page: Page = await signed_in.new_page()
    screen = Screen(page)
    await page.goto("/?new")
    return screen
