"""``python -m tests.browser.app_icons``: draws the icons with which the chat is installed.

They are made from ``static/icon.svg``. The maskable ones have its background up to their edges, and
the mark within the part that no device cuts off.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from playwright.async_api import Browser

from tests.browsers import launched
from tests.servers import ROOT

MARK = ROOT / "static" / "icon.svg"
FOLDER = ROOT / "static" / "icons"
SIZES = (192, 512)
BACKGROUND = "#f7f2e8"
# The mark's own box, and the same with the margin of a maskable icon.
_BOX, _WIDE_BOX = 'viewBox="0 0 24 24"', 'viewBox="-4 -4 32 32"'


def files() -> dict[Path, tuple[int, bool]]:
    """Each icon's path → its size in pixels, and whether it is maskable."""
    return {
        FOLDER / f"{name}-{size}.png": (size, maskable)
        for size in SIZES
        for name, maskable in (("icon", False), ("maskable", True))
    }


async def drawn(browser: Browser, size: int, *, maskable: bool) -> bytes:
    """One icon as PNG."""
    mark = MARK.read_text("utf-8")
    if maskable:
        mark = mark.replace(_BOX, _WIDE_BOX)
    style = f"margin:0;background:{BACKGROUND if maskable else 'transparent'}"
    page = await browser.new_page(viewport={"width": size, "height": size})
    await page.set_content(f'<body style="{style}">{mark}</body>')
    await page.add_style_tag(content="svg { display: block; width: 100vw; height: 100vh }")
    try:
        return await page.screenshot(omit_background=not maskable)
    finally:
        await page.close()


async def main() -> None:
    """Draw all icons."""
    FOLDER.mkdir(exist_ok=True)
    async with launched() as browser:
        for path, (size, maskable) in files().items():
            path.write_bytes(await drawn(browser, size, maskable=maskable))


if __name__ == "__main__":
    asyncio.run(main())
