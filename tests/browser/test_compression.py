"""Compression as a person sees it: the indicator, the lock, the divider, and the way back."""

from __future__ import annotations

import asyncio
import re

import pytest
from playwright.async_api import BrowserContext, Route, expect

from tests.browser.screen import Screen
from tests.browser.scripts import FOR_EVER, summary
from tests.upstreams import RunningUpstream

pytestmark = pytest.mark.browser

RULE = "Always answer in British English."
# About 350 tokens: with the demo's replies and its window of 4,096, six turns pass the threshold.
DETAILS = " ".join(f"Project number {n} costs {n * 13} euros and ends in May." for n in range(20))


async def fill(screen: Screen, turns: int) -> None:
    """Chat for some turns, the first of which states a rule."""
    await screen.ask(f"{RULE} {DETAILS}")
    for number in range(1, turns):
        await screen.ask(f"Question {number}. {DETAILS}")


async def test_compacting_shows_locks_and_divides(screen: Screen, model: RunningUpstream) -> None:
    await fill(screen, 3)
    model.script(summary(RULE, seconds=2))
    await screen.box.fill("/compact the prices")
    await screen.box.press("Enter")
    bar = screen.page.get_by_role("progressbar", name="Compressing conversation")
    await expect(bar).to_be_visible()
    await expect(bar).to_have_attribute("aria-valuetext", re.compile(r"\d+ tokens? written"))
    await expect(screen.status).to_have_text("Compressing conversation")
    await expect(screen.box).to_have_attribute("readonly", "")
    await expect(screen.button("Send")).to_be_disabled()
    divider = screen.page.get_by_role("region", name="Compressed messages")
    await expect(divider).to_contain_text(re.compile(r"\d+ messages above are kept here"))
    await expect(screen.status).to_have_text("Conversation compressed")
    await expect(screen.box).not_to_have_attribute("readonly", "")
    await expect(screen.articles).to_have_count(6)
    # One line says it, with the divider's figures.
    line = screen.page.locator("#alerts")
    figures = re.search(r"\S+ → \S+ tokens", await line.inner_text())
    assert figures
    await expect(divider).to_contain_text(figures.group())
    for name in ("View", "Undo"):
        await expect(line.get_by_role("button", name=name, exact=True)).to_be_visible()
    # The older messages stay readable, and a fresh load shows the same.
    streamed = await screen.feed_html()
    await screen.page.reload()
    await expect(divider).to_be_visible()
    assert await screen.feed_html() == streamed


async def test_an_end_that_comes_by_a_fresh_state_is_spoken_too(screen: Screen) -> None:
    """Breaks when: only the event that may be lost says that the lock is gone."""
    await fill(screen, 3)
    lost = await screen.cut_at("compression-completed")
    await screen.page.reload()
    await screen.button("Compact").click()
    await expect(screen.status).to_have_text("Conversation compressed")
    assert lost


async def test_an_undo_is_said_where_the_writer_looks(screen: Screen) -> None:
    """Breaks when: only the divider tells, which may stand far above what is in view; or when the
    answer to a button that an event has replaced meanwhile is lost.
    """
    await fill(screen, 3)
    await screen.button("Compact").click()
    await expect(screen.status).to_have_text("Conversation compressed")

    async def late(route: Route) -> None:
        """The events come before the answer."""
        answer = await route.fetch()
        await expect(screen.button("Undo compression")).to_have_count(0)
        await route.fulfill(response=answer)

    await screen.page.route("**/summary/undo/", late)
    await screen.button("Undo compression").click()
    line = screen.page.locator("#alerts")
    await expect(line).to_contain_text("Undone")
    await line.get_by_role("button", name="Redo").click()
    await expect(line).to_contain_text("the summary is back")
    await line.get_by_role("button", name="Undo").click()
    await expect(line).to_contain_text("Undone")


async def test_the_button_rests_while_its_work_is_done(
    screen: Screen, model: RunningUpstream
) -> None:
    """Breaks when: a second compression can be asked for, or the focus is lost with the button."""
    await fill(screen, 3)
    model.script({"steps": [{"delay": FOR_EVER}]})
    compact = screen.button("Compact")
    await compact.press("Enter")
    await expect(compact).to_be_disabled()
    await expect(screen.box).to_be_focused()
    await screen.page.reload()
    await expect(compact).to_be_disabled()
    await screen.button("Cancel").click()
    await expect(compact).to_be_enabled()


async def test_a_summary_can_be_seen_edited_and_undone(screen: Screen) -> None:
    """The drawer shows what is true at each step, and what is unfolded in it stays so.

    Breaks when: ``refresh`` leaves alone what is read, or ``renew`` folds what was unfolded.
    """
    await fill(screen, 3)
    await screen.button("Compact").click()
    divider = screen.page.get_by_role("region", name="Compressed messages")
    await expect(divider).to_be_visible()
    drawer = screen.page.get_by_role("complementary", name="What the model sees")
    await divider.get_by_role("button", name="View summary").click()
    await expect(drawer).to_contain_text(RULE)
    await divider.get_by_role("button", name="Edit summary").click()
    text = drawer.get_by_role("textbox", name="Summary")
    await expect(text).to_be_focused()
    before = await text.input_value()
    await text.fill(before.replace(RULE, "Always answer in Scots."))
    await drawer.get_by_role("button", name="Save summary").click()
    await expect(drawer).to_contain_text("Version 2")
    await expect(drawer.locator(".edit > summary")).to_be_focused()
    await expect(drawer.locator(".prose")).to_contain_text("Always answer in Scots.")
    await drawer.get_by_role("tab", name="Versions").click()
    await drawer.get_by_text("Changes (2 changed)").click()
    await expect(drawer.locator(".comparison del").first).to_contain_text("British English")
    await expect(drawer.locator(".comparison ins").first).to_contain_text("Scots")
    await divider.get_by_role("button", name="Undo compression").click()
    active = drawer.get_by_role("listitem").filter(has_text="Active")
    await expect(active).to_contain_text("Version 3")
    await expect(active).to_contain_text("restored from version 1")
    await expect(drawer.locator(".comparison del").first).to_be_visible()
    await drawer.get_by_role("tab", name="Summary").click()
    await expect(drawer.locator(".prose")).to_contain_text(RULE)
    await expect(drawer.locator(".edit")).not_to_have_attribute("open", "")
    assert screen.complaints == []


