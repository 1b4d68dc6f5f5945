"""The list of conversations, search and settings, as a reader uses them."""

from __future__ import annotations

import asyncio
import re
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from playwright.async_api import Browser, Locator, Page, Route, WebSocketRoute, expect

from tests.browser.screen import Screen, imported, sign_in
from tests.browser.scripts import held, unending
from tests.servers import RunningServer, start_server
from tests.upstreams import RunningUpstream

pytestmark = [pytest.mark.browser]

# Once nothing answers any more, nobody looks again.
LOOKED_AGAIN = """before => !before.isConnected
    || !document.querySelector("#links .answering:not([hidden])")"""


def entry(screen: Screen, title: str) -> Locator:
    nav = screen.page.get_by_role("navigation", name="Conversations")
    return nav.get_by_role("listitem").filter(has_text=title)


async def test_rename_pin_archive_and_delete_with_undo(screen: Screen) -> None:
    """By the keyboard alone, once the menu is reached."""
    page = screen.page
    await screen.send("Call this one heron")
    await page.wait_for_url(re.compile("/c/"))
    await expect(screen.feed.locator("[aria-busy]")).to_have_count(0)
    await expect(entry(screen, "Call this one heron")).to_have_count(1)

    menu = page.get_by_role("button", name="Actions for Call this one heron")
    await menu.focus()
    await page.keyboard.press("Enter")
    dialog = page.get_by_role("group", name="Conversation")
    await expect(dialog.get_by_role("button", name="Rename")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("textbox", name="Title")).to_be_focused()
    await page.keyboard.type("Grey <b>heron</b>")
    await page.keyboard.press("Enter")
    await expect(entry(screen, "Grey <b>heron</b>")).to_have_count(1)
    await expect(page.get_by_role("heading", level=1)).to_have_text("Grey <b>heron</b>")

    actions = page.get_by_role("button", name="Actions for Grey <b>heron</b>")
    # Only then is the list read again.
    await expect(actions).to_be_focused()
    await page.keyboard.press("Enter")
    await dialog.get_by_role("button", name="Pin").press("Enter")
    await expect(page.get_by_text("Pinned", exact=True)).to_be_visible()

    await actions.press("Enter")
    await dialog.get_by_role("button", name="Delete").press("Enter")
    undo = page.get_by_role("button", name="Undo", exact=True)
    await expect(undo).to_be_visible()
    await undo.press("Enter")
    await page.wait_for_url(re.compile("/c/"))
    await expect(page.get_by_role("heading", level=1)).to_have_text("Grey <b>heron</b>")
    assert screen.complaints == []


async def test_undo_is_in_reach_and_lies_on_nothing(screen: Screen) -> None:
    """Also on a narrow screen, in the navigation's dialog and when that is closed.

    Whoever reads another conversation meanwhile reads on.

    Breaks when: the offer stands at a fixed place of the window, or outside the dialog; or Undo
    opens what was not being read.
    """
    page, undo = screen.page, screen.page.get_by_role("button", name="Undo", exact=True)
    await screen.ask("Call this one godwit")
    await page.goto("/?new")
    await screen.ask("Call this one curlew")
    await put_away(page, "Call this one godwit", "Archive")
    await page.locator("#account-button").click(trial=True)
    await expect(entry(screen, "Call this one godwit")).to_have_count(0)
    await screen.box.fill("What I was writing")
    await undo.click()
    await expect(entry(screen, "Call this one godwit").get_by_role("link")).to_be_focused()
    await page.set_viewport_size({"width": 390, "height": 844})
    await screen.button("Conversations").click()
    await put_away(page, "Call this one godwit", "Delete")
    await undo.click(trial=True)
    await page.keyboard.press("Escape")
    await screen.box.click(trial=True)
    await undo.click()
    await expect(undo).to_be_hidden()
    await screen.button("Conversations").click()
    await expect(entry(screen, "Call this one godwit")).to_be_visible()
    await expect(screen.box).to_have_value("What I was writing")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Call this one curlew")


async def put_away(page: Page, title: str, how: str) -> None:
    await page.get_by_role("button", name=f"Actions for {title}").click()
    menu = page.get_by_role("group", name="Conversation")
    await menu.get_by_role("button", name=how).click()


async def test_what_is_deleted_in_its_settings_can_be_had_back_too(screen: Screen) -> None:
    page = screen.page
    await screen.ask("Call this one dunlin")
    await screen.button("Conversation settings").click()
    await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    await page.get_by_role("button", name="Undo", exact=True).click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Call this one dunlin")


