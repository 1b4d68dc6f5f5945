"""The system's Chromium, started the way every browser test needs it."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Browser, async_playwright

#: The headless shell first: without the parts of a browser that nobody sees, the tests of pages
#: take two thirds of the time.
NAMES = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)
LAUNCH_ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


class ChromiumMissing(RuntimeError):
    """No Chromium on this computer; the message holds the command that helps."""


def find_chromium() -> str:
    """Path of the browser: CHROMIUM from the environment, else the system's. Or ChromiumMissing."""
    given = os.environ.get("CHROMIUM", "")
    for name in (given,) if given else NAMES:
        path = shutil.which(name)
        if path:
            return path
    raise ChromiumMissing(
        f"CHROMIUM={given} is not a program."
        if given
        else "Browser tests need Chromium: `apt-get install chromium`, or set CHROMIUM to its path."
    )


@asynccontextmanager
async def launched() -> AsyncIterator[Browser]:
    """A headless browser, closed at the end."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=find_chromium(), args=list(LAUNCH_ARGUMENTS)
        )
        try:
            yield browser
        finally:
            await browser.close()
