"""The rows of the table of states that no other module shows, and what must not be lost."""

from __future__ import annotations

import asyncio
import re

import pytest
from playwright.async_api import BrowserContext, FilePayload, Route, WebSocketRoute, expect

from tests.browser.screen import Screen
from tests.browser.scripts import FOR_EVER, pausing
from tests.upstreams import RunningUpstream

pytestmark = pytest.mark.browser

PARAGRAPHS = [
    f"Paragraph number {n} of a reply that is longer than the screen.\n\n" for n in range(60)
]
DROP = """([name, text]) => {
    const files = new DataTransfer();
    files.items.add(new File([text], name));
    document.querySelector("#text").dispatchEvent(
        new DragEvent("drop", {dataTransfer: files, bubbles: true, cancelable: true}));
}"""


async def test_empty_a_starter_fills_the_box_and_does_not_send(screen: Screen) -> None:
    starter = screen.page.get_by_role("list").get_by_role("button", name=re.compile("REST API"))
    await starter.click()
    await expect(screen.box).to_have_value(re.compile("REST API"))
    await expect(screen.articles).to_have_count(0)
    # Which model will answer is said before the first message.
    await expect(screen.page.locator(".top .model")).to_have_text("fake-model")


async def test_empty_on_a_small_screen_is_read_from_its_top(screen: Screen) -> None:
    """Breaks when: a page with nothing to follow is scrolled to its end."""
    await screen.page.set_viewport_size({"width": 390, "height": 500})
    await screen.page.reload()
    await expect(screen.box).to_be_focused()
    await expect(screen.page.get_by_text("never runs out of page")).to_be_in_viewport(ratio=1)


async def test_waiting_says_for_whom_and_can_be_stopped(
    screen: Screen, model: RunningUpstream
) -> None:
    await screen.ask("Hello.")
    model.script({"steps": [{"delay": 60}]})
    await screen.send("Are you there?")
    await expect(screen.articles.last).to_contain_text(
        re.compile(r"Waiting for fake-model · \d+ s")
    )
    # The question near the top; what is below it waits for the reply.
    question, scroller = screen.articles.nth(2), screen.page.locator("#scroller")
    asked, whole = await question.bounding_box(), await scroller.bounding_box()
    assert asked is not None
    assert whole is not None
    assert asked["y"] + asked["height"] < whole["y"] + 0.4 * whole["height"]
    await screen.button("Stop").click()
    await expect(screen.articles.last).to_contain_text("Stopped")


async def test_waiting_for_a_busy_server_is_told_after_a_reload_too(
    screen: Screen, model: RunningUpstream
) -> None:
    """Breaks when: the page is made without the reason for which the reply is late."""
    await screen.ask("Hello.")
    model.script({"status": 429, "headers": {"Retry-After": "15"}}, {"text": "Here I am."})
    await screen.send("Are you there?")
    busy = re.compile(
        r"Waiting for fake-model · \d+ s · the model server is busy, asked again in \d+"
    )
    await expect(screen.articles.last).to_contain_text(busy)
    await screen.page.reload()
    await expect(screen.articles.last).to_contain_text(busy)
    await expect(screen.articles.last).to_contain_text("Here I am.", timeout=30_000)
    await expect(screen.page.get_by_text("asked again")).to_be_hidden()


@pytest.mark.parametrize("kind", ["text", "reasoning"])
async def test_waiting_ends_when_something_comes(
    screen: Screen, model: RunningUpstream, kind: str
) -> None:
    """Whoever reasons is said to be thinking until the first text comes.

    Breaks when: the line that says Waiting is not hidden for this kind of beginning; or Thinking
    does not come with reasoning, or stays with text.
    """
    steps = [{kind: "The beginning."}, {"wait": None}, {"text": "A word."}, {"delay": FOR_EVER}]
    model.script({"steps": steps})
    await screen.send("Are you there?")
    reply, thinking = screen.articles.last, screen.articles.last.get_by_text("Thinking")
    await expect(reply.get_by_text("The beginning.").first).to_be_attached()
    await expect(reply).to_have_attribute("aria-busy", "true")
    await expect(screen.page.get_by_text("Waiting for")).to_be_hidden()
    if kind == "reasoning":
        await expect(thinking).to_be_visible()
        await expect(reply.locator(".waiting [data-since]")).to_have_text(re.compile(r"^ · \d+ s$"))
        await expect(reply.locator("summary")).to_have_text("The beginning.")
    model.release()
    await expect(reply.get_by_text("A word.")).to_be_visible()
    await expect(thinking).to_be_hidden()


