"""The log of calls in the browser: from the conversation to one call and back, and on a phone."""

from __future__ import annotations

import json
import re
from pathlib import Path

from playwright.async_api import expect

from tests.browser.screen import Screen
from tests.browser.test_accessibility import in_both_themes


def kinds_in(file: Path) -> list[str]:
    return [json.loads(line)["kind"] for line in file.read_text().splitlines()]


async def test_the_log_from_a_command_to_what_changed_and_to_a_file(screen: Screen) -> None:
    """Breaks when: ``/log`` leaves the conversation out, or a call does not show what it was."""
    page = screen.page
    for text in ("Where do the lamps grow?", "And in winter?"):
        await screen.ask(text)
    await screen.send("/log")
    await expect(page).to_have_url(re.compile(r"/log/\?conversation="))
    table = page.get_by_role("region", name="Calls of models")
    await expect(table.get_by_role("row")).to_have_count(3)
    async with page.expect_download() as waiting:
        await page.get_by_role("link", name="Export these").click()
    assert kinds_in(Path(await (await waiting.value).path())) == ["chat", "chat"]
    await table.locator("time").first.click()
    changes = page.get_by_role("region", name="What changed since the former request")
    await expect(changes).to_contain_text("messages unchanged")
    await changes.locator("summary").last.click()
    await expect(changes.get_by_text("And in winter?", exact=True)).to_be_visible()
    request = page.get_by_role("region", name="Request", exact=True)
    await request.get_by_text("Where do the lamps grow?").first.click()
    await expect(request.locator("details[open] pre")).to_have_text("Where do the lamps grow?")
    await expect(page.get_by_role("region", name="Reply").locator("pre")).to_be_visible()
    assert await in_both_themes(page) == []


async def test_filters_sums_and_the_plot_on_a_phone(screen: Screen) -> None:
    """Nothing is wider than the screen, nor the calls than a common one beside the list of
    conversations; and the filters stay as they were chosen.

    Breaks when: the plot or a table pushes the page wide, the calls are a table there, or a choice
    is not sent along.
    """
    page = screen.page
    await screen.ask("Where do the lamps grow, and which of them give light in the winter?")
    await page.set_viewport_size({"width": 1280, "height": 844})
    await page.goto("/log/")
    calls = page.get_by_role("region", name="Calls of models")
    fits = "one => one.scrollWidth <= one.clientWidth"
    assert await calls.evaluate(fits)
    await expect(calls.get_by_role("columnheader", name="Money")).to_have_count(0)
    await page.set_viewport_size({"width": 390, "height": 844})
    await expect(page.get_by_role("img", name=re.compile("Bars of 30 days"))).to_be_visible()
    assert await page.evaluate("document.documentElement.scrollWidth") <= 390
    # Nor does a part of the page have to be scrolled sideways.
    assert await calls.evaluate(fits)
    await page.get_by_role("combobox", name="What for").select_option("chat")
    await page.get_by_label("Title, model or error").fill("lamps")
    await page.get_by_role("button", name="Show").click()
    await expect(page.get_by_role("combobox", name="What for")).to_have_value("chat")
    await expect(page.get_by_role("region", name="Calls of models")).to_contain_text("lamps")
    await page.get_by_label("Only errors").check()
    await page.get_by_role("button", name="Show").click()
    await expect(page.get_by_text("No call fits these filters.")).to_be_visible()
    await page.get_by_role("link", name="Clear the filters").click()
    await page.get_by_role("link", name="Calls", exact=True).click()
    bars = page.get_by_role("img", name=re.compile(r"the highest is \d+ calls?$"))
    await expect(bars).to_be_visible()
    assert await in_both_themes(page) == []
