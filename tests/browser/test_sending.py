"""From the press of Enter to the row in the database, when the way is slow or gone."""

from __future__ import annotations

import asyncio
import re

import pytest
from playwright.async_api import Page, WebSocketRoute, expect

from tests.browser.screen import Screen
from tests.browser.scripts import pausing, unending
from tests.upstreams import RunningUpstream

pytestmark = pytest.mark.browser


class Line:
    """The page's websocket to the server, which can be cut and mended."""

    def __init__(self) -> None:
        self.works = True
        self._socket: WebSocketRoute | None = None

    async def lay(self, page: Page) -> None:
        """Every connection of the page goes this way from its next load on."""
        await page.route_web_socket("**/ws/**", self._opened)

    async def _opened(self, socket: WebSocketRoute) -> None:
        if not self.works:
            await socket.close(code=1011)
            return
        self._socket = socket
        socket.connect_to_server()

    async def cut(self) -> None:
        """End the connection; none comes about until ``works`` is true again."""
        self.works = False
        assert self._socket is not None
        await self._socket.close(code=1011)


async def test_what_began_a_conversation_is_no_draft_any_more(screen: Screen) -> None:
    """Breaks when: ``start`` in ``drafts.js`` leaves what was acknowledged."""
    await screen.box.fill("What I had in mind")
    await screen.page.reload()
    await expect(screen.box).to_have_value("What I had in mind")
    await screen.ask("Hello.")
    await screen.page.goto("/?new")
    await expect(screen.box).to_have_value("")


async def test_stop_and_queue_both_fit_a_phone(screen: Screen, model: RunningUpstream) -> None:
    """Breaks when: the words of all buttons stay in the row, so that Queue leaves the screen."""
    await screen.page.set_viewport_size({"width": 390, "height": 844})
    model.script(unending("Once upon a time"))
    await screen.send("Tell me a story.")
    await expect(screen.button("Stop")).to_be_visible()
    await screen.box.fill("A short one.")
    edges = {}
    for name in ("Compact", "Stop", "Queue"):
        box = await screen.button(name).bounding_box()
        assert box is not None
        edges[name] = box["x"] + box["width"]
    assert max(edges.values()) <= 382, edges
    await screen.button("Stop").click()
    await expect(screen.button("Stop")).to_be_hidden()


async def test_what_is_not_confirmed_in_5_seconds_is_said(screen: Screen) -> None:
    page = screen.page
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await screen.ask("Hello.")
    await page.clock.install()
    connected = asyncio.Event()
    page.on("websocket", lambda socket: socket.on("framereceived", lambda _: connected.set()))
    await page.reload()
    # A connection that comes later would have the message sent once more.
    await connected.wait()
    # It neither arrives nor fails.
    await page.route("**/messages/", lambda route: None)
    # From here on the page's time passes only as it is told to.
    await page.clock.pause_at(await page.evaluate("Date.now()") / 1000 + 1)
    await screen.send("Are you there?")
    pending = screen.articles.filter(has_text="Are you there?")
    await expect(pending).to_be_visible()
    await expect(screen.box).to_have_value("")
    await page.clock.fast_forward(4_000)
    await expect(pending.get_by_text("Not sent")).to_be_hidden()
    await page.clock.fast_forward(1_000)
    await expect(pending.get_by_text("Not sent")).to_be_visible()
    await pending.get_by_role("button", name="Copy").click()
    await expect(pending.get_by_role("button", name="Copied")).to_be_visible()
    assert await page.evaluate("navigator.clipboard.readText()") == "Are you there?"
    await expect(pending.get_by_role("button", name="Retry")).to_be_visible()


async def test_after_a_pause_offline_the_page_sends_and_catches_up_by_itself(
    screen: Screen,
) -> None:
    page, line = screen.page, Line()
    await screen.ask("Hello.")
    await line.lay(page)
    await page.reload()
    await expect(screen.articles).to_have_count(2)
    await page.route("**/messages/", lambda route: route.abort())
    await line.cut()
    await expect(page.get_by_role("alert")).to_contain_text("No connection. Your text is kept")
    await expect(screen.box).to_be_editable()
    await screen.send("Sent in a tunnel.")
    await expect(page.get_by_text("Not sent")).to_be_visible()
    await page.unroute("**/messages/")
    line.works = True
    await expect(screen.articles.last).to_contain_text("You said: Sent in a tunnel.")
    await expect(page.get_by_text("No connection")).to_be_hidden()
    await expect(page.get_by_text("Not sent")).to_be_hidden()
    await expect(screen.articles).to_have_count(4)


async def written_offline(screen: Screen, *texts: str) -> None:
    """Send them where no request of the page arrives."""
    await screen.page.route("**/messages/", lambda route: route.abort())
    unsent = screen.feed.get_by_text("Not sent").filter(visible=True)
    for number, text in enumerate(texts, start=1):
        await screen.send(text)
        await expect(screen.articles.last).to_contain_text(text)
        await expect(unsent).to_have_count(number)
    await screen.page.unroute("**/messages/")


