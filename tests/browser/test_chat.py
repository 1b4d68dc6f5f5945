"""Writing, reading and stopping, as a person does it."""

from __future__ import annotations

import re
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from playwright.async_api import Browser, Route, expect

from tests.browser.screen import Screen, imported, sign_in
from tests.browser.scripts import MARKDOWN, pausing, unending
from tests.servers import RunningServer
from tests.upstreams import RunningUpstream

pytestmark = pytest.mark.browser

# What can be pressed and is lower than 44 pixels.
SMALL = """[...document.querySelectorAll(`button, select, summary, textarea,
        input:not([type=hidden], [type=radio]), label:has([type=radio]),
        nav a, .buttons a, .elsewhere a`)]
    .filter((one) => one.checkVisibility())
    .filter((one) => one.getBoundingClientRect().height < 44)
    .map((one) => one.outerHTML)"""


async def test_a_message_is_answered_and_its_end_announced(
    screen: Screen, model: RunningUpstream
) -> None:
    model.script(pausing("Good", " morning.", seconds=3))
    await screen.send("Good morning. I am allergic to nuts.")
    await expect(screen.page).to_have_url(re.compile(r"/c/[0-9a-f-]{36}/$"))
    await expect(screen.articles).to_have_count(2)
    await expect(screen.articles.nth(0)).to_contain_text("I am allergic to nuts.")
    await expect(screen.page.get_by_role("heading", name="You")).to_be_visible()
    await expect(screen.page.get_by_role("heading", name="fake-model", exact=True)).to_be_visible()
    await expect(screen.status).to_have_text("Answer complete")
    await expect(screen.page.get_by_role("meter", name="Context used")).to_have_attribute(
        "aria-valuetext", re.compile("of 4,096 tokens")
    )


async def test_i4_i22_the_streamed_screen_equals_a_fresh_load(
    screen: Screen, model: RunningUpstream
) -> None:
    """I4, I22: what streamed in is what a reload shows, to the last character.

    Breaks when: ``turn-finished.html`` leaves out the articles, or ``place`` in feed.js keeps
    the marks of the event.
    """
    model.script(*[{"text": MARKDOWN, "seconds_a_word": 0.03, "reasoning": "Let me think."}] * 2)
    await screen.ask("Show me a list, a table and some code.")
    await screen.ask("And once more, please.")
    streamed = await screen.feed_html()
    await screen.page.reload()
    await expect(screen.articles).to_have_count(4)
    assert await screen.feed_html() == streamed


async def test_x03_the_page_loads_nothing_remote_and_obeys_its_policy(
    screen: Screen, product: RunningServer
) -> None:
    await screen.ask("![x](https://example.org/a.png) <img src='https://example.org/b.png'>")
    await screen.page.get_by_role("button", name="What the model sees").click()
    await expect(
        screen.page.get_by_role("complementary", name="What the model sees")
    ).to_contain_text("kept free for the reply")
    assert [url for url in screen.requests if not url.startswith(product.base_url)] == []
    assert screen.complaints == []


async def test_stop_ends_the_reply_and_offers_to_go_on(
    screen: Screen, model: RunningUpstream
) -> None:
    model.script(unending("Once upon a time"))
    await screen.send("Tell me a long story.")
    await expect(screen.articles.nth(1)).to_contain_text("Once upon a time")
    await screen.button("Stop").click()
    await expect(screen.articles.nth(1)).to_contain_text(re.compile(r"Stopped( after|\.)"))
    await expect(screen.status).to_have_text("Answer stopped")
    await expect(screen.button("Continue")).to_be_visible()
    await expect(screen.button("Send")).to_be_visible()


