"""Compressions as they are heard: the transcript of a screen reader through whole conversations."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import expect

from tests.browser.screen import Screen, imported
from tests.browser.scripts import held_summary
from tests.browser.test_compression import DETAILS, RULE
from tests.browser.test_moment import LINE, line_of
from tests.browser.test_threshold import is_compressed, is_locked
from tests.browser.transcript import heard, listen
from tests.servers import RunningServer
from tests.upstreams import RunningUpstream

pytestmark = pytest.mark.browser

# Shares of the budget: past the soft threshold, past the threshold, and not nearly full.
SOFT, FULL = 0.72, 0.86


async def up_to(share: float, screen: Screen) -> str:
    """A text that takes the conversation to that share."""
    told = await screen.stored()
    sample, context = told["messages"][2], told["context"]
    a_character = sample["token_count"] / len(sample["text"]) / context["budget"]
    return (DETAILS * 20)[: int((share - context["usage"]) / a_character)]


async def for_the_ear(screen: Screen) -> str:
    """The line in view, as it is to be said: no arrow, no dots, no names of buttons."""
    await expect(line_of(screen)).to_have_text(LINE)
    sizes, kept, *_ = re.split(" · ", " ".join((await line_of(screen).inner_text()).split()))
    return f"{sizes.replace('→', 'to')}, {kept.replace(', ', ' and ')}"


async def waited_for(screen: Screen, model: RunningUpstream, rule: str) -> str:
    """Send a question that has to wait for a summary of one rule. Returns its line, for the ear."""
    model.script(held_summary(rule))
    await screen.send(f"How much is all of it? {await up_to(FULL, screen)}")
    await is_locked(screen)
    model.release()
    await is_compressed(screen)
    await expect(screen.status).to_have_text("Answer complete")
    return await for_the_ear(screen)


async def prepared(screen: Screen, model: RunningUpstream, rule: str) -> str:
    """Chat until a summary with one more rule is ready, and on until it is applied."""
    model.script({"text": await up_to(SOFT, screen)}, held_summary(rule))
    await screen.ask("And what follows from it?")
    await expect(screen.page.locator(".preparing")).to_be_visible()
    model.release()
    await expect(screen.page.locator(".preparing")).to_be_hidden()
    model.script({"text": "Noted."})
    await screen.ask(f"And without the first one? {await up_to(FULL, screen)}")
    return await for_the_ear(screen)


async def test_a_conversation_with_two_compressions_is_heard(
    screen: Screen, model: RunningUpstream, product: RunningServer
) -> None:
    """One that was waited for and one that was prepared, each with its figures, and nothing twice.

    Breaks when: the figures are left to the eye; a compression that nobody waited for is not said;
    or a region is written again with what it said before.
    """
    asked = [f"{RULE} Question {n}. {DETAILS}" for n in range(6)]
    texts = [text for question in asked for text in (question, "Noted.")]
    await screen.page.goto(imported(product, *texts))
    await listen(screen)
    first = await waited_for(screen, model, RULE)
    second = await prepared(screen, model, "Never use tabs.")
    said = await heard(screen)
    # The figures are in a region of their own: at its next sentence, or the one after that.
    for figures, earliest in ((first, 3), (second, 8)):
        assert said.index(figures) in (earliest, earliest + 1)
        said.remove(figures)
    assert said == [
        "Answering",
        "Compressing conversation",
        "Conversation compressed",
        "Answer complete",
        "Answering",
        "Answer complete",
        "Answering",
        "Conversation compressed",
        "Answer complete",
    ]
    assert re.fullmatch(r"\S+ to \S+ tokens, 1 rule and \d [\w ]+ kept", first)
    assert screen.complaints == []


async def test_undo_and_redo_are_heard(screen: Screen, product: RunningServer) -> None:
    """Breaks when: only the eye is told that a summary is gone, or is back."""
    await screen.page.goto(imported(product, *[f"{RULE} {DETAILS}"] * 6))
    await screen.button("Compact").click()
    await is_compressed(screen)
    await expect(screen.page.locator("#spoken-figures")).not_to_be_empty()
    await listen(screen)
    alerts = screen.page.locator("#alerts")
    await alerts.get_by_role("button", name="Undo").click()
    await alerts.get_by_role("button", name="Redo").click()
    await expect(alerts.get_by_role("button", name="Undo")).to_be_visible()
    assert await heard(screen) == [
        "Undone: the model sees what it saw before",
        "Done again: the summary is back",
    ]


async def test_a_warning_that_stays_is_not_said_again(
    screen: Screen, product: RunningServer
) -> None:
    """Breaks when: each event that counts the tokens writes the warning anew, as it was."""
    await screen.page.goto(imported(product, *[f"Full, {n}. {DETAILS}" for n in range(14)]))
    await expect(screen.page.locator("#nearly-full")).not_to_be_empty()
    await instruct(screen, "Answer in rhyme.")
    await listen(screen)
    await instruct(screen, "Answer in rhyme, and never in prose.")
    assert await heard(screen) == []


async def instruct(screen: Screen, words: str) -> None:
    """Give the conversation instructions, and wait for the event that counts them."""
    meter = screen.page.get_by_role("meter", name="Context used")
    before = await meter.get_attribute("aria-valuetext")
    assert before
    await screen.send(f"/system {words}")
    await expect(meter).not_to_have_attribute("aria-valuetext", before)
