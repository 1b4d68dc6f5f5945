"""The page in a browser: its share of a core while text streams, key to paint, loads.

The browser's own account is read (``Performance.getMetrics``, navigation and resource timing), so
nothing is added to the page but the probe of the key. Controls of the same run: a page of three
lines that appends the same text, a page that is one bare text box, and a short conversation. What
the browser needs for itself without a screen or a graphics card is in the controls as well.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import tempfile
from pathlib import Path
from typing import Any

from playwright.async_api import CDPSession, Page, expect

from tests.browser.screen import Screen, sign_in
from tests.browsers import launched
from tests.fake_scripts import words
from tests.servers import RunningServer, manage, start_server
from tests.upstreams import running_upstream

TOKENS, RATE = 2000, 100
WORDS = ["The", "quick", "brown", "fox", "jumps", "over", "the", "lazy", "dog", "and", "runs", "on"]
STORED = (10, 1000, 5000)
KEYS = 60
KEY_PAUSE = 60  # milliseconds between two keys: faster than anyone types, slower than a frame
OPENED = (30, 10_000)
OPENINGS = 15
MAIN_THREAD = 0.15  # of a core
KEY_TO_PAINT = 50.0  # milliseconds, p95
OPENING = 1.3  # times as long as the short conversation
TRANSFER = 100_000  # bytes of JavaScript and CSS, compressed as they are served
OURS = 25_000  # of them our own JavaScript
_MARKDOWN = (
    "\n\n## What it is about\n\n"
    + "A sentence with **strong words**, `code` and a [link](https://example.org) in it. " * 4
    + "\n\n- one thing and another\n- a second thing\n\n```python\n"
    + "def total(values: list[int]) -> int:\n    return sum(values)  # all of them\n\n\n" * 6
    + "```\n\n| name | count | share |\n|---|---:|---:|\n"
    + "| the first of them | 1,234 | 56 % |\n" * 5
    + "\nAnd so on. "
)
# Time from the key to the frame after the one that shows it.
_PROBE = """() => {
    window.times = [];
    document.querySelector("textarea").addEventListener("keydown", (event) => {
        const began = event.timeStamp;
        requestAnimationFrame(() => setTimeout(() => window.times.push(performance.now() - began)));
    }, {capture: true});
}"""
_PLAIN = """([words, tokens, rate]) => new Promise((done) => {
    document.body.innerHTML = "<pre id=out></pre>";
    const out = document.getElementById("out");
    let sent = 0;
    const timer = setInterval(() => {
        for (let n = 0; n < rate / 20; n += 1, sent += 1) {
            out.append(" " + words[sent % words.length]);
        }
        if (sent >= tokens) { clearInterval(timer); done(); }
    }, 50);
})"""
_BARE = """() => { document.body.innerHTML = "<textarea></textarea>"; }"""
# From the request to the whole answer, and to the page as it is used: scripts run, text in place.
_OPENED = """() => {
    const [{requestStart, responseEnd, startTime, loadEventEnd}] =
        performance.getEntriesByType("navigation");
    return [responseEnd - requestStart, loadEventEnd - startTime];
}"""
# Not the browser's transferSize: that is this and 300 bytes for headers that it has not counted.
_LOADED = """() => performance.getEntriesByType("resource").map(
    (one) => [one.name, one.encodedBodySize])"""


def reply() -> dict[str, Any]:
    """2,000 words in paragraphs, a hundred a second."""
    text = ""
    for number in range(TOKENS):
        text += " " + WORDS[number % len(WORDS)]
        if number % 60 == 59:
            text += ".\n\n"
    return {"text": text.strip(), "seconds_a_word": 1 / RATE}


def marked_up() -> dict[str, Any]:
    """As many words as headings, lists, tables and code, at the same pace."""
    text = "".join(words(_MARKDOWN * 20)[:TOKENS])
    return {"text": text, "seconds_a_word": 1 / RATE}


async def first_load(page: Page) -> tuple[int, int, int]:
    """The requests of the page that was just opened, its bytes of code, and of our JavaScript."""
    loaded = await page.evaluate(_LOADED)
    code = [(name, size) for name, size in loaded if name.split("?")[0].endswith((".js", ".css"))]
    ours = sum(size for name, size in code if "/js/" in name)
    return len(loaded) + 1, sum(size for _, size in code), ours


async def account(page: Page) -> CDPSession:
    """The browser's account of a page, in time of its own on a core: others' load is not in it."""
    session = await page.context.new_cdp_session(page)
    await session.send("Performance.enable", {"timeDomain": "threadTicks"})
    return session


async def busy(session: CDPSession) -> float:
    """Seconds that the page's main thread has worked so far."""
    metrics = (await session.send("Performance.getMetrics"))["metrics"]
    return float(next(one["value"] for one in metrics if one["name"] == "TaskDuration"))


async def streaming(page: Page) -> float:
    """Seconds of the main thread while one reply streams in."""
    session = await account(page)
    screen = Screen(page)
    await screen.send("Go.")
    await expect(screen.feed.locator("[aria-busy]")).to_have_count(1)
    before = await busy(session)
    await expect(screen.feed.locator("[aria-busy]")).to_have_count(0, timeout=120_000)
    return await busy(session) - before