async def test_what_is_deleted_in_the_archive_can_be_had_back_too(screen: Screen) -> None:
    page = screen.page
    await screen.ask("Call this one knot")
    await put_away(page, "Call this one knot", "Archive")
    await expect(page.get_by_role("status").filter(has_text="Archived")).to_be_visible()
    await page.goto("/?archived")
    await page.get_by_role("button", name="Delete Call this one knot").click()
    await page.get_by_role("button", name="Undo", exact=True).click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Call this one knot")


async def test_a_title_is_edited_in_its_place(screen: Screen) -> None:
    page = screen.page
    await screen.ask("Call this one bittern")
    title = page.get_by_role("heading", level=1)
    for typed, key, shown in (
        ("Not this", "Escape", "Call this one bittern"),
        ("Little bittern", "Enter", "Little bittern"),
    ):
        await title.hover()
        await screen.button("Rename").click()
        await expect(page.get_by_role("textbox", name="Title")).to_be_focused()
        await page.keyboard.type(typed)
        await page.keyboard.press(key)
        await expect(title).to_have_text(shown)
    await expect(entry(screen, "Little bittern")).to_have_count(1)


async def test_the_model_names_the_conversation(
    browser: Browser, model: RunningUpstream, tmp_path: Path
) -> None:
    server = start_server(
        tmp_path,
        OPENAI_BASE_URL=model.base_url,
        OPENAI_API_KEY="a-key",
        AUTOMATIC_TITLES="true",
    )
    try:
        context = await browser.new_context(
            base_url=server.base_url, storage_state=await sign_in(server, browser)
        )
        screen = Screen(await context.new_page())
        await screen.page.goto("/?new")
        model.script({"text": "Hier ist ein Plan."}, {"text": "Abendessen ohne Nüsse"})
        await screen.send("Plane mir eine Woche Abendessen.")
        title = screen.page.get_by_role("heading", level=1)
        await expect(title).to_have_text("Abendessen ohne Nüsse")
        await expect(entry(screen, "Abendessen ohne Nüsse")).to_have_count(1)
        await context.close()
    finally:
        server.kill()


async def test_the_list_marks_what_answers_and_what_is_new(
    screen: Screen, model: RunningUpstream
) -> None:
    page = screen.page
    await page.clock.install()
    await page.goto("/?new")
    await screen.ask("Which bird is this?")
    model.script(unending("An egret, perhaps"))
    await screen.send("Are you sure?")
    await expect(screen.articles.last).to_contain_text("An egret,")
    marked, conversation = entry(screen, "Which bird is this?"), page.url
    await expect(marked.get_by_text("answering")).to_be_visible()
    await page.get_by_role("link", name="New conversation", exact=True).click()
    await expect(marked.get_by_text("answering")).to_be_visible()
    token = await page.locator("#composer [name=csrfmiddlewaretoken]").input_value()
    await page.request.post(f"{conversation}stop/", headers={"X-CSRFToken": token})
    while await marked.get_by_text("answering").count():
        # The page looks again every 15 seconds by its own clock, and shows what it has found.
        before = await page.locator("#links").element_handle()
        await page.clock.fast_forward(15_000)
        await page.wait_for_function(LOOKED_AGAIN, arg=before)
    await expect(marked.get_by_text("new reply")).to_be_visible()
    async with page.expect_response("**/seen/"):
        await marked.get_by_role("link").click()
    await expect(screen.articles.last).to_contain_text("Stopped")
    await page.goto("/?new")
    await expect(marked.get_by_text("new reply")).to_have_count(0)


async def test_a_title_has_its_row_to_itself(screen: Screen) -> None:
    """The day is said by the heading above it, and the time to screen readers.

    Breaks when: the time is shown beside each title, or not told at all.
    """
    title = "Which of the birds of these islands breed in the first weeks of spring?"
    await screen.ask("Hello.")
    await screen.send(f"/title {title}")
    row = entry(screen, title).get_by_role("link")
    await expect(row.get_by_title(title)).to_have_text(title)
    await expect(row.get_by_role("time")).not_to_be_empty()
    # The list is read anew for the new title: a row that left it has no width.
    share = """title => {
        const words = document.querySelector(`nav a [title="${title}"]`);
        const link = words?.closest("a");
        return words?.getBoundingClientRect().width / link.getBoundingClientRect().width > 0.85;
    }"""
    await screen.page.wait_for_function(share, arg=title, timeout=20_000)