async def test_a_message_sent_meanwhile_waits_for_the_end_of_the_reply(
    screen: Screen, model: RunningUpstream
) -> None:
    """Breaks when: the button and the hint beside it say that the message is sent at once."""
    model.script(pausing("Once upon a time", " it ended.", seconds=4))
    await screen.send("First.")
    await expect(screen.articles.nth(1)).to_contain_text("Once upon a time")
    await screen.box.fill("Second.")
    hint = screen.page.locator("#composer .keys")
    await expect(hint).to_contain_text(re.compile(r"^\s*Enter\s+queues"), use_inner_text=True)
    await expect(screen.button("Send")).to_have_count(0)
    await screen.button("Queue").click()
    await expect(screen.page.get_by_text("Will be sent when the reply ends")).to_be_visible()
    await expect(screen.page.locator("#queued q")).to_have_text("Second.")
    await expect(screen.articles).to_have_count(4)
    await expect(screen.articles.nth(2)).to_contain_text("Second.")
    await expect(screen.page.get_by_text("Will be sent when the reply ends")).to_have_count(0)
    await expect(hint).to_contain_text(re.compile(r"^\s*Enter\s+sends"), use_inner_text=True)


async def test_i2_what_was_not_sent_can_be_sent_again_and_is_there_once(screen: Screen) -> None:
    """I2: a lost answer and a Retry make one message.

    Breaks when: ``deliver`` in composer.js makes a new identifier for a repeated delivery.
    """
    await screen.ask("Hello.")
    # The page hears nothing by its websocket either.
    await screen.page.route_web_socket("**/ws/**", lambda socket: None)
    await screen.page.reload()

    async def lose_the_answer(route: Route) -> None:
        await route.fetch()
        await route.abort()

    await screen.page.route("**/messages/", lose_the_answer, times=1)
    await screen.send("Are you there?")
    pending = screen.articles.filter(has_text="Are you there?")
    await expect(pending.get_by_text("Not sent")).to_be_visible()
    await pending.get_by_role("button", name="Retry").click()
    await expect(screen.page.get_by_text("Not sent")).to_be_hidden()
    await expect(screen.box).to_have_value("")
    await screen.page.reload()
    await expect(screen.feed.locator(".user", has_text="Are you there?")).to_have_count(1)
    await expect(screen.page.get_by_text("Will be sent when the reply ends")).to_have_count(0)


async def test_what_may_have_been_stored_is_sent_again_as_the_same_message(screen: Screen) -> None:
    """I2: a database that fails while it stores leaves open whether it has.

    Breaks when: ``deliver`` in composer.js gives the text back for any error that has a code.
    """
    await screen.ask("Hello.")
    said = {"code": "storage_unavailable", "message": "The database is away.", "retryable": True}

    async def fail_after_storing(route: Route) -> None:
        await route.fetch()
        await route.fulfill(status=503, json={"error": said})

    await screen.page.route_web_socket("**/ws/**", lambda socket: None)
    await screen.page.reload()
    await screen.page.route("**/messages/", fail_after_storing, times=1)
    await screen.send("Are you there?")
    await expect(screen.page.get_by_role("alert")).to_contain_text("The database is away.")
    pending = screen.articles.filter(has_text="Are you there?")
    await pending.get_by_role("button", name="Retry").click()
    await expect(screen.page.get_by_text("Not sent")).to_be_hidden()
    await screen.page.reload()
    await expect(screen.feed.locator(".user", has_text="Are you there?")).to_have_count(1)


async def test_a_server_out_of_reach_is_said_and_nothing_is_lost(screen: Screen) -> None:
    await screen.ask("Hello.")
    await screen.page.route("**/messages/", lambda route: route.abort())
    await screen.send("Do not lose this.")
    pending = screen.articles.filter(has_text="Do not lose this.")
    await expect(pending.get_by_text("Not sent")).to_be_visible()
    await screen.page.unroute("**/messages/")
    await pending.get_by_role("button", name="Retry").click()
    await expect(screen.articles).to_have_count(4)
    await expect(screen.page.get_by_text("Not sent")).to_have_count(0)


async def test_what_is_too_large_is_refused_with_its_figures_and_kept(screen: Screen) -> None:
    await screen.ask("Hello.")
    text = "far too long " * 2000
    await screen.send(text)
    await expect(screen.page.get_by_role("alert")).to_contain_text(re.compile(r"[\d,]+ tokens"))
    await expect(screen.box).to_have_value(text)
    await expect(screen.articles).to_have_count(2)