async def plain(page: Page) -> float:
    """The same for a page that appends plain text."""
    session = await account(page)
    await page.goto("about:blank")
    before = await busy(session)
    await page.evaluate(_PLAIN, [WORDS, TOKENS, RATE])
    return await busy(session) - before


async def key_to_paint(page: Page) -> list[float]:
    """p50 and p95 of the time from a key to what it shows in the page's text box, milliseconds."""
    await page.evaluate(_PROBE)
    await page.locator("textarea").first.focus()
    await page.keyboard.type(("abcdefghij" * KEYS)[:KEYS], delay=KEY_PAUSE)
    await page.wait_for_timeout(200)
    times = await page.evaluate("window.times")
    return [statistics.median(times), statistics.quantiles(times, n=20)[-1]]


async def typing(page: Page, bare: Page, paths: dict[int, str]) -> float:
    """Print the figures of the keys; the greatest p95."""
    await bare.goto("about:blank")
    await bare.evaluate(_BARE)
    worst = 0.0
    for count, path in paths.items():
        await page.goto(path)
        await page.bring_to_front()
        median, most = await key_to_paint(page)
        print(f"key to paint, {count:,} messages stored: median {median:.1f}, p95 {most:.1f} ms"
              f" ({KEY_TO_PAINT:.0f} at most)")  # fmt: skip
        worst = max(worst, most)
    await bare.bring_to_front()
    median, most = await key_to_paint(bare)
    print(f"key to paint, a bare text box: median {median:.1f}, p95 {most:.1f} ms")
    await page.bring_to_front()
    return worst


async def opening(page: Page, paths: dict[int, str]) -> float:
    """Print the figures of opening; how many times as long the long conversation takes."""
    times: dict[int, list[list[float]]] = {count: [] for count in paths}
    for _ in range(OPENINGS):
        # In turn, so that whatever disturbs the machine disturbs both.
        for count, path in paths.items():
            await page.goto(path)
            times[count].append(await page.evaluate(_OPENED))
    answered, shown = (
        {count: statistics.median(one[part] for one in times[count]) for count in paths}
        for part in range(2)
    )
    for count in paths:
        print(f"opening {count:,} messages: the server's answer {answered[count]:.1f} ms,"
              f" shown after {shown[count]:.1f} ms")  # fmt: skip
    short, long = OPENED
    ratio = max(part[long] / part[short] for part in (answered, shown))
    print(f"ratio {ratio:.2f} ({OPENING} at most)")
    return ratio


def stored(product: RunningServer, count: int, folder: Path) -> str:
    """The path of a conversation of so many imported messages."""
    file = folder / f"{count}.json"
    roles = ("user", "assistant")
    file.write_text(
        json.dumps([{"role": roles[n % 2], "content": f"Message {n}."} for n in range(count)])
    )
    printed = manage(product, "import_messages", str(file), "--owner", "owner")
    return next(word for word in printed.split() if word.startswith("/c/")).rstrip(".")


async def reading(page: Page, bare: Page, path: str, model: Any) -> float:
    """Print what streaming costs the main thread; the greatest share of a core."""
    control = await plain(bare)
    await page.bring_to_front()
    worst = 0.0
    for name, script in (("paragraphs", reply()), ("code and tables", marked_up())):
        await page.goto(path)
        model.script(script)
        took = await streaming(page)
        share = took / (TOKENS / RATE)
        print(f"{TOKENS:,} tokens at {RATE}/s, {name}: main thread {took:.2f} s,"
              f" {share:.0%} of a core ({MAIN_THREAD:.0%} at most)")  # fmt: skip
        worst = max(worst, share)
    print(f"appending {TOKENS:,} plain words at {RATE}/s: {control:.2f} s")
    return worst


async def measure(product: RunningServer, model: Any, folder: Path) -> bool:
    """Print the figures; whether all are within the budgets."""
    paths = {
        count: await asyncio.to_thread(stored, product, count, folder)
        for count in {*STORED, *OPENED}
    }
    async with launched() as browser:
        context = await browser.new_context(
            base_url=product.base_url, storage_state=await sign_in(product, browser)
        )
        page = await context.new_page()
        await page.goto(paths[STORED[0]])
        requests, transferred, ours = await first_load(page)
        print(f"first load: {requests} requests, JavaScript and CSS {transferred:,} bytes"
              f" ({TRANSFER:,} at most), our own {ours:,} ({OURS:,} at most)")  # fmt: skip
        ratio = await opening(page, {count: paths[count] for count in OPENED})
        bare = await browser.new_page()
        paint = await typing(page, bare, {count: paths[count] for count in STORED})
        share = await reading(page, bare, paths[STORED[0]], model)
        await context.close()
    within = share <= MAIN_THREAD and transferred <= TRANSFER and ours <= OURS
    return within and paint <= KEY_TO_PAINT and ratio <= OPENING


def main() -> int:
    """0 when all figures are within the budgets."""
    with running_upstream() as model, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        product = start_server(folder, OPENAI_BASE_URL=model.base_url, OPENAI_API_KEY="a-key")
        try:
            return 0 if asyncio.run(measure(product, model, folder)) else 1
        finally:
            product.kill()
