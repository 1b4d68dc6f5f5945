"""A conversation that compresses itself while it is chatted in."""

from __future__ import annotations

import re
from math import ceil
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Locator, expect

from tests.browser.screen import Screen, sign_in
from tests.browser.scripts import held_summary
from tests.browser.test_compression import DETAILS, RULE, fill
from tests.fake_scripts import is_summary_request
from tests.servers import RunningServer, start_server
from tests.upstreams import RunningUpstream, running_upstream

pytestmark = pytest.mark.browser

# The default of COMPRESSION_SOFT_THRESHOLD.
SOFT = 0.65


def indicator_of(screen: Screen) -> Locator:
    return screen.page.get_by_role("progressbar", name="Compressing conversation")


async def is_locked(screen: Screen) -> None:
    """The indicator is there and the box takes nothing."""
    await expect(indicator_of(screen)).to_be_visible()
    await expect(screen.box).to_have_attribute("readonly", "")
    await expect(screen.status).to_have_text("Compressing conversation")


async def is_compressed(screen: Screen) -> None:
    """The divider comes and stays; indicator and lock go."""
    await expect(divider_of(screen)).to_contain_text(re.compile(r"\d+ messages above are kept"))
    await expect(indicator_of(screen)).to_be_hidden()
    await expect(screen.box).not_to_have_attribute("readonly", "")
    await expect(screen.feed.locator("[aria-busy]")).to_have_count(0)


def divider_of(screen: Screen) -> Locator:
    return screen.page.get_by_role("region", name="Compressed messages")


async def originals_are_above(screen: Screen) -> None:
    """Every message is still there, the first of them above the divider, word for word."""
    await expect(screen.articles.first).to_contain_text(RULE)
    above = await screen.articles.first.bounding_box()
    below = await divider_of(screen).bounding_box()
    assert above is not None
    assert below is not None
    assert above["y"] < below["y"]


@pytest.mark.soak
async def test_a_chat_with_the_demo_model_compresses_itself(
    browser: Browser, tmp_path: Path
) -> None:
    """Without a key and without a network, as it comes."""
    server = start_server(tmp_path)
    try:
        context = await browser.new_context(
            base_url=server.base_url, storage_state=await sign_in(server, browser)
        )
        screen = Screen(await context.new_page())
        await screen.page.goto("/?new")
        await expect(screen.page.get_by_text("The built-in demo model answers")).to_be_visible()
        await fill(screen, 2)
        # From far below the soft threshold, so that nothing has been prepared when it is passed.
        await screen.send(f"How much is all of it? {await past_the_threshold(screen)}")
        await is_locked(screen)
        await is_compressed(screen)
        await originals_are_above(screen)
        # The demo model says what reached it: the rule came through.
        await screen.ask("What do you know of British English?")
        await expect(screen.articles.last).to_contain_text(RULE)
        await context.close()
    finally:
        server.kill()


async def past_the_threshold(screen: Screen) -> str:
    """A text that carries the conversation from where it is past the threshold at once."""
    told = await screen.stored()
    usage = told["context"]["usage"]
    a_text = told["messages"][2]["token_count"] / told["context"]["budget"]
    return " ".join([DETAILS] * ceil((0.95 - usage) / a_text))


async def until_one_is_prepared(screen: Screen) -> None:
    """Chat until a summary is written in the background."""
    await fill(screen, 3)
    while (await screen.stored())["context"]["usage"] < SOFT:
        await screen.ask(f"And this? {DETAILS}")


def up_to_the_last_question(model: RunningUpstream) -> tuple[list[bool], dict[str, Any]]:
    """The last request for a reply, and which of those before it were for a summary."""
    asked = model.chats()
    # Another summary may be prepared by now.
    while is_summary_request(asked[-1]):
        asked.pop()
    return [is_summary_request(one) for one in asked[:-1]], asked[-1]


async def seen_by_the_model(screen: Screen, request: dict[str, Any]) -> None:
    """One system message, which holds the summary; then what follows it, word for word."""
    told = await screen.stored()
    boundary = told["compression"]["boundary"]
    tail = [
        {"role": one["role"], "content": one["text"]}
        for one in told["messages"]
        if boundary < one["seq"] < told["messages"][-1]["seq"]
    ]
    system, *rest = request["messages"]
    assert boundary >= 2
    assert system["role"] == "system"
    assert system["content"].count(told["compression"]["summary"]) == 1
    assert RULE in told["compression"]["summary"]
    assert rest == tail
    assert tail[0]["role"] == "user"


async def test_a_reply_that_waits_for_a_summary_says_so(
    screen: Screen, model: RunningUpstream
) -> None:
    """Breaks when: its place says nothing, or for whom it would wait otherwise."""
    await fill(screen, 3)
    model.script(held_summary(RULE))
    await screen.send(f"How much is all of it? {await past_the_threshold(screen)}")
    await is_locked(screen)
    place = screen.articles.last.locator(".waiting")
    await expect(place).to_match_aria_snapshot("- paragraph: Waiting for the summary")
    model.release()
    await is_compressed(screen)