async def test_streaming_follows_lets_go_and_comes_back(
    screen: Screen, model: RunningUpstream
) -> None:
    await screen.ask("Hello.")
    model.script(pausing(*PARAGRAPHS, seconds=0.1))
    await screen.send("A long one.")
    scroller = screen.page.locator("#scroller")
    await expect(screen.articles.last).to_contain_text("Paragraph number 20 ")
    away = "scroller => scroller.scrollHeight - scroller.clientHeight - scroller.scrollTop"
    assert await scroller.evaluate(away) < 60
    await scroller.hover()
    # So little lets go already; the pill comes when there is more to see.
    await screen.page.mouse.wheel(0, -4)
    pill = screen.page.get_by_role("button", name="New text")
    await expect(pill).to_be_visible()
    top = await scroller.evaluate("scroller => scroller.scrollTop")
    await expect(screen.articles.last).to_contain_text("Paragraph number 40 ")
    assert await scroller.evaluate("scroller => scroller.scrollTop") == top
    await pill.click()
    await expect(pill).to_be_hidden()
    await expect(screen.button("Stop")).to_be_hidden()
    assert await scroller.evaluate(away) < 60


async def test_new_text_is_said_of_new_text_only(
    screen: Screen, signed_in: BrowserContext, model: RunningUpstream
) -> None:
    """Not of lines that are broken anew or of a mark that is set.

    Breaks when: ``changed`` in ``scroll.js`` asks how high the feed is, or the observer does not
    look how high the last message has become.
    """
    page = screen.page
    model.script({"text": "".join(PARAGRAPHS).replace("\n\n", " ")})
    await screen.ask("A long one.")
    await page.locator("#scroller").hover()
    await page.mouse.wheel(0, -2000)
    await page.keyboard.press("Control+Shift+E")
    await expect(page.locator("#drawer-body")).to_contain_text("kept free for the reply")
    await page.locator("#seen-1 summary").click()
    await page.locator("#seen-1").get_by_role("button", name="Pin").click()
    await expect(screen.articles.first.get_by_text("Pinned")).to_be_attached()
    pill = page.get_by_role("button", name="New text")
    await expect(pill).to_be_hidden()
    other = Screen(await signed_in.new_page())
    await other.page.goto(page.url)
    await other.ask("From elsewhere.")
    await expect(pill).to_be_visible()


async def test_what_is_selected_in_a_streaming_reply_stays_selected(
    screen: Screen, model: RunningUpstream
) -> None:
    await screen.ask("Hello.")
    model.script(pausing(*PARAGRAPHS[:30], seconds=0.1))
    await screen.send("A long one.")
    await expect(screen.articles.last).to_contain_text("Paragraph number 5 ")
    await (
        screen.articles.last.locator(".closed > p")
        .nth(1)
        .evaluate("paragraph => getSelection().selectAllChildren(paragraph)")
    )
    await expect(screen.articles.last).to_contain_text("Paragraph number 15 ")
    selected = await screen.page.evaluate("getSelection().toString()")
    assert selected.strip() == PARAGRAPHS[1].strip()


async def test_a_reply_that_ends_disturbs_nobody_who_writes(
    screen: Screen, model: RunningUpstream
) -> None:
    await screen.ask("Hello.")
    model.script(pausing("One,", " two,", " three.", seconds=0.5))
    await screen.send("Count.")
    await expect(screen.articles.last).to_contain_text("One,")
    await screen.box.focus()
    # Begun with an input method, and not yet decided.
    session = await screen.page.context.new_cdp_session(screen.page)
    composed = {"text": "にほ", "selectionStart": 2, "selectionEnd": 2}
    await session.send("Input.imeSetComposition", composed)
    await expect(screen.articles.last).to_contain_text("three.")
    await expect(screen.status).to_have_text("Answer complete")
    await expect(screen.box).to_be_focused()
    await session.send("Input.insertText", {"text": "日本"})
    await expect(screen.box).to_have_value("日本")


async def test_an_error_says_what_now_and_counts_down(
    screen: Screen, model: RunningUpstream
) -> None:
    await screen.ask("Hello.")
    refusal = {"status": 429, "message": "Slow down, please.", "headers": {"Retry-After": "90"}}
    model.script(*[refusal] * 4)
    await screen.send("And now?")
    card = screen.page.get_by_role("alert").filter(has_text="Try again in")
    await expect(card).to_contain_text(re.compile(r"Try again in [78]\d s"))
    await expect(card.get_by_role("button", name="Change model")).to_be_visible()
    await card.get_by_text("What the model server said").click()
    await expect(card).to_contain_text("Slow down, please.")
    model.reset()
    await card.get_by_role("button", name="Retry").click()
    await expect(screen.articles.last).to_contain_text("You said: And now?")