async def test_the_drawer_follows_though_the_button_that_asked_is_gone(screen: Screen) -> None:
    """A state that comes while the text is on its way makes the divider anew.

    Breaks when: the end of the request is heard of by the button alone that it was made by.
    """
    await fill(screen, 3)
    await screen.button("Compact").click()
    await expect(screen.status).to_have_text("Conversation compressed")
    replaced = asyncio.Event()

    async def held(route: Route) -> None:
        await replaced.wait()
        await route.continue_()

    await screen.page.route("**/summaries/**", held, times=1)
    divider = screen.page.get_by_role("region", name="Compressed messages")
    await divider.get_by_role("button", name="View summary").click()
    await divider.evaluate("one => { one.innerHTML = one.innerHTML; }")
    replaced.set()
    drawer = screen.page.get_by_role("complementary", name="What the model sees")
    await expect(drawer).to_contain_text("Version 1: 4 messages")
    await screen.page.locator("#alerts").get_by_role("button", name="Undo").click()
    await expect(drawer).not_to_contain_text("Version 1: 4 messages")


async def test_i13_of_two_edits_the_later_is_refused_with_both_texts(
    screen: Screen, signed_in: BrowserContext
) -> None:
    """I13: an edit that is stale overwrites nothing, and its text is not lost; whoever has seen
    both texts may save again.

    Breaks when: ``partials/summary.html`` leaves out the version, ``drawer.refresh`` replaces a
    text that is being written, or the refusal brings no newer version to save upon.
    """
    await fill(screen, 3)
    await screen.button("Compact").click()
    # A page that is left takes with it what was still on its way to the server.
    await expect(screen.status).to_have_text("Conversation compressed")
    other = Screen(await signed_in.new_page())
    for one in (screen, other):
        await one.page.goto(screen.page.url)
        await one.button("Edit summary").click()
        await expect(one.page.get_by_role("textbox", name="Summary")).to_be_focused()
    for one, words in ((screen, "in Scots"), (other, "in Welsh")):
        text = one.page.get_by_role("textbox", name="Summary")
        await text.fill(f"## Constraints\n- Always answer {words}. [1]")
    for one in (screen, other):
        await one.button("Save summary").click()
        await expect(one.page.locator("#drawer-body .prose")).to_contain_text(
            "in Scots" if one is screen else RULE
        )
    alert = other.page.get_by_role("alert")
    await expect(alert).to_contain_text("in Scots")
    await expect(alert).to_contain_text("in Welsh")
    text = other.page.get_by_role("textbox", name="Summary")
    await expect(text).to_have_value(re.compile("in Welsh"))
    await other.button("Save summary").click()
    await expect(other.page.locator("#drawer-body .prose")).to_contain_text("in Welsh")
    await expect(screen.page.locator("#drawer-body .prose")).to_contain_text("in Welsh")


async def test_an_open_editor_keeps_its_selection_when_the_drawer_is_read_again(
    screen: Screen, signed_in: BrowserContext
) -> None:
    """Breaks when: a refresh that replaces an untouched editor leaves the focus to what is left."""
    await fill(screen, 3)
    await screen.button("Compact").click()
    await expect(screen.status).to_have_text("Conversation compressed")
    other = Screen(await signed_in.new_page())
    await other.page.goto(screen.page.url)
    await screen.page.bring_to_front()
    await screen.button("Edit summary").click()
    text = screen.page.get_by_role("textbox", name="Summary")
    await expect(text).to_be_focused()
    await text.press("ArrowDown")
    await text.press("Shift+ArrowRight")
    selection = "(one) => [one.selectionStart, one.selectionEnd]"
    first, last = await text.evaluate(selection)
    assert last == first + 1 > 1
    async with screen.page.expect_response("**/summaries/**"):
        await other.act(0, "Pin")
    await expect(text).to_be_focused()
    assert await text.evaluate(selection) == [first, last]


async def test_a_draft_outlives_a_compression(screen: Screen, model: RunningUpstream) -> None:
    await fill(screen, 3)
    model.script(summary(RULE, seconds=2))
    await screen.box.fill("half a thou")
    await screen.button("Compact").click()
    await expect(screen.box).to_have_attribute("readonly", "")
    await expect(screen.box).to_have_value("half a thou")
    await expect(screen.page.get_by_role("region", name="Compressed messages")).to_be_visible()
    await expect(screen.box).to_have_value("half a thou")
    await screen.box.press("End")
    await screen.box.press_sequentially("ght")
    await expect(screen.box).to_have_value("half a thought")


async def test_there_is_nothing_to_compress_in_a_short_conversation(screen: Screen) -> None:
    await screen.ask("Hello.")
    await screen.button("Compact").click()
    await expect(screen.page.get_by_role("alert")).to_contain_text("nothing to compress")