async def test_i15_a_chat_past_the_threshold_waits_for_its_summary(
    screen: Screen, model: RunningUpstream
) -> None:
    """I15: the request that waited holds the summary once, then the tail from a user's message on.

    Breaks when: ``build_request`` leaves the summary out or sends what it stands for too,
    ``planner.plan`` puts the boundary before a reply, or ``preparation.prepare`` does not read
    the conversation again after a compression.
    """
    await fill(screen, 3)
    model.script(held_summary(RULE))
    # Far below the soft threshold: nothing has been prepared when the long one comes.
    await screen.send(f"How much is all of it? {await past_the_threshold(screen)}")
    await is_locked(screen)
    model.release()
    await is_compressed(screen)
    await originals_are_above(screen)
    await expect(screen.articles.last).to_contain_text("You said: How much is all of it?")
    before, asking = up_to_the_last_question(model)
    assert before[:4] == [False, False, False, True]
    assert all(before[3:])
    await seen_by_the_model(screen, asking)
    await screen.ask("And without the last one?")
    await seen_by_the_model(screen, up_to_the_last_question(model)[1])


async def test_a_summary_prepared_in_the_background_is_applied_without_a_lock(
    screen: Screen, model: RunningUpstream
) -> None:
    """Nothing is locked, neither while it is written nor when it is applied.

    Breaks when: ``preparation._compress`` does not try ``apply_ready``, or a run in the
    background claims the conversation with ``locks_input``.
    """
    frames: list[str] = []
    screen.page.on(
        "websocket",
        lambda socket: socket.on("framereceived", lambda frame: frames.append(str(frame))),
    )
    model.script(held_summary(RULE))
    line = screen.page.get_by_text(re.compile(r"Summarising (\d+ )?older messages"))
    await until_one_is_prepared(screen)
    await expect(line).to_be_visible()
    await expect(screen.box).to_be_editable()
    model.release()
    await expect(line).to_be_hidden()
    await expect(divider_of(screen)).to_be_hidden()
    # A long span is summarised in several calls.
    written = [is_summary_request(one) for one in model.chats()].count(True)
    await screen.ask(f"How much is all of it? {await past_the_threshold(screen)}")
    await expect(divider_of(screen)).to_contain_text(re.compile(r"\d+ messages above are kept"))
    before, asking = up_to_the_last_question(model)
    assert before.count(True) == written
    await seen_by_the_model(screen, asking)
    assert any("Summarising" in frame for frame in frames)
    assert not any("data-locked" in frame for frame in frames)


@pytest.mark.soak
async def test_before_a_smaller_model_is_taken_it_is_said_what_that_means(
    browser: Browser, tmp_path: Path
) -> None:
    """By the picker and by ``/model``; nothing changes until the person agrees.

    Breaks when: a switch is not asked about, or what was refused stays chosen; or what
    was switched counts as a setting that is not saved.
    """
    with running_upstream(large=16384, small=2048) as model:
        server = start_server(tmp_path, OPENAI_BASE_URL=model.base_url, CHAT_MODEL="large")
        try:
            await switches(server, browser)
        finally:
            server.kill()


async def switches(server: RunningServer, browser: Browser) -> None:
    context = await browser.new_context(
        base_url=server.base_url, storage_state=await sign_in(server, browser)
    )
    screen = Screen(await context.new_page())
    await screen.page.goto("/?new")
    await fill(screen, 4)
    picker = screen.page.get_by_role("combobox", name="Model", exact=True)
    question = screen.page.get_by_role("dialog", name="Switch the model?")
    usage = re.compile(r"With small the next request would take [\d,]+ of [\d,]+ tokens")
    await picker.select_option("small")
    await expect(question).to_contain_text(usage)
    await screen.page.keyboard.press("Escape")
    await expect(picker).to_have_value("large")
    await screen.box.fill("/model small")
    await screen.box.press("Enter")
    await question.get_by_role("button", name="Keep the present one").click()
    await expect(question).to_be_hidden()
    await expect(screen.box).to_be_focused()
    assert (await screen.stored())["context"]["model"] == "large"
    await picker.select_option("small")
    async with screen.page.expect_response("**/settings/"):
        await question.get_by_role("button", name="Switch", exact=True).click()
    assert (await screen.stored())["context"]["model"] == "small"
    assert await screen.leaves() is None, "it is saved in the dialog of the settings too"
    async with screen.page.expect_response("**/settings/"):
        await picker.select_option("large")  # Nothing is asked where it fits.
    assert (await screen.stored())["context"]["model"] == "large"
    await context.close()