async def test_what_was_archived_lies_in_the_archive_and_can_be_had_back(screen: Screen) -> None:
    page = screen.page
    await screen.ask("Put the plover away")
    await page.get_by_role("button", name="Actions for Put the plover away").press("Enter")
    await page.get_by_role("group").get_by_role("button", name="Archive").press("Enter")
    await expect(page.get_by_role("status").filter(has_text="Archived")).to_be_visible()
    await expect(entry(screen, "Put the plover away")).to_have_count(0)
    await page.locator("#account-button").click()
    await page.get_by_role("link", name="Archive").click()
    kept = page.get_by_role("listitem").filter(has_text="Put the plover away")
    await kept.get_by_role("button", name=re.compile("^Take ")).click()
    await page.goto("/?new")
    await expect(entry(screen, "Put the plover away")).to_have_count(1)


async def test_an_archived_conversation_says_so_and_goes_on(screen: Screen) -> None:
    """Breaks when: it is shown like any other, or what goes on stays in the archive."""
    page, said = screen.page, list[str]()
    page.on("console", lambda message: said.append(message.text))
    await screen.ask("Call this one whimbrel")
    address, note = page.url, page.get_by_text("This conversation is archived.")
    for take_out in (True, False):
        await put_away(page, "Call this one whimbrel", "Archive")
        await expect(page.get_by_role("status").filter(has_text="Archived")).to_be_visible()
        await page.goto(address)
        await expect(note).to_be_visible()
        if take_out:
            await screen.button("Take out of the archive").and_(page.locator(".foot *")).click()
        else:
            await screen.ask("And now?")
            await screen.send("/title Whimbrel")
            await expect(page.get_by_role("heading", level=1)).to_have_text("Whimbrel")
        await expect(note).to_have_count(0)
        await expect(entry(screen, "himbrel")).to_have_count(1)
    assert [one for one in said if "oob" in one] == []


async def test_a_search_leads_to_the_message(screen: Screen) -> None:
    page = screen.page
    await screen.send("The word is quetzal")
    await page.wait_for_url(re.compile("/c/"))
    await expect(screen.feed.locator("[aria-busy]")).to_have_count(0)
    await page.keyboard.press("Control+k")
    await expect(page.get_by_role("combobox", name="Search and commands")).to_be_focused()
    await page.keyboard.type("quetzal")
    await page.get_by_role("option", name="All results").click()
    await page.wait_for_url(re.compile(r"/search/\?q=quetzal"))
    await expect(page.get_by_role("heading", name="The word is quetzal")).to_contain_text(
        "2 messages"
    )
    await page.locator(".hits a").last.click()
    await page.wait_for_url(re.compile(r"\?around=\d+&q=quetzal#m-\d+"))
    await expect(page.locator("article.sought")).to_be_in_viewport()
    await expect(page.locator("article.sought")).to_contain_text("quetzal")
    assert screen.complaints == []


async def test_the_words_that_were_looked_for_are_marked_and_in_sight(
    screen: Screen, product: RunningServer
) -> None:
    """Breaks when: a message higher than the screen is shown by its middle, or without marks."""
    page, marked = screen.page, screen.page.locator("article mark")
    before, after = "One line.\n\n" * 40, "And more.\n\n" * 200
    long = f"{before}A **shoebill** & co.\n\n{after}"
    await page.goto(imported(product, "A shoebill?", long, "Thank you.", "Welcome."))
    address = page.url
    await page.goto("/search/?q=shoebills")
    await page.locator(".hits a[href$='#m-2']").click()
    await expect(marked.first).to_be_in_viewport()
    await expect(page.locator("article.sought strong mark")).to_have_text("shoebill")
    await expect(page.locator("article:not(.sought) mark")).to_have_count(0)
    await expect(page.locator("article.sought")).to_have_css("outline-style", "none")
    # A fresh load without the words shows the message as it is.
    await page.goto(address)
    await expect(marked).to_have_count(0)


async def test_the_list_stands_under_the_days_of_its_reader(
    screen: Screen, product: RunningServer
) -> None:
    """So many midnights after the last message; later than a month ago, the month is named."""
    page = screen.page
    await page.goto(imported(product, "A godwit, some days ago."))
    current = page.locator("#links li", has=page.locator("[aria-current=page]"))
    at = datetime.fromisoformat(await current.locator("time").get_attribute("datetime") or "")
    month = await page.evaluate(
        "at => new Date(at).toLocaleString([], {month: 'long', year: 'numeric'})", at.isoformat()
    )
    for days, heading in (
        (0, "Today"),
        (1, "Yesterday"),
        (2, "Previous 7 days"),
        (7, "Previous 7 days"),
        (8, "Previous 30 days"),
        (30, "Previous 30 days"),
        (31, month),
    ):
        await page.clock.set_fixed_time(at + timedelta(days=days))
        await page.reload()
        above = current.locator("xpath=preceding-sibling::li[@class='group'][1]")
        await expect(above).to_have_text(heading)