@pytest.mark.parametrize("reloaded", [True, False])
async def test_all_that_was_written_offline_arrives_in_its_order(
    screen: Screen, reloaded: bool
) -> None:
    """Breaks when: the browser keeps the last one only, sends several at once, or has not looked
    at the page before it says which message it has seen."""
    page = screen.page
    await screen.ask("Hello.")
    await written_offline(screen, "First ALPHA.", "Then BETA.")
    await expect(screen.feed.get_by_text("Not sent").first).to_be_visible()
    if reloaded:
        await page.reload()
    else:
        await screen.button("Retry").last.click()
    await expect(screen.articles).to_have_count(6)
    await expect(screen.articles.last).to_contain_text("You said: Then BETA.")
    await expect(screen.feed.locator(".body")).to_have_text(
        [
            *("Hello.", "You said: Hello."),
            *("First ALPHA.", "You said: First ALPHA."),
            *("Then BETA.", "You said: Then BETA."),
        ]
    )
    await expect(page.get_by_role("alert")).to_have_count(0)
    await expect(screen.feed.get_by_text("Not sent")).to_have_count(0)
    await page.reload()
    await expect(screen.articles).to_have_count(6)
    await expect(screen.box).to_have_value("")


async def test_one_that_is_refused_keeps_the_others(screen: Screen) -> None:
    """Breaks when: what follows a refused message is forgotten, or goes out without it."""
    page = screen.page
    await screen.ask("Hello.")
    await written_offline(screen, "far too long " * 2000, "And BETA.")
    await screen.button("Retry").first.click()
    await expect(page.get_by_role("alert")).to_contain_text("has room for")
    await expect(screen.box).to_have_value(re.compile("far too long"))
    await expect(screen.articles.last).to_contain_text("And BETA.")
    await expect(screen.feed.get_by_text("Not sent")).to_be_visible()
    await screen.box.fill("")
    await screen.button("Retry").click()
    await expect(screen.articles.last).to_contain_text("You said: And BETA.")


async def test_what_waits_can_be_changed_removed_or_sent_now(
    screen: Screen, model: RunningUpstream
) -> None:
    await screen.ask("Hello.")
    model.script(unending("Once upon a time"))
    await screen.send("A story.")
    await expect(screen.articles.last).to_contain_text("Once upon a time")
    waits = screen.page.locator("#queued").filter(has_text="Will be sent when the reply ends")
    await screen.send("Shorter, pleas")
    await expect(waits).to_be_visible()
    await screen.button("Edit").last.click()
    await expect(waits).to_have_count(0)
    await expect(screen.box).to_have_value("Shorter, pleas")
    await screen.box.press("End")
    await screen.box.press_sequentially("e.")
    await screen.box.press("Enter")
    await expect(waits).to_contain_text("Shorter, please.")
    await screen.button("Remove").click()
    await expect(waits).to_have_count(0)
    await screen.send("A poem instead.")
    await expect(waits).to_contain_text("A poem instead.")
    await screen.page.reload()
    await screen.button("Send now").click()
    await expect(screen.articles.last).to_contain_text("You said: A poem instead.")
    await expect(screen.articles.nth(3)).to_contain_text("Stopped")
    await expect(screen.articles).to_have_count(6)


async def test_what_waits_leaves_the_reader_where_the_reader_is(
    screen: Screen, model: RunningUpstream
) -> None:
    """Breaks when: the page goes to its end for a message that is not asked yet."""
    await screen.ask("Hello.")
    model.script(unending("A paragraph that is read.\n\n" * 60))
    await screen.send("A story.")
    await expect(screen.articles.last.get_by_text("A paragraph")).to_have_count(60)
    scroller = screen.page.locator("#scroller")
    before = await scroller.evaluate("scroller => (scroller.scrollTop -= 600)")
    await screen.send("Shorter, please.")
    await expect(screen.page.get_by_text("Will be sent when the reply ends")).to_be_visible()
    assert await scroller.evaluate("scroller => scroller.scrollTop") == before > 0
    await screen.button("Send now").click()
    await expect(screen.articles).to_have_count(6)


async def test_a_stopped_reply_says_how_far_it_came_and_can_go_on(
    screen: Screen, model: RunningUpstream
) -> None:
    await screen.ask("Hello.")
    model.script(unending("Once upon a time there was"), pausing(" a page.", seconds=0))
    await screen.send("A story.")
    await expect(screen.articles.last).to_contain_text("there was")
    await screen.button("Stop").click()
    reply = screen.articles.nth(3)
    await expect(reply).to_contain_text(re.compile(r"Stopped after ~\d+ tokens"))
    await expect(reply.get_by_role("button", name="Regenerate")).to_have_count(1)
    await reply.get_by_role("button", name="Continue").click()
    await expect(screen.articles.last).to_contain_text("a page.")
    await expect(reply).to_contain_text("there was")
    await expect(reply.get_by_role("button", name="Regenerate")).to_have_count(0)