async def test_a_draft_survives_a_reload(screen: Screen) -> None:
    await screen.ask("Hello.")
    await screen.box.fill("half a thou")
    await screen.page.reload()
    await expect(screen.box).to_have_value("half a thou")


async def test_an_edited_question_is_answered_anew(screen: Screen, model: RunningUpstream) -> None:
    await screen.ask("Hello.")
    await screen.box.press("ArrowUp")
    text = screen.page.get_by_role("textbox", name="Edit message")
    await expect(text).to_be_focused()
    await text.fill("Good evening.")
    model.script({"text": "A first answer."}, {"text": "A second answer."})
    await screen.button("Send again").click()
    await expect(screen.feed.get_by_text("A first answer.")).to_be_visible()
    await expect(screen.articles.first).to_contain_text("Good evening.")
    await expect(screen.status).to_have_text("Answer complete")
    await screen.button("Regenerate").click()
    await expect(screen.feed.get_by_text("A second answer.")).to_be_visible()
    await expect(screen.button("Stop")).to_be_hidden()
    await expect(screen.articles).to_have_count(2)
    streamed = await screen.feed_html()
    await screen.page.reload()
    await expect(screen.articles).to_have_count(2)
    assert await screen.feed_html() == streamed


async def test_an_unknown_command_says_so_and_sends_nothing(screen: Screen) -> None:
    await screen.ask("Hello.")
    await screen.box.press_sequentially("/t")
    await expect(screen.page.get_by_role("listbox", name="Commands")).to_be_visible()
    await expect(screen.page.get_by_role("combobox", name="Commands")).to_be_visible()
    await screen.send("/frobnicate")
    await expect(screen.page.get_by_role("alert")).to_contain_text("There is no command")
    await screen.send("/title Nuts and bolts")
    await expect(screen.page.get_by_role("alert")).to_have_count(0)
    await expect(screen.articles).to_have_count(2)


async def test_a_title_is_shown_as_text(screen: Screen) -> None:
    await screen.ask("Hello.")
    await screen.send("/title <b>Nuts</b> & bolts")
    await expect(screen.page.get_by_role("heading", level=1)).to_have_text("<b>Nuts</b> & bolts")
    await expect(screen.page).to_have_title("<b>Nuts</b> & bolts · Palimpsest")
    current = screen.page.get_by_role("navigation").locator("[aria-current=page]")
    await expect(current).to_contain_text("<b>Nuts</b> & bolts")


async def test_older_messages_come_when_asked_for_and_stay_in_order(
    screen: Screen, product: RunningServer
) -> None:
    texts = [f"Message number {number}." for number in range(1, 121)]
    await screen.page.goto(imported(product, *texts))
    await expect(screen.articles).to_have_count(30)
    await expect(screen.articles.last).to_be_in_viewport()
    # The page follows its end once more when the fonts have come.
    await screen.page.evaluate("document.fonts.ready")
    for count in (80, 120):
        first = screen.articles.first
        reading = await first.get_attribute("id")
        await screen.page.locator("#scroller").evaluate("scroller => scroller.scrollTo(0, 0)")
        await expect(screen.articles).to_have_count(count)
        # What was being read stays where it is.
        await expect(screen.page.locator(f"#{reading}")).to_be_in_viewport()
    shown = await screen.articles.locator(".body").all_inner_texts()
    assert [text.strip() for text in shown] == texts


async def test_scrolling_up_as_a_message_comes_stops_the_following(
    screen: Screen, product: RunningServer
) -> None:
    """The reader's scroll and what the page measures around a change may fall into one frame.

    Breaks when: the page notes where it stands after a change without having looked before it.
    """
    await screen.page.goto(imported(product, *(f"Message {n}." for n in range(60))))
    await screen.page.evaluate("document.fonts.ready")
    await screen.page.evaluate(
        """() => {
            const up = () => document.getElementById("scroller").scrollTo(0, 0);
            document.addEventListener("htmx:wsBeforeMessage", up, { capture: true, once: true });
        }"""
    )
    await screen.send("/title Nuts and bolts")
    await expect(screen.page).to_have_title("Nuts and bolts · Palimpsest")
    await expect(screen.articles).to_have_count(60)