async def test_a_reply_that_breaks_keeps_its_text(screen: Screen, model: RunningUpstream) -> None:
    """Breaks when: the card does not name the button that goes on from that text, or names it still
    when the conversation has gone on without it."""
    await screen.ask("Hello.")
    model.script({"steps": [{"text": "The beginning of an answer"}, {"delay": 0.5}, {"cut": True}]})
    await screen.send("Go on.")
    await expect(screen.page.get_by_role("alert")).to_be_visible()
    await expect(screen.articles.last).to_contain_text("The beginning of an answer")
    await expect(screen.button("Continue")).to_be_visible()
    sentence = screen.page.get_by_text("Continue goes on from the text so far.")
    await expect(screen.page.get_by_role("alert").filter(has=sentence)).to_be_visible()
    await screen.ask("And now?")
    await expect(screen.page.get_by_text("broke off before it was finished")).to_be_visible()
    await expect(sentence).to_be_hidden()


async def test_offline_is_said_and_the_box_stays_on(screen: Screen) -> None:
    await screen.ask("Hello.")

    async def refuse(socket: WebSocketRoute) -> None:
        await socket.close(code=1011)

    await screen.page.route_web_socket("**/ws/**", refuse)
    await screen.page.reload()
    await expect(screen.page.get_by_role("alert")).to_contain_text("No connection")
    await expect(screen.box).to_be_editable()


async def test_a_chat_that_moved_on_is_shown_or_branched(
    screen: Screen, signed_in: BrowserContext
) -> None:
    await screen.ask("Hello.")
    behind = Screen(await signed_in.new_page())
    # This tab hears nothing of what happens.
    await behind.page.route_web_socket("**/ws/**", lambda socket: None)
    await behind.page.goto(screen.page.url)
    await screen.ask("From the first tab.")
    await behind.send("From the second tab.")
    card = behind.page.get_by_role("alert").filter(has_text="moved on")
    await expect(card.get_by_role("button", name="Show")).to_be_visible()
    await expect(behind.box).to_have_value("From the second tab.")
    await behind.page.unroute_all()
    await card.get_by_role("button", name="Send as branch").click()
    await expect(behind.page).not_to_have_url(screen.page.url)
    await expect(behind.articles.nth(2)).to_contain_text("From the second tab.")
    await expect(behind.articles.first).to_contain_text("Hello.")
    await expect(behind.feed).not_to_contain_text("From the first tab.")


async def test_a_branch_that_is_refused_is_not_made(
    screen: Screen, signed_in: BrowserContext
) -> None:
    """What is in the box by then is what is sent, and stays when it cannot be.

    Breaks when: the branch is made before its message is taken; or the text of the first try is
    sent, whatever has become of it; or it stays a draft where it was not sent.
    """
    await screen.ask("Hello.")
    behind = Screen(await signed_in.new_page())
    await behind.page.route_web_socket("**/ws/**", lambda socket: None)
    await behind.page.goto(screen.page.url)
    await screen.ask("From the first tab.")
    async with behind.page.expect_response("**/draft/"):
        await behind.send("From the second tab.")
    before = await screen.listed()
    too_long = "far too long " * 2000
    await behind.box.fill(too_long)
    await behind.button("Send as branch").click()
    alert = behind.page.get_by_role("alert")
    await expect(alert.filter(has_text="Shorten it by about")).to_be_visible()
    await expect(alert.get_by_role("button", name="Change model")).to_be_visible()
    await expect(behind.box).to_have_value(too_long)
    assert await screen.listed() == before
    await behind.page.unroute_all()
    await behind.send("From the second tab, shorter.")
    await behind.button("Send as branch").click()
    await expect(behind.page).not_to_have_url(screen.page.url)
    await expect(behind.articles.nth(2)).to_contain_text("From the second tab, shorter.")
    assert len(await screen.listed()) == len(before) + 1
    await screen.page.evaluate("localStorage.clear()")
    await screen.page.reload()
    await expect(screen.box).to_have_value("")


async def test_what_is_refused_comes_back_before_what_was_written_meanwhile(
    screen: Screen,
) -> None:
    """Breaks when: the refused text is dropped because the box is not empty."""
    await screen.ask("Hello.")
    refusal = {"error": {"code": "x", "message": "Not this.", "retryable": False}}
    held: asyncio.Queue[Route] = asyncio.Queue()
    await screen.page.route("**/messages/", held.put)
    await screen.send("The first thought.")
    await screen.box.fill("The second.")
    await expect(screen.articles).to_have_count(3)
    refused = await held.get()
    await refused.fulfill(status=422, json=refusal)
    await expect(screen.page.get_by_role("alert")).to_contain_text("Not this.")
    await expect(screen.box).to_have_value("The first thought.\nThe second.")


async def test_too_large_offers_another_place(screen: Screen) -> None:
    await screen.ask("Hello.")
    await screen.send("far too long " * 2000)
    alert = screen.page.get_by_role("alert")
    await expect(alert.get_by_role("button", name="Change model")).to_be_visible()
    await expect(alert.get_by_role("button", name="Continue in a new conversation")).to_be_visible()