async def test_settings_save_themselves_and_hold(screen: Screen) -> None:
    page = screen.page
    await page.goto("/settings/")
    await page.get_by_label("Send with").select_option("modifier-enter")
    await expect(page.get_by_role("status")).to_have_text("Saved.")
    await page.goto("/?new")
    await screen.box.fill("line one")
    await screen.box.press("Enter")
    await screen.box.press("x")
    assert await screen.box.input_value() == "line one\nx"
    await screen.box.press("Control+Enter")
    await page.wait_for_url(re.compile("/c/"))
    await page.goto("/settings/")
    await page.get_by_label("Send with").select_option("enter")
    await expect(page.get_by_role("status")).to_have_text("Saved.")
    assert screen.complaints == []


async def test_the_mark_of_an_answer_goes_with_the_answer(
    screen: Screen, model: RunningUpstream
) -> None:
    """Also when the list that was asked for at its beginning comes after its end.

    Breaks when: ``refresh`` in ``list.js`` is not done again for a change while it is under way.
    """
    await screen.ask("Hello.")
    read, ended = asyncio.Event(), asyncio.Event()

    async def late(route: Route) -> None:
        answer = await route.fetch()
        read.set()
        await ended.wait()
        await route.fulfill(response=answer)

    await screen.page.route("**/?current=*", late)
    model.script(held("An answer", " that takes long"))
    await screen.send("And now?")
    await read.wait()
    model.release()
    await expect(screen.button("Stop")).to_be_hidden()
    async with screen.page.expect_request("**/?current=*"):
        ended.set()
    await expect(entry(screen, "Hello.").locator(".answering")).to_be_hidden()


async def test_a_title_that_comes_with_a_state_is_in_the_list_too(screen: Screen) -> None:
    """Whoever is told of it by a look at the database, or after being cut off, gets no other event.

    Breaks when: the list is read anew for the event of the change only.
    """
    await screen.ask("Hello.")
    lost: list[asyncio.Task[None]] = []

    def follow(socket: WebSocketRoute) -> None:
        def pass_on(message: str | bytes) -> None:
            if 'data-event="title-changed"' in str(message):
                lost.append(asyncio.create_task(socket.close(code=1012)))
            else:
                socket.send(message)

        socket.connect_to_server().on_message(pass_on)

    await screen.page.route_web_socket("**/ws/**", follow)
    await screen.page.reload()
    await screen.send("/title Lanterns at sea")
    await expect(screen.page.get_by_role("heading", level=1)).to_have_text("Lanterns at sea")
    await expect(entry(screen, "Lanterns at sea")).to_be_visible()
    await asyncio.gather(*lost)


async def test_a_person_chooses_theme_shortcuts_and_model(screen: Screen) -> None:
    page, saved = screen.page, screen.page.get_by_role("status")
    ground = "getComputedStyle(document.body).backgroundColor"
    await page.goto("/settings/")
    paper = await page.evaluate(ground)
    for label, chosen in (
        ("Theme", "dark"),
        ("Keyboard shortcuts", "off"),
        ("Model of new conversations", "fake-model"),
    ):
        async with page.expect_response("**/settings/"):
            await page.get_by_label(label).select_option(chosen)
        await expect(saved).to_have_text("Saved.")
    assert await page.evaluate(ground) != paper
    await page.goto("/?new")
    assert await page.evaluate(ground) != paper
    await screen.box.press("Control+k")
    await expect(screen.box).to_be_focused()
    await screen.ask("Hello.")
    await expect(page.get_by_role("combobox", name="Model", exact=True)).to_have_value("fake-model")
    theme = page.get_by_role("button", name="Theme")
    await page.locator("#account-button").click()
    async with page.expect_response("**/settings/"):
        await theme.click()
    await expect(theme).to_contain_text("system")
    await page.goto("/settings/")
    await expect(page.get_by_label("Theme")).to_have_value("system")
    await expect(page.get_by_label("Model of new conversations")).to_have_value("fake-model")
    await page.get_by_label("Keyboard shortcuts").select_option("on")
    await expect(saved).to_have_text("Saved.")


async def test_notifications_are_asked_for_and_may_be_refused(screen: Screen) -> None:
    page = screen.page
    await page.goto("/settings/")
    notify = page.get_by_label("Notification when a reply ends")
    await notify.select_option("on")
    await expect(page.get_by_role("status")).to_have_text(re.compile("does not allow"))
    await expect(notify).to_have_value("off")
    await page.reload()
    await expect(notify).to_have_value("off")