@pytest.mark.soak
async def test_at_most_400_messages_are_in_the_page_in_both_directions(
    screen: Screen, product: RunningServer
) -> None:
    texts = [f"Message {n + 1}." for n in range(500)]
    await screen.page.goto(imported(product, *texts))
    await screen.page.evaluate("document.fonts.ready")
    scroller = screen.page.locator("#scroller")
    for count in (30, 80, 130, 180, 230, 280, 330, 380, 400):
        await expect(screen.articles).to_have_count(count)
        await scroller.evaluate("scroller => scroller.scrollTo(0, 0)")
    await expect(screen.articles.first).to_contain_text("Message 21.")
    await expect(screen.articles).to_have_count(400)
    for last in (470, 500):
        await screen.page.get_by_role("link", name="Newer messages").click()
        await expect(screen.articles.last).to_contain_text(f"Message {last}.")
        await expect(screen.articles).to_have_count(400)
    await expect(screen.page.get_by_role("link", name="Newer messages")).to_have_count(0)


async def test_without_javascript_a_message_can_be_sent_and_read(
    product: RunningServer, browser: Browser
) -> None:
    context = await browser.new_context(
        base_url=product.base_url,
        java_script_enabled=False,
        storage_state=await sign_in(product, browser),
    )
    screen = Screen(await context.new_page())
    await screen.page.goto("/?new")
    await screen.box.fill("A plain form.")
    await screen.button("Send").click()
    await expect(screen.articles.first).to_contain_text("A plain form.")
    while "You said: A plain form." not in await screen.feed.inner_text():
        await screen.page.reload()
    dead = screen.page.locator("button[type=button]:not([popovertarget]), .keys").filter(
        visible=True
    )
    await expect(dead).to_have_count(0)
    await screen.box.fill("Half a thought.")
    await screen.button("Compact").click()
    await expect(screen.page.get_by_role("alert")).to_contain_text("nothing to compress")
    await expect(screen.page.get_by_text("Half a thought.")).to_be_visible()
    await screen.page.get_by_role("link", name="Go back").click()
    links = screen.page.get_by_role("link", name="What the model sees")
    foot, box = await links.bounding_box(), await screen.box.bounding_box()
    assert foot is not None
    assert box is not None
    assert foot["y"] > box["y"]
    await links.click()
    await screen.page.locator("summary", has_text="You, message 1").click()
    await screen.button("Pin").click()
    await expect(screen.articles.first.get_by_text("Pinned")).to_be_visible()
    texts = [f"Message {n}." for n in range(100)]
    await screen.page.goto(imported(product, *texts))
    for shown in ("Message 69.", "Message 0."):
        await screen.page.get_by_role("link", name="Older messages").click()
        await expect(screen.articles.filter(has_text=shown)).to_have_count(1)
    await screen.page.get_by_role("link", name="To the end").click()
    await expect(screen.articles.last).to_contain_text("Message 99.")
    await screen.box.fill("Good evening.")
    await screen.button("Send").click()
    await expect(screen.feed.get_by_text("Good evening.", exact=True)).to_be_in_viewport()
    await context.close()


