"""What is said while a summary is prepared, when none can be written, and what is left out then."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.browser.screen import Screen, imported, sign_in
from tests.browser.scripts import summary, summing_up
from tests.browser.test_accessibility import in_both_themes
from tests.browser.test_compression import DETAILS, RULE, fill
from tests.servers import RunningServer, start_server
from tests.upstreams import RunningUpstream

pytestmark = pytest.mark.browser

# Code and nothing else: without a model there is no sentence that a summary could be made of.
CODE = f"```\n{DETAILS}\n```"
REFUSAL = {"status": 400, "message": "No."}
REPLY = {"text": "```\nok\n```"}


async def test_a_summary_is_prepared_without_a_lock(
    screen: Screen, model: RunningUpstream, product: RunningServer
) -> None:
    await screen.page.goto(imported(product, *[f"{RULE} {DETAILS}"] * 6))
    # Its long reply takes the conversation past the soft threshold.
    model.script({"text": f"{DETAILS} {DETAILS}"}, summary(RULE, seconds=120))
    await screen.ask("And now?")
    line = screen.page.locator(".preparing")
    written = re.compile(r"Summarising \d older messages\s*\d+ tokens? written")
    await expect(line).to_contain_text(written)
    await expect(screen.box).to_be_editable()
    await expect(screen.status).to_have_text("Answer complete")
    said = re.match(r"Summarising \d older messages", await line.inner_text())
    assert said is not None
    await screen.page.reload()
    await expect(line).to_contain_text(said[0])
    # More was written meanwhile.
    await expect(line).to_contain_text(written)
    await screen.ask("Nothing is locked.")
    await screen.button("Cancel").click()
    await expect(line).to_have_count(0)
    await expect(screen.page.get_by_role("region", name="Compressed messages")).to_have_count(0)
    await expect(screen.page.get_by_role("alert")).to_have_count(0)
    await expect(screen.status).to_have_text("Answer complete")


async def test_a_long_summary_is_told_part_by_part(
    screen: Screen, model: RunningUpstream, product: RunningServer
) -> None:
    """On the page that looks on and on one that is loaded meanwhile.

    Breaks when: the part, its messages or the time left are told to one of them only.
    """
    texts = [f"Case {n} costs {n * 17} pounds. {DETAILS}" for n in range(1, 81)]
    await screen.page.goto(imported(product, *texts))
    model.script(summing_up(seconds=1), summing_up(seconds=1), summary(RULE, seconds=120))
    await screen.button("Compact").click()
    part = screen.page.locator("#compression-part")
    await expect(part).to_contain_text(re.compile(r"part 1 of \d+\s*messages 1–\d+\s*$"))
    told = re.compile(r"part 3 of \d+\s*messages \d+–\d+\s*about \d+ s left")
    await expect(part).to_contain_text(told, timeout=15_000)
    await screen.page.reload()
    await expect(part).to_contain_text(told)
    await screen.button("Cancel").click()
    await expect(part).to_have_count(0)
    # What is finished is not asked for again.
    model.script(summary(RULE, seconds=120))
    await screen.button("Compact").click()
    await expect(part).to_contain_text(re.compile(r"part 3 of \d+"))
    await screen.button("Cancel").click()


async def test_a_line_of_a_summary_leads_to_the_message_it_comes_from(
    screen: Screen, model: RunningUpstream, product: RunningServer
) -> None:
    texts = [RULE, *(f"Message {n}: {DETAILS[:100]}" for n in range(2, 61))]
    await screen.page.goto(imported(product, *texts))
    await expect(screen.articles).to_have_count(30)
    model.script(summary(RULE, seconds=0))
    await screen.button("Compact").click()
    await screen.button("View summary").click()
    drawer = screen.page.get_by_role("complementary", name="What the model sees")
    rule = drawer.locator(".prose li", has_text=RULE)
    await rule.get_by_role("link", name="Message 1", exact=True).click()
    # It was not loaded.
    await expect(screen.articles.first).to_be_focused()
    await expect(screen.articles.first).to_be_in_viewport()
    await expect(screen.articles.first).to_contain_text(RULE)


async def test_a_compression_that_is_waited_for_can_be_cancelled(
    screen: Screen, model: RunningUpstream
) -> None:
    await fill(screen, 3)
    model.script(summary(RULE, seconds=120))
    await screen.button("Compact").click()
    await expect(screen.box).not_to_be_editable()
    indicator = screen.page.locator(".compressing")
    await expect(indicator).to_contain_text(re.compile(r" [1-9]\d* tokens? written"))
    said = await indicator.inner_text()
    assert re.search(r"Compressing \d messages", said)
    # It is as far on for whoever comes now, and its keys can be reached.
    await screen.page.reload()
    await expect(screen.box).not_to_be_editable()
    assert await indicator.inner_text() == said
    assert await in_both_themes(screen.page) == []
    await screen.button("Cancel").click()
    await expect(screen.box).to_be_editable()
    await expect(screen.page.get_by_role("progressbar")).to_have_count(0)
    await expect(screen.page.get_by_role("region", name="Compressed messages")).to_have_count(0)
    await screen.ask("Nothing was lost.")


async def test_what_is_left_out_because_somebody_cancelled_says_so(
    screen: Screen, model: RunningUpstream, product: RunningServer
) -> None:
    await screen.page.goto(imported(product, *[f"{RULE} {DETAILS}"] * 18))
    model.script(summary(RULE, seconds=120), REPLY)
    await screen.send("And now?")
    await screen.button("Cancel").click()
    notice = screen.page.locator("#notice")
    because = re.compile(r"left out of what the model sees, because the compression was cancelled")
    await expect(notice).to_contain_text(because)
    await screen.page.reload()
    await expect(notice).to_contain_text(because)


@pytest.mark.soak
async def test_a_compression_that_dies_with_the_server_can_be_asked_for_again(
    browser: Browser, model: RunningUpstream, tmp_path: Path
) -> None:
    """The page that was open, and one that is loaded afterwards, say what became of it.

    Breaks when: the next start clears what the dead process held.
    """
    url, window = model.base_url, "4096"
    server = start_server(tmp_path, OPENAI_BASE_URL=url, CONTEXT_WINDOW=window)
    context = await browser.new_context(
        base_url=server.base_url, storage_state=await sign_in(server, browser)
    )
    screen = Screen(await context.new_page())
    try:
        await screen.page.goto("/?new")
        await fill(screen, 3)
        model.script(summary(RULE, seconds=120))
        await screen.button("Compact").click()
        await expect(screen.page.locator(".compressing")).to_contain_text("written")
        server.kill()
        server = start_server(
            tmp_path, port=server.port, OPENAI_BASE_URL=url, CONTEXT_WINDOW=window
        )
        card = screen.page.locator("#compression .card")
        await expect(card).to_contain_text("The conversation was not compressed.", timeout=60_000)
        await expect(screen.status).to_have_text("Conversation not compressed")
        await expect(screen.box).to_be_editable()
        await screen.page.reload()
        await expect(card).to_contain_text("Nothing was lost.")
        assert await in_both_themes(screen.page) == []
        model.reset()
        await card.get_by_role("button", name="Try again").click()
        divider = screen.page.get_by_role("region", name="Compressed messages")
        await expect(divider).to_be_visible()
        await expect(card).to_have_count(0)
    finally:
        await context.close()
        server.kill()


async def test_a_compression_that_fails_says_what_can_be_done(
    screen: Screen, model: RunningUpstream, product: RunningServer
) -> None:
    page = screen.page
    texts = [CODE, "```\nok\n```"] * 5
    await screen.page.goto(imported(product, *texts))
    model.script(*[REFUSAL] * 8)
    await screen.button("Compact").click()
    card = page.get_by_role("alert").filter(has_text="Nothing was lost.")
    await expect(card).to_contain_text("The conversation was not compressed.")
    await expect(screen.status).to_have_text("Conversation not compressed")
    await expect(screen.box).to_be_editable()
    assert await in_both_themes(page) == []
    await card.get_by_role("button", name="Other model").click()
    await expect(page.get_by_role("combobox", name="Model", exact=True)).to_be_focused()
    await card.get_by_role("button", name="Show what would be left out").click()
    drawer = page.get_by_role("complementary", name="What the model sees")
    await expect(drawer.get_by_role("heading", name="Left out when summarising")).to_be_visible()
    model.reset()
    await card.get_by_role("button", name="Retry").click()
    await expect(page.get_by_role("region", name="Compressed messages")).to_be_visible()
    await expect(card).to_have_count(0)


async def test_what_is_left_out_is_said_until_a_summary_takes_it_in(
    screen: Screen, model: RunningUpstream, product: RunningServer
) -> None:
    page = screen.page
    texts = [CODE, "```\nok\n```"] * 9
    await screen.page.goto(imported(product, *texts))
    model.script(REFUSAL, REPLY)
    await screen.ask(CODE)
    notice = page.locator("#notice")
    await expect(notice).to_contain_text(
        re.compile(
            r"The oldest \d+ messages, \S+ tokens, are left out of what the model sees, because"
        )
    )
    await page.reload()
    await expect(notice).to_contain_text("Nothing was deleted.")
    assert await in_both_themes(page) == []
    await notice.get_by_role("button", name="Show what is left out").click()
    drawer = page.get_by_role("complementary", name="What the model sees")
    await expect(drawer.locator("details").first).to_contain_text("message 1")
    model.reset()
    await notice.get_by_role("button", name="Retry").click()
    await expect(page.get_by_role("region", name="Compressed messages")).to_be_visible()
    await expect(notice).to_be_empty()
