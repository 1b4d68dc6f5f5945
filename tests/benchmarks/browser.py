"""The page in a browser: its share of a core while text streams, key to paint, the first load.

The browser's own account is read (``Performance.getMetrics``, paint timing, resource timing), so
nothing is added to the page but the probe of the key. Controls: a page of three lines that appends
the same text, and the conversation of ten messages.
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
from tests.servers import RunningServer, manage, start_server
from tests.upstreams import running_upstream

TOKENS, RATE = 2000, 100
WORDS = ["The", "quick", "brown", "fox", "jumps", "over", "the", "lazy", "dog", "and", "runs", "on"]
STORED = (10, 1000, 5000)
KEYS = 60
MAIN_THREAD = 0.15  # of a core
KEY_TO_PAINT = 50.0  # milliseconds, p95
TRANSFER = 100_000  # bytes of JavaScript and CSS
# Time from the key to the frame after the one that shows it.
_PROBE = """() => {
    window.times = [];
    document.querySelector("#text").addEventListener("keydown", (event) => {
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
_LOADED = """() => performance.getEntriesByType("resource").map(
    (one) => [one.name, one.transferSize])"""


def reply() -> dict[str, Any]:
    """2,000 tokens in paragraphs, a hundred a second."""
    text = ""
    for number in range(TOKENS):
        text += " " + WORDS[number % len(WORDS)]
        if number % 60 == 59:
            text += ".\n\n"
    return {"text": text.strip(), "seconds_a_word": 1 / RATE}


async def busy(session: CDPSession) -> float:
    """Seconds that the page's main thread has worked so far."""
    metrics = (await session.send("Performance.getMetrics"))["metrics"]
    return float(next(one["value"] for one in metrics if one["name"] == "TaskDuration"))


async def streaming(page: Page) -> float:
    """Seconds of the main thread while one reply streams in."""
    session = await page.context.new_cdp_session(page)
    await session.send("Performance.enable")
    screen = Screen(page)
    await screen.send("Go.")
    await expect(screen.feed.locator("[aria-busy]")).to_have_count(1)
    before = await busy(session)
    await expect(screen.feed.locator("[aria-busy]")).to_have_count(0, timeout=120_000)
    return await busy(session) - before


async def plain(page: Page) -> float:
    """The same for a page that appends plain text."""
    session = await page.context.new_cdp_session(page)
    await session.send("Performance.enable")
    await page.goto("about:blank")
    before = await busy(session)
    await page.evaluate(_PLAIN, [WORDS, TOKENS, RATE])
    return await busy(session) - before


async def key_to_paint(page: Page, path: str) -> float:
    """p95 of the time from a key to what it shows, in milliseconds."""
    await page.goto(path)
    await page.evaluate(_PROBE)
    await page.locator("#text").focus()
    for number in range(KEYS):
        await page.keyboard.press("abcdefghij"[number % 10])
    await page.wait_for_timeout(200)
    times = await page.evaluate("window.times")
    return float(statistics.quantiles(times, n=20)[-1])


def stored(product: RunningServer, count: int, folder: Path) -> str:
    """The path of a conversation of so many imported messages."""
    file = folder / f"{count}.json"
    roles = ("user", "assistant")
    file.write_text(
        json.dumps([{"role": roles[n % 2], "content": f"Message {n}."} for n in range(count)])
    )
    printed = manage(product, "import_messages", str(file), "--owner", "owner")
    return next(word for word in printed.split() if word.startswith("/c/")).rstrip(".")


async def measure(product: RunningServer, model: Any, folder: Path) -> bool:
    """Print the figures; whether all are within the budgets."""
    paths = {count: await asyncio.to_thread(stored, product, count, folder) for count in STORED}
    async with launched() as browser:
        context = await browser.new_context(
            base_url=product.base_url, storage_state=await sign_in(product, browser)
        )
        page = await context.new_page()
        await page.goto(paths[STORED[0]])
        loaded = await page.evaluate(_LOADED)
        code = [
            (name, size) for name, size in loaded if name.split("?")[0].endswith((".js", ".css"))
        ]
        ours = sum(size for name, size in code if "/js/" in name)
        transferred = sum(size for _, size in code)
        print(f"first load: {len(loaded) + 1} requests, JavaScript and CSS {transferred:,} bytes"
              f" ({TRANSFER:,} at most), our own JavaScript {ours:,}")  # fmt: skip
        paint = {count: await key_to_paint(page, path) for count, path in paths.items()}
        for count, milliseconds in paint.items():
            print(f"key to paint, {count:,} messages stored: p95 {milliseconds:.1f} ms"
                  f" ({KEY_TO_PAINT:.0f} at most)")  # fmt: skip
        await page.goto(paths[STORED[0]])
        model.script(reply())
        took, control = await streaming(page), await plain(await browser.new_page())
        share = took / (TOKENS / RATE)
        print(f"{TOKENS:,} tokens at {RATE}/s: main thread {took:.2f} s, {share:.0%} of a core"
              f" ({MAIN_THREAD:.0%} at most); appending plain text {control:.2f} s")  # fmt: skip
        await context.close()
    within = share <= MAIN_THREAD and transferred <= TRANSFER
    return within and max(paint.values()) <= KEY_TO_PAINT


def main() -> int:
    """0 when all figures are within the budgets."""
    with running_upstream() as model, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        product = start_server(folder, OPENAI_BASE_URL=model.base_url, OPENAI_API_KEY="a-key")
        try:
            return 0 if asyncio.run(measure(product, model, folder)) else 1
        finally:
            product.kill()
