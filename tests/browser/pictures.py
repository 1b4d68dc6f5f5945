"""What ``tests.browser.screenshots`` takes pictures of: how each state is reached, in groups."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Literal

from playwright.async_api import BrowserContext, Route, WebSocketRoute, expect

from tests.browser.screen import Screen
from tests.browser.scripts import MARKDOWN, held_summary, unending
from tests.browser.test_compression import DETAILS, RULE, fill
from tests.browser.test_threshold import past_the_threshold, until_one_is_prepared
from tests.servers import ROOT, RunningServer, manage, start_server
from tests.upstreams import RunningUpstream

FOLDER = ROOT / "var" / "screenshots"
WIDTHS = {1440: 900, 1280: 860, 768: 1024, 390: 844}
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
# What a server is started with here, and started with again.
GIVEN = ("OPENAI_BASE_URL", "OPENAI_API_KEY", "CONTEXT_WINDOW")
SLOW_DOWN = {"status": 429, "message": "Slow down.", "headers": {"Retry-After": "90"}}


async def picture(
    screen: Screen, name: str, reach: Callable[[], Awaitable[None]] | None = None
) -> None:
    """The page as it is now, in each width and theme.

    ``reach`` brings about, in each width, what another width does not keep open.
    """
    for width, height in WIDTHS.items():
        await screen.page.set_viewport_size({"width": width, "height": height})
        if reach is not None:
            await reach()
        for theme in THEMES:
            await screen.page.emulate_media(color_scheme=theme, reduced_motion="reduce")
            path = FOLDER / f"{name}-{width}-{theme}.png"
            await screen.page.screenshot(path=path, animations="disabled")
    await screen.page.set_viewport_size({"width": 1280, "height": 860})


async def close_menus(screen: Screen) -> None:
    """Close every menu, and the list of conversations where it is a dialog."""
    await screen.page.evaluate(
        """() => {
          document.querySelectorAll(":popover-open").forEach((one) => one.hidePopover());
          document.querySelector("#nav-dialog").close();
        }"""
    )


async def open_list(screen: Screen) -> None:
    """Have the list of conversations in view, which is behind a button on narrow screens."""
    await close_menus(screen)
    button = screen.page.get_by_role("main").get_by_role("button", name="Conversations")
    if await button.is_visible():
        await button.click()
    await expect(screen.page.locator("#account-button")).to_be_visible()


async def pictures_at(screen: Screen, **paths: str) -> None:
    """Pages that need nothing but their address, by name."""
    for name, path in paths.items():
        await screen.page.goto(path)
        await picture(screen, name.replace("_", "-"))


async def of_replies(screen: Screen, model: RunningUpstream) -> None:
    """From the empty page to a reply that was broken off."""
    page = screen.page
    await page.goto("/?new")
    await picture(screen, "empty")
    await screen.send("far too long " * 2000)
    await expect(page.get_by_role("alert")).to_be_visible()
    await picture(screen, "empty-too-large")
    await screen.box.fill("")
    model.script({"text": MARKDOWN, "reasoning": "A list and a table, then."})
    await screen.ask("Show me a list, a table and some code.")
    await picture(screen, "answered")
    model.script({"steps": [{"wait": None}]})
    await screen.send("Are you there?")
    await expect(screen.articles.last).to_contain_text("Waiting for")
    await picture(screen, "waiting")
    await screen.button("Stop").click()
    await expect(screen.articles.last).to_contain_text("Stopped")
    model.script(unending("The beginning of an answer that is still being written"))
    await screen.send("And now a long one.")
    await expect(screen.articles.last).to_contain_text("beginning")
    await screen.box.fill("/")
    await picture(screen, "streaming-and-commands")
    await screen.send("This one waits.")
    await expect(page.get_by_text("Will be sent when")).to_be_visible()
    await picture(screen, "queued")
    await screen.button("Remove").click()
    await screen.button("Stop").click()
    await expect(screen.articles.last).to_contain_text("Stopped")
    await picture(screen, "stopped")

    async def message_menu() -> None:
        await close_menus(screen)
        more = page.get_by_role("button", name="More about this message").last
        await more.scroll_into_view_if_needed()
        await more.click()
        await expect(page.get_by_role("button", name="Branch from here")).to_be_visible()

    await picture(screen, "message-menu", message_menu)
    await close_menus(screen)
    await page.goto("/?new")
    model.script({"text": MARKDOWN}, {"text": "A better reply."})
    await screen.ask("Show me a list, a table and some code.")
    await screen.button("Regenerate").last.click()
    await expect(screen.articles.last).to_contain_text("A better reply.")
    await page.get_by_role("link", name="Answered again").click()
    await expect(page.get_by_role("heading", name="Before message 3")).to_be_visible()
    await picture(screen, "drawer-replaced")


async def of_refusals(screen: Screen, model: RunningUpstream) -> None:
    """What a model server may answer instead of a reply."""
    page = screen.page
    await page.goto("/?new")
    await screen.ask("Hello.")
    model.script(*[SLOW_DOWN] * 4)
    await screen.send("And now?")
    await expect(page.get_by_text("Try again in")).to_be_visible()
    await page.get_by_text("What the model server said").click()
    await picture(screen, "error-countdown")
    model.reset()
    model.script({"steps": [{"text": "The beginning of an answer"}, {"cut": None}]})
    await screen.button("Retry").click()
    await expect(screen.button("Continue")).to_be_visible()
    await picture(screen, "error-partial")
    model.script({"text": "As far as the model got", "finish": "length"})
    await screen.send("Write a book.")
    await expect(screen.articles.last).to_contain_text("As far as")
    await expect(screen.button("Stop")).to_be_hidden()
    await picture(screen, "cut-at-length")


async def of_losses(screen: Screen, signed_in: BrowserContext) -> None:
    """The connection, the sign-in, the other tab."""
    page = screen.page
    await page.goto("/?new")
    await screen.ask("Hello.")
    behind = Screen(await signed_in.new_page())
    await behind.page.route_web_socket("**/ws/**", lambda socket: None)
    await behind.page.goto(page.url)
    await screen.ask("From the first tab.")
    await behind.send("From the second tab.")
    await expect(behind.page.get_by_role("alert").filter(has_text="moved on")).to_be_visible()
    await picture(behind, "moved-on")
    await behind.page.close()
    await page.route("**/messages/", drop)
    await screen.send("Does this arrive?")
    await expect(page.get_by_text("Not sent")).to_be_visible()
    await picture(screen, "not-sent")
    await page.unroute("**/messages/", drop)
    await screen.button("Retry").click()
    await expect(screen.articles).to_have_count(6)
    await page.route_web_socket("**/ws/**", refuse)
    await page.reload()
    await expect(page.get_by_role("alert")).to_contain_text("No connection")
    await screen.box.fill("What was being written")
    await picture(screen, "offline")


async def drop(route: Route) -> None:
    """No answer: the request is lost."""
    await route.abort()


async def refuse(socket: WebSocketRoute) -> None:
    """The server goes away."""
    await socket.close(code=1011)


async def of_compression(screen: Screen, model: RunningUpstream) -> None:
    """From a long conversation to its summary and what stands around it."""
    page = screen.page
    model.reset()
    await page.goto("/?new")
    await fill(screen, 3)
    model.script(held_summary(RULE))
    await screen.button("Compact").click()
    await expect(page.get_by_role("progressbar")).to_be_visible()
    await picture(screen, "compressing")
    model.release()
    await expect(page.get_by_role("region", name="Compressed messages")).to_be_visible()
    await picture(screen, "compressed")
    await page.get_by_text("The whole summary").click()
    await expect(page.locator("#divider .prose")).to_be_visible()
    await picture(screen, "compressed-unfolded")
    await screen.button("View summary").click()
    await expect(page.get_by_role("heading", name="What only the messages have")).to_be_visible()
    await picture(screen, "drawer-summary")
    for view in ("Versions", "This reply"):
        await page.get_by_role("tab", name=view).click()
        await expect(page.get_by_role("tabpanel", name=view)).to_be_visible()
        await picture(screen, f"drawer-{view.lower().replace(' ', '-')}")
    await screen.button("Edit summary").click()
    await expect(page.get_by_role("textbox", name="Summary")).to_be_focused()
    await picture(screen, "drawer-edit")
    await page.keyboard.press("Escape")
    await screen.button("What the model sees").click()
    await expect(page.locator("#drawer-body")).to_contain_text("kept free for the reply")
    await picture(screen, "drawer-context")
    await page.keyboard.press("Escape")
    await screen.button("Conversation settings").click()
    await expect(page.get_by_role("heading", name="Conversation settings")).to_be_visible()
    await picture(screen, "settings")
    await page.keyboard.press("Escape")
    await page.keyboard.press("Control+/")
    await picture(screen, "keys")
    await page.keyboard.press("Escape")
    await screen.send("far too long " * 2000)
    await expect(page.get_by_role("alert")).to_be_visible()
    await picture(screen, "too-large")
    await page.reload()
    await screen.box.fill("")
    await of_a_failed_compression(screen, model)


async def of_a_failed_compression(screen: Screen, model: RunningUpstream) -> None:
    """The draft comes too late: someone changed the summary while it was written."""
    for number in range(3):
        await screen.ask(f"And number {number}? {DETAILS}")
    model.script(held_summary(RULE))
    await screen.button("Compact").click()
    await expect(screen.page.get_by_role("progressbar")).to_be_visible()
    await screen.button("Edit summary").click()
    text = screen.page.get_by_role("textbox", name="Summary")
    await text.fill(f"{await text.input_value()}\n\n## Context\n- Prices are in euros.")
    await screen.button("Save summary").click()
    await expect(screen.page.locator("#drawer-body .prose")).to_contain_text("in euros")
    await screen.button("Close").click()
    model.release()
    await expect(screen.page.get_by_text("The conversation was not compressed")).to_be_visible()
    await picture(screen, "compression-failed")


async def of_a_full_window(screen: Screen, model: RunningUpstream) -> None:
    """A summary that is being prepared, and what is done without one."""
    page = screen.page
    await page.goto("/?new")
    model.script(held_summary(RULE))
    line = page.get_by_text(re.compile(r"Summarising (\d+ )?older messages"))
    await until_one_is_prepared(screen)
    await expect(line).to_be_visible()
    await picture(screen, "preparing")
    await line.get_by_role("button", name="Cancel").click()
    await expect(line).to_be_hidden()
    await screen.button("Conversation settings").click()
    await page.get_by_role("radio", name="Only when you ask").check()
    await screen.button("Save").click()
    await expect(page.get_by_role("dialog", name="Conversation settings")).to_be_hidden()
    await screen.ask(f"And all of it? {await past_the_threshold(screen)}")
    await screen.ask(f"And then? {DETAILS}")
    await expect(page.get_by_text("left out of what the model sees")).to_be_visible()
    await picture(screen, "truncated")


async def of_a_nearly_full_conversation(screen: Screen) -> None:
    """Little more fits: the way on is offered before anything is refused."""
    page = screen.page
    await page.goto("/?new")
    await screen.ask("How many words make a book?")
    await screen.button("Conversation settings").click()
    await page.get_by_role("radio", name="Only when you ask").check()
    await screen.button("Save").click()
    await expect(page.get_by_role("dialog", name="Conversation settings")).to_be_hidden()
    warning = page.locator("#nearly-full")
    for _ in range(30):
        if await warning.inner_text():
            break
        await screen.ask(f"And these? {'word ' * 150}")
    await expect(warning).to_contain_text("is nearly full")
    await picture(screen, "nearly-full")


async def of_pages(screen: Screen) -> None:
    """Everything beside the conversation, the review in the admin included."""
    page = screen.page
    await page.goto("/")
    conversation = page.url
    await pictures_at(
        screen,
        search="/search/?q=project",
        search_nothing="/search/?q=xylophone",
        person="/settings/",
        archive="/?archived",
        activity=f"{conversation}activity/",
        log="/log/",
        missing="/c/nowhere/",
        password="/accounts/password_change/",
        admin="/admin/",
        admin_conversations="/admin/chatapp/conversation/",
        admin_summaries="/admin/chatapp/summary/",
        admin_profiles="/admin/chatapp/modelprofile/",
        admin_records="/admin/chatapp/accessrecord/",
    )
    await page.goto("/log/")
    await page.locator(".log-calls time").first.click()
    await picture(screen, "log-call")
    await page.goto("/settings/")
    for content, name in (("[1, 2]", "import-refused"), (CONVERSATION, "imported")):
        file = {"name": "a.json", "mimeType": "application/json", "buffer": content.encode()}
        await page.goto("/settings/")
        await page.get_by_label("A file of conversations").set_input_files(file)  # type: ignore[arg-type]
        await page.get_by_role("button", name="Import").click()
        await expect(page.get_by_role("main")).to_contain_text(re.compile("import", re.I))
        await picture(screen, name)
    await page.goto("/admin/chatapp/summary/?state=unseen")
    await page.locator("#result_list tbody th a").first.click()
    await page.get_by_role("link", name="All facts").click()
    await picture(screen, "admin-summary")
    await of_a_stale_edit(screen)
    await page.goto("/admin/chatapp/summary/?state=unseen")
    await page.locator("#result_list tbody th a").first.click()
    await page.get_by_role("link", name="All facts").click()
    await page.get_by_role("link", name=re.compile(r"\d+ messages")).click()
    await picture(screen, "admin-messages")
    await page.goto("/admin/chatapp/conversation/")
    await page.locator("#result_list tbody th a").first.click()
    await picture(screen, "admin-conversation")


async def of_a_stale_edit(screen: Screen) -> None:
    """Two people edit one summary; the second is shown both texts."""
    other = Screen(await screen.page.context.new_page())
    await other.page.goto(screen.page.url)
    for one, words in ((other, "Always answer in Scots."), (screen, "Always answer in Welsh.")):
        text = one.page.get_by_role("textbox", name="Summary")
        await text.fill((await text.input_value()).replace(RULE, words))
        await one.page.get_by_role("button", name="Save as a new version").click()
    await expect(screen.page.get_by_role("region", name="Both texts")).to_be_visible()
    await picture(screen, "admin-stale-edit")
    await other.page.close()


CONVERSATION = '[{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hi."}]'


async def of_signing_in(screen: Screen, server: RunningServer) -> None:
    """Out, and in again; at last a page whose reader was signed out elsewhere."""
    page = screen.page
    await page.goto("/?new")
    await screen.ask("Hello.")
    await page.context.clear_cookies(name="sessionid")
    await screen.send("Do not lose this.")
    await expect(page.get_by_role("alert").filter(has_text="signed out")).to_be_visible()
    await picture(screen, "signed-out")
    link = manage(server, "signin_link").strip().rpartition(" ")[2]
    await pictures_at(screen, sign_in="/accounts/login/", sign_in_link=link)
    await page.get_by_role("button", name="Sign in as").click()
    await expect(screen.box).to_be_visible()
    await pictures_at(screen, sign_in_link_spent=link)
    await page.goto("/")
    await page.locator("#account-button").click()
    await screen.button("Sign out").click()
    await picture(screen, "sign-out")
    await page.goto("/accounts/login/")
    await page.get_by_label("Username").fill("owner")
    await page.get_by_label("Password").fill("wrong")
    await page.get_by_role("button", name="Sign in").click()
    await picture(screen, "sign-in-refused")


async def of_an_interruption(
    screen: Screen, model: RunningUpstream, server: RunningServer
) -> RunningServer:
    """The process dies in the middle of a reply; the next one, which is returned, says so."""
    page = screen.page
    await page.goto("/?new")
    await screen.ask("Hello.")
    model.script(unending("The beginning of an answer that its process does not survive"))
    await screen.send("And now a long one.")
    await expect(screen.articles.last).to_contain_text("survive")
    # What has come is stored once a second.
    await page.wait_for_timeout(1500)
    server.kill()
    await expect(page.get_by_role("alert").filter(has_text="No connection")).to_be_visible()
    folder = server.environment["DATABASE_URL"].removeprefix("sqlite:///").rpartition("/")[0]
    upstream, key, window = (server.environment[name] for name in GIVEN)
    again = start_server(
        Path(folder),
        port=server.port,
        OPENAI_BASE_URL=upstream,
        OPENAI_API_KEY=key,
        CONTEXT_WINDOW=window,
    )
    await expect(screen.button("Continue")).to_be_visible(timeout=90_000)
    await picture(screen, "interrupted")
    return again
