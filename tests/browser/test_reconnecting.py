"""A page that is reloaded, cut off and opened again while a reply is written."""

from __future__ import annotations

import asyncio
import re
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, expect

from chatapp.deployment import many
from chatapp.deployment.nginx import site
from tests.browser.screen import Screen, sign_in
from tests.browser.scripts import MARKDOWN
from tests.chatapp.test_durability import answers
from tests.faults.proxy import Proxy
from tests.faults.world import until
from tests.ports import free_port
from tests.servers import RunningServer, start_server
from tests.services import ensure_nginx
from tests.upstreams import RunningUpstream

pytestmark = pytest.mark.browser

# Seconds in which two pages come to show the same; a busy computer is slow.
PATIENCE = 30
# Seconds between the lines of the reply, in which two pages can be compared.
PAUSE = 1.0
# The feed but for the seconds that a page counts by itself.
SHOWN = """() => {
  const feed = document.querySelector("#feed").cloneNode(true);
  for (const clock of feed.querySelectorAll("[data-since]")) clock.textContent = "";
  return feed.innerHTML;
}"""


@pytest_asyncio.fixture(loop_scope="session")
async def line() -> AsyncIterator[Proxy]:
    """The line between the browser and the server; its target comes with ``context``."""
    async with Proxy(f"127.0.0.1:{free_port()}", port=free_port()) as proxy:
        yield proxy


@pytest_asyncio.fixture(loop_scope="session")
async def context(
    line: Proxy, browser: Browser, model: RunningUpstream, tmp_path: Path
) -> AsyncIterator[BrowserContext]:
    """A signed-in browser at the other end of the line."""
    origin = f"http://{line.address}"
    port = line.target_port
    server = start_server(
        tmp_path,
        port=port,
        OPENAI_BASE_URL=model.base_url,
        ALLOWED_ORIGINS=f"http://127.0.0.1:{port},{origin}",
    )
    context = await browser.new_context(
        base_url=origin, storage_state=await sign_in(server, browser)
    )
    yield context
    await context.close()
    server.kill()


async def equals_a_fresh_load(page: Page) -> None:
    """The page comes to show what one shows that is opened now."""
    fresh = await page.context.new_page()
    await fresh.goto(page.url)
    shown = there = ""
    try:
        async with asyncio.timeout(PATIENCE):
            while not shown or shown != there:
                shown, there = await page.evaluate(SHOWN), await fresh.evaluate(SHOWN)
    except TimeoutError:
        assert shown == there
    await fresh.close()


@pytest.mark.soak
async def test_i4_reloaded_cut_off_and_in_three_tabs(
    line: Proxy, context: BrowserContext, model: RunningUpstream
) -> None:
    """Ten reloads in the middle of a reply, a lost connection, two more tabs: each time the page is
    what a fresh one is.

    Breaks when: what came while nobody looked is rendered with the next update, or a page that is
    loaded gives a table a ``tabindex`` while the reply is written (``feed.js``).
    """
    lines = [f"{text}\n" for text in (MARKDOWN + "\n\n").splitlines()] * 12
    steps = [step for text in lines for step in ({"text": text}, {"delay": PAUSE})]
    model.script({"steps": [*steps, {"finish": "stop"}, {"done": None}]})
    screen = Screen(await context.new_page())
    await screen.page.goto("/?new")
    await screen.send("Show me lists, tables and code.")
    await expect(screen.articles.nth(1)).to_contain_text("A list:")
    writing = screen.feed.locator("[aria-busy]")
    for _ in range(10):
        await screen.page.reload()
        await expect(writing).to_have_count(1)
        await equals_a_fresh_load(screen.page)
    line.refusing = True
    line.cut()
    banner = screen.page.get_by_text("No connection.")
    await expect(banner).to_be_visible()
    line.refusing = False
    await expect(banner).to_be_hidden()
    await equals_a_fresh_load(screen.page)
    tabs = [screen]
    for _ in range(2):
        tabs.append(Screen(await context.new_page()))
        await tabs[-1].page.goto(screen.page.url)
        for tab in tabs:
            await equals_a_fresh_load(tab.page)
    await expect(writing).to_have_count(1)
    await tabs[-1].button("Stop").click()
    for tab in tabs:
        await expect(tab.articles.nth(1)).to_contain_text(re.compile(r"Stopped( after|\.)"))
        await expect(tab.feed.locator("[aria-busy]")).to_have_count(0)
        await equals_a_fresh_load(tab.page)
        assert tab.complaints == []


