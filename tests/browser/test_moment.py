"""The moment of a compression: the line, the one sentence, the bar, the card, and the example."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.async_api import Browser, BrowserContext, Locator, expect

from tests.browser.screen import Screen, imported, sign_in
from tests.browser.scripts import held_summary, summary, summing_up
from tests.browser.test_accessibility import in_both_themes
from tests.browser.test_compression import DETAILS, RULE, fill
from tests.servers import RunningServer, start_server
from tests.upstreams import RunningUpstream

pytestmark = pytest.mark.browser

LINE = re.compile(r"^\S+ → \S+ tokens · 1 rule\b.* kept · View · Undo$")
LISTEN = """() => {
    window.told = [];
    const spoken = document.querySelector("#spoken");
    new MutationObserver(() => told.push(spoken.textContent.trim())).observe(
        spoken, {childList: true, characterData: true, subtree: true});
}"""


def line_of(screen: Screen) -> Locator:
    return screen.page.locator("#alerts .moment")


def card_of(screen: Screen) -> Locator:
    return screen.page.get_by_role("region", name="Compressed messages")


async def said(screen: Screen) -> int:
    """How often the page said that the conversation is compressed."""
    told: list[str] = await screen.page.evaluate("told")
    return sum("Conversation compressed" in words for words in told)


async def test_a_prepared_summary_is_shown_and_said_once_on_every_page(
    screen: Screen, signed_in: BrowserContext, model: RunningUpstream, product: RunningServer
) -> None:
    """On a page that got the event, and on one that learned it by a state; not after a reload.

    Breaks when: only compressions that somebody waited for leave a line; the line comes again with
    each state; or a state that tells of a compression is not said, or said besides its event.
    """
    await screen.page.goto(imported(product, *[f"{RULE} {DETAILS}"] * 6))
    model.script({"text": f"{DETAILS} {DETAILS}"}, held_summary(RULE))
    await screen.ask("And now?")
    await expect(screen.page.locator(".preparing")).to_be_visible()
    model.release()
    await expect(screen.page.locator(".preparing")).to_be_hidden()
    await expect(line_of(screen)).to_have_count(0)
    other = Screen(await signed_in.new_page())
    lost = await other.cut_at("compression-completed")
    await other.page.goto(screen.page.url)
    for one in (screen, other):
        await one.page.evaluate(LISTEN)
    await screen.page.bring_to_front()
    await screen.ask(f"How much is all of it? {' '.join([DETAILS] * 3)}")
    for one in (screen, other):
        await expect(line_of(one)).to_have_text(LINE)
        await expect(line_of(one)).to_be_in_viewport()
        await expect(card_of(one)).to_be_attached()
        assert await said(one) == 1
    assert lost
    await screen.page.reload()
    await expect(card_of(screen)).to_be_attached()
    await screen.page.evaluate(LISTEN)
    await screen.ask("And now?")
    assert await said(screen) == 0
    await expect(line_of(screen)).to_have_count(0)
    assert screen.complaints == []


async def test_the_bar_moves_and_the_card_arrives_once(
    screen: Screen, signed_in: BrowserContext, model: RunningUpstream
) -> None:
    """Neither for those who want no motion.

    Breaks when: the bar jumps, the card arrives again with the next event, or the wish for calm is
    not asked for.
    """
    await fill(screen, 3)
    await screen.page.emulate_media(reduced_motion="no-preference")
    calm = Screen(await signed_in.new_page())
    await calm.page.goto(screen.page.url)
    await screen.page.bring_to_front()
    watch = """() => {
        window.moved = [];
        const animate = Element.prototype.animate;
        Element.prototype.animate = function (...given) {
            moved.push(this.localName);
            return animate.apply(this, given);
        };
    }"""
    for one in (screen, calm):
        await one.page.evaluate(watch)
    await screen.button("Compact").click()
    await expect(line_of(screen)).to_be_visible()
    await expect(line_of(calm)).to_be_visible()
    await card_of(screen).scroll_into_view_if_needed()
    await screen.page.evaluate(
        """async () => {
            while (!moved.includes("div")) await new Promise(requestAnimationFrame);
        }"""
    )
    moved: list[str] = await screen.page.evaluate("moved")
    assert "rect" in moved
    await screen.act(5, "Pin")
    await expect(screen.page.locator("article[data-pinned]")).to_be_attached()
    again: list[str] = await screen.page.evaluate("moved")
    assert again.count("div") == 1
    await card_of(calm).scroll_into_view_if_needed()
    assert await calm.page.evaluate("moved") == []


async def test_the_card_unfolds_in_place_and_stays_so(
    screen: Screen, signed_in: BrowserContext
) -> None:
    """By keyboard; what another tab does to the conversation does not fold it.

    Breaks when: the divider is written anew by each state, or an edit folds it or takes the focus.
    """
    await fill(screen, 3)
    # In place of this event there comes a state.
    lost = await screen.cut_at("message-changed")
    await screen.page.reload()
    await screen.button("Compact").click()
    card, unfold = card_of(screen), card_of(screen).locator(".whole > summary")
    await expect(card.locator(".preview")).to_contain_text(f"Rule {RULE}")
    await unfold.focus()
    await unfold.press("Enter")
    whole = card.locator(".whole .prose")
    await expect(whole).to_contain_text(RULE)
    await expect(card.locator(".preview")).to_be_hidden()
    # The card's own triangle is not repeated at each line's menu.
    menu = whole.locator("li summary").first
    assert await menu.evaluate("one => getComputedStyle(one, '::before').content") == "none"
    assert await in_both_themes(screen.page) == []
    await whole.evaluate("one => { one.dataset.kept = '' }")
    other = Screen(await signed_in.new_page())
    await other.page.goto(screen.page.url)
    await other.act(5, "Pin")
    await expect(screen.page.locator("article[data-pinned]")).to_be_attached()
    assert lost
    await expect(whole).to_have_attribute("data-kept", "")
    await other.button("Edit summary").click()
    text = other.page.get_by_role("textbox", name="Summary")
    await text.fill((await text.input_value()).replace(RULE, "Always answer in Scots."))
    await other.button("Save summary").click()
    await expect(whole).to_contain_text("Always answer in Scots.")
    await screen.page.bring_to_front()
    await expect(unfold).to_be_focused()
    # Its Undo would take back the edit now.
    await expect(line_of(screen)).to_have_count(0)


async def test_undo_keeps_the_focus_and_takes_back_what_was_seen(screen: Screen) -> None:
    """Breaks when: the focus falls out of the page with the pressed button, or a second press takes
    back something else.
    """
    await fill(screen, 3)
    await screen.button("Compact").click()
    await expect(line_of(screen)).to_have_text(LINE)
    await line_of(screen).get_by_role("button", name="Undo").press("Enter")
    redo = screen.page.locator("#alerts").get_by_role("button", name="Redo")
    await expect(redo).to_be_focused()
    answer = await screen.page.evaluate(
        """async () => (await fetch("summary/undo/", {
            method: "POST",
            headers: {Accept: "application/json", ...JSON.parse(
                document.body.getAttribute("hx-headers"))},
            body: new URLSearchParams({version: 1}),
        })).json()"""
    )
    assert answer["error"]["code"] == "stale_version"


async def test_lines_come_as_parts_are_finished(
    screen: Screen, model: RunningUpstream, product: RunningServer
) -> None:
    """On a phone with a third of the screen left to them, the message box included.

    Breaks when: whoever waits sees figures only, or loses the lines by loading the page; or the
    line above them does not tell how many parts are finished.
    """
    texts = [f"Case {n} costs {n * 17} pounds. {DETAILS}" for n in range(1, 61)]
    await screen.page.goto(imported(product, *texts))
    model.script(summing_up(seconds=0), summary(RULE, seconds=120))
    await screen.button("Compact").click()
    lines = screen.page.locator("#compression-lines li")
    await expect(lines.first).to_be_visible()
    first = await lines.first.inner_text()
    await screen.page.reload()
    await expect(lines.first).to_have_text(first)
    card = screen.page.locator(".compressing")
    await expect(card.locator(".parts-line .now")).to_have_attribute("x", "1")
    await expect(card.locator(".line")).to_be_hidden()
    await screen.page.set_viewport_size({"width": 390, "height": 844})
    foot = await screen.page.locator(".foot").bounding_box()
    assert foot
    assert foot["height"] <= 844 / 3
    await screen.button("Cancel").click()
    await expect(lines).to_have_count(0)


@pytest.mark.soak
async def test_the_demo_model_shows_a_compression_at_the_first_message(
    browser: Browser, tmp_path: Path
) -> None:
    """Breaks when: the example does not reach the threshold, its rules are not kept, or it is the
    same conversation the next time.
    """
    server = start_server(tmp_path)
    try:
        context = await browser.new_context(
            base_url=server.base_url, storage_state=await sign_in(server, browser)
        )
        screen = Screen(await context.new_page())
        await screen.page.goto("/?new")
        example = screen.page.get_by_role("button", name="See a conversation compressed")
        await example.click()
        await expect(screen.box).to_have_value(re.compile("the whole plan"))
        first = screen.page.url
        await screen.button("Send").click()
        kept = re.compile(r"^\S+ → \S+ tokens · 4 rules, \d decisions kept · View · Undo$")
        await expect(line_of(screen)).to_have_text(kept)
        await expect(screen.articles.last).to_contain_text("I am allergic to nuts")
        await screen.page.goto("/?new")
        await example.click()
        await expect(screen.box).to_have_value(re.compile("the whole plan"))
        assert screen.page.url != first
        await screen.box.fill("")
        await screen.button("Compact").click()
        await expect(line_of(screen)).to_be_visible()
        await context.close()
    finally:
        server.kill()