async def test_signed_out_is_said_and_the_draft_stays(
    screen: Screen, signed_in: BrowserContext
) -> None:
    await screen.ask("Hello.")
    await signed_in.clear_cookies(name="sessionid")
    await screen.send("Do not lose this.")
    banner = screen.page.get_by_role("alert").filter(has_text="signed out")
    await expect(banner.get_by_role("link", name="Sign in")).to_be_visible()
    await expect(screen.box).to_have_value("Do not lose this.")


async def test_a_dropped_text_file_becomes_a_fenced_block(screen: Screen) -> None:
    await screen.ask("Hello.")
    await screen.page.evaluate(DROP, ["notes.md", "some ``` code"])
    await expect(screen.box).to_have_value("```` notes.md\nsome ``` code\n````\n")
    await screen.page.evaluate(DROP, ["picture.png", "\0\1"])
    await expect(screen.page.get_by_role("alert")).to_contain_text("picture.png is not a text file")


async def test_a_text_file_can_be_chosen(screen: Screen) -> None:
    """Where there is nothing to drop it from. Breaks when: only a drop is listened to."""
    async with screen.page.expect_file_chooser() as choosing:
        await screen.button("Add text files").click()
    chooser = await choosing.value
    buffer = "naïve\n日本".encode()
    await chooser.set_files(FilePayload(name="notes.txt", mimeType="text/plain", buffer=buffer))
    await expect(screen.box).to_have_value("``` notes.txt\nnaïve\n日本\n```\n")


async def test_100_000_pasted_characters_are_all_there(screen: Screen) -> None:
    await screen.ask("Hello.")
    text = "0123456789" * 10_000
    await screen.box.focus()
    await screen.page.keyboard.insert_text(text)
    await expect(screen.box).to_have_value(text)
    async with screen.page.expect_response("**/draft/"):
        await screen.box.press("End")
        await screen.page.keyboard.type("x")
    await screen.page.evaluate("localStorage.clear()")
    await screen.page.reload()
    await expect(screen.box).to_have_value(f"{text}x")


async def test_a_narrow_window_dragged_in_mid_stream_keeps_its_end_in_view(
    screen: Screen, model: RunningUpstream
) -> None:
    await screen.ask("Hello.")
    model.script({"steps": [*({"text": one} for one in PARAGRAPHS), {"delay": 120}]})
    await screen.send("A long one.")
    await expect(screen.articles.last).to_contain_text("Paragraph number 59 ")
    away = "scroller => scroller.scrollHeight - scroller.clientHeight - scroller.scrollTop < 60"
    for width in (1280, 768, 390):
        await screen.page.set_viewport_size({"width": width, "height": 700})
        await expect(screen.articles.last.get_by_text("Paragraph number 59 ")).to_be_in_viewport()
        assert await screen.page.locator("#scroller").evaluate(away)
    await screen.button("Stop").click()


async def test_a_reply_ended_in_the_background_is_notified(screen: Screen) -> None:
    page = screen.page
    await page.context.grant_permissions(["notifications"])
    # The browser's own notifications, remembered; a page under test is never in the background. The
    # headless shell grants the permission, and goes on to say that it was denied.
    await page.add_init_script(
        """
        window.notes = [];
        const Real = Notification;
        window.Notification = class extends Real {
            static get permission() { return "granted"; }
            constructor(title, options) { super(title, options); window.notes.push(options.body); }
        };
        Object.defineProperty(document, "hidden", {get: () => window.away === true});
        """
    )
    await page.goto("/settings/")
    notify, saved = page.get_by_label("Notification when a reply ends"), page.get_by_role("status")
    await notify.select_option("on")
    await expect(saved).to_have_text("Saved.")
    await page.goto("/?new")
    await screen.ask("Hello.")
    await screen.ask("Someone looks.")
    assert await page.evaluate("window.notes") == []
    await page.evaluate("window.away = true")
    await screen.ask("Nobody looks.")
    # Told just after the page shows that the reply has ended.
    await page.wait_for_function("() => window.notes.length")
    assert await page.evaluate("window.notes") == ["Hello."]
    await page.goto("/settings/")
    await notify.select_option("off")
    await expect(saved).to_have_text("Saved.")


async def test_a_draft_that_the_server_refused_is_not_lost(screen: Screen) -> None:
    await screen.ask("Hello.")

    async def fail(route: Route) -> None:
        await route.fulfill(status=503, json={"error": {"code": "x", "message": "Not now."}})

    await screen.page.route("**/messages/", fail)
    await screen.send("Do not lose this.")
    await expect(screen.page.get_by_role("alert")).to_contain_text("Not now.")
    await expect(screen.box).to_have_value("Do not lose this.")
    await expect(screen.articles).to_have_count(2)