async def test_d08_pages_do_not_come_back_all_at_once(screen: Screen) -> None:
    """However often it has failed, a page waits for a time of its own, and never long.

    Breaks when: the delay in ``socket.js`` has no random part, or no limit.
    """
    await screen.ask("Hello.")
    for failures, least, most in ((0, 100, 250), (3, 900, 2000), (60, 3900, 8000)):
        waits = await screen.page.evaluate(
            "tries => Array.from({length: 50}, () => htmx.config.wsReconnectDelay(tries))", failures
        )
        assert least < min(waits) < max(waits) <= most
        assert len(set(waits)) > 40


# Behind a real proxy

# Seconds that it waits for a word of the process. The pings come three times as often, as the
# product's 20 s do behind a proxy of 60 s.
PROXY_WAITS = 3


@contextmanager
def nginx(listen: str, server: RunningServer) -> Iterator[None]:
    """The site for nginx, with less patience."""
    written = site([server.base_url.removeprefix("http://")], name="127.0.0.1", listen=listen)
    hasty, changed = re.subn(r"(?<=proxy_read_timeout )\d+(?=s;)", str(PROXY_WAITS), written)
    assert changed == 1
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # Its workers give up root's rights.
        folder.chmod(0o755)
        (folder / "site.conf").write_text(hasty)
        (folder / "nginx.conf").write_text(many._MAIN.format(folder=folder))
        command = [ensure_nginx(), "-p", name, "-c", str(folder / "nginx.conf"), "-e", "stderr"]
        process = subprocess.Popen(command)
        try:
            yield
        finally:
            process.terminate()
            process.wait()


@asynccontextmanager
async def through_nginx(
    browser: Browser, model: RunningUpstream, folder: Path, *, lifetime: float = 3600.0
) -> AsyncIterator[Screen]:
    """A signed-in page behind it; ``lifetime``: seconds of a socket, at most."""
    port, listen = free_port(), f"127.0.0.1:{free_port()}"
    with ExitStack() as stack:
        server = start_server(
            folder,
            port=port,
            DJANGO_SETTINGS_MODULE="tests.faults.settings",
            OPENAI_BASE_URL=model.base_url,
            ALLOWED_ORIGINS=f"http://127.0.0.1:{port},http://{listen}",
            TESTS_LIFETIME=str(lifetime),
        )
        stack.callback(server.kill)
        stack.enter_context(nginx(listen, server))
        await until(lambda: answers(f"http://{listen}/healthz"))
        state = await sign_in(server, browser)
        context = await browser.new_context(base_url=f"http://{listen}", storage_state=state)
        yield Screen(await context.new_page())
        await context.close()


@pytest.mark.soak
@pytest.mark.timeout(240)
async def test_w09_an_idle_page_keeps_its_socket(
    browser: Browser, model: RunningUpstream, tmp_path: Path
) -> None:
    """For thirty times as long as the proxy waits, as half an hour is for one that waits a minute.

    Breaks when: PING_INTERVAL is not given to Daphne.
    """
    async with through_nginx(browser, model, tmp_path) as screen:
        await screen.page.goto("/?new")
        await screen.ask("Hello.")
        opened: list[str] = []
        screen.page.on("websocket", lambda socket: opened.append(socket.url))
        await screen.page.reload()
        await asyncio.sleep(30 * PROXY_WAITS)
        another = Screen(await screen.page.context.new_page())
        await another.page.goto(screen.page.url)
        await another.ask("Are you still there?")
        await expect(screen.articles).to_have_count(4)
        assert len(opened) == 1


@pytest.mark.soak
async def test_w09_after_our_own_limit_the_page_comes_back(
    browser: Browser, model: RunningUpstream, tmp_path: Path
) -> None:
    """Each socket is ended after a second instead of 23 hours: the next one begins where it was,
    and of the reply that is written meanwhile nothing is missing.

    Breaks when: the server ends a socket with 1000, or ``socket.js`` opens each one with the
    address that it had at load.
    """
    text = "".join(f"word{number} " for number in range(150))
    model.script({"text": text, "seconds_a_word": 0.04})
    opened: list[str] = []
    codes: list[int] = []
    async with through_nginx(browser, model, tmp_path, lifetime=1.5) as screen:
        await screen.page.goto("/?new")
        await screen.send("Hello.")
        await expect(screen.articles.nth(1)).to_contain_text("word1 ")
        screen.page.on("websocket", lambda socket: opened.append(socket.url))
        await screen.page.expose_function("ended", lambda code: codes.append(code))
        noting = "document.body.addEventListener('htmx:wsClose', e => ended(e.detail.event.code))"
        await screen.page.evaluate(noting)
        await expect(screen.feed.locator("[aria-busy]")).to_have_count(0)
        await expect(screen.articles.nth(1)).to_contain_text(text.strip())
        await equals_a_fresh_load(screen.page)
    assert set(codes) == {1012}
    assert len(opened) >= 3
    numbers = [int(parse_qs(urlsplit(url).query)["after"][0]) for url in opened]
    assert numbers == sorted(numbers)
    assert numbers[0] > 0