@pytest.mark.parametrize(
    ("locale", "shown", "found"),
    [
        ("en-GB", ["00:20", "05:07", "1 Mar, 23:59", "31 Dec 2025, 13:05"], "2 Mar 2026, 05:07"),
        (
            "en-US",
            ["12:20 AM", "5:07 AM", "Mar 1, 11:59 PM", "Dec 31, 2025, 1:05 PM"],
            "Mar 2, 2026, 5:07 AM",
        ),
    ],
)
async def test_times_are_those_of_the_readers_zone_and_language(
    product: RunningServer,
    browser: Browser,
    locale: str,
    shown: list[str],
    found: str,
) -> None:
    context = await browser.new_context(
        base_url=product.base_url,
        storage_state=await sign_in(product, browser),
        # Five hours and three quarters: nobody's server stands there by chance.
        timezone_id="Asia/Kathmandu",
        locale=locale,
    )
    page = await context.new_page()
    await page.clock.set_fixed_time("2026-03-02T06:00:00Z")
    written = ["2026-03-01T18:35Z", "2026-03-01T23:22Z", "2026-03-01T18:14Z", "2025-12-31T07:20Z"]
    texts = [f"A {bird} of {locale}." for bird in ("siskin", "fieldfare", "redwing", "bunting")]
    await page.goto(imported(product, *texts, written=written))
    times = page.get_by_role("log", name="Messages").get_by_role("time")
    await expect(times).to_have_text([alike(text) for text in shown])
    # The pages without a conversation give the year as well; a search says how long ago it was.
    await page.goto("/search/?q=fieldfare")
    time = page.get_by_role("main").locator(".hits time").first
    await expect(time).to_have_text("6 hours ago")
    await expect(time).to_have_attribute("title", alike(found))
    await page.goto("/admin/chatapp/conversation/")
    imported_now = page.get_by_role("table").get_by_role("time").first
    at = datetime.fromisoformat(await imported_now.get_attribute("datetime") or "")
    minute = at.astimezone(ZoneInfo("Asia/Kathmandu")).minute
    await expect(imported_now).to_have_text(re.compile(rf"\d:{minute:02}"))
    await context.close()


def alike(text: str) -> re.Pattern[str]:
    """Before AM and PM, some versions of a browser write a space that is narrow."""
    return re.compile(f"^{re.escape(text)}$".replace(r"\ ", r"\s"))


async def test_the_composer_stays_above_a_telephones_keyboard(screen: Screen) -> None:
    """Some browsers leave the page as high as it was, and say only what of it can be seen."""
    await screen.ask("Hello.")
    await screen.page.evaluate(
        """() => {
            Object.defineProperty(visualViewport, "height", {value: 500});
            visualViewport.dispatchEvent(new Event("resize"));
        }"""
    )
    await expect(screen.button("Send")).to_be_in_viewport()
    box = await screen.button("Send").bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= 500


async def test_on_a_narrow_screen_the_navigation_is_a_dialog(
    product: RunningServer, browser: Browser, model: RunningUpstream
) -> None:
    context = await browser.new_context(
        base_url=product.base_url,
        reduced_motion="reduce",  # What slides in has a place of its own only at the end.
        viewport={"width": 390, "height": 800},
        storage_state=await sign_in(product, browser),
    )
    screen = Screen(await context.new_page())
    await screen.page.goto("/?new")
    await expect(screen.page.get_by_role("navigation")).to_have_count(0)
    await screen.button("Conversations").click()
    dialog = screen.page.get_by_role("dialog", name="Conversations")
    await expect(dialog.get_by_role("navigation", name="Conversations")).to_be_visible()
    await screen.page.keyboard.press("Escape")
    await expect(dialog).to_be_hidden()
    assert await screen.page.evaluate("document.documentElement.scrollWidth") <= 390
    model.script({"text": MARKDOWN})
    await screen.ask("Show me a list, a table and some code.")
    # The drawer is a sheet from below, and everything is as large as a finger.
    await screen.button("What the model sees").click()
    drawer = screen.page.get_by_role("complementary", name="What the model sees")
    await expect(drawer).to_contain_text("kept free for the reply")
    sheet = await drawer.bounding_box()
    assert sheet is not None
    assert (sheet["x"], sheet["width"], sheet["y"] + sheet["height"]) == (0, 390, 800)
    assert await screen.page.evaluate(SMALL) == []
    for opened in ("Conversations", "Conversation settings"):
        await screen.button(opened).click()
        await expect(screen.page.get_by_role("dialog", name=opened)).to_be_visible()
        assert await screen.page.evaluate(SMALL) == []
        await screen.page.keyboard.press("Escape")
    for path in ("", "settings/", "search/?q=list", "?archived"):
        await screen.page.goto(f"/{path}")
        assert await screen.page.evaluate("document.documentElement.scrollWidth") <= 390
        assert await screen.page.evaluate(SMALL) == []
    await context.close()
