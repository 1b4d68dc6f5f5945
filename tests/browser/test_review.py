"""Summaries reviewed in the admin: ten by keyboard, on a phone, and while a compression runs."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, expect

from tests.browser.screen import imported, sign_in
from tests.browser.scripts import held_summary
from tests.browser.test_accessibility import in_both_themes
from tests.browser.test_compression import DETAILS, RULE
from tests.servers import RunningServer, manage, start_server
from tests.upstreams import RunningUpstream

pytestmark = pytest.mark.browser

LIST = "/admin/chatapp/summary/"
JSON = {"Accept": "application/json"}


def turns(number: int) -> list[str]:
    """Three questions and their answers; the same conversation is imported only once."""
    asked = [f"{RULE} Question {n} of talk {number}. {DETAILS}" for n in range(3)]
    return [text for question in asked for text in (question, f"An answer of talk {number}.")]


@pytest_asyncio.fixture(loop_scope="session")
async def server(tmp_path: Path, model_server: RunningUpstream) -> AsyncIterator[RunningServer]:
    """A product of its own: what waits for a reviewer is what the test has made."""
    started = start_server(
        tmp_path,
        OPENAI_BASE_URL=model_server.base_url,
        OPENAI_API_KEY="a-key",
        CONTEXT_WINDOW="4096",
    )
    yield started
    started.kill()


@pytest_asyncio.fixture(loop_scope="session")
async def context(
    server: RunningServer, browser: Browser, model: RunningUpstream
) -> AsyncIterator[BrowserContext]:
    """A browser in which the owner is signed in, who may do everything in the admin."""
    opened = await browser.new_context(
        base_url=server.base_url,
        viewport={"width": 1280, "height": 860},
        storage_state=await sign_in(server, browser),
    )
    yield opened
    await opened.close()


async def post(context: BrowserContext, path: str, **form: Any) -> Any:
    """A command as a page of the chat sends it."""
    cookies = {one["name"]: one["value"] for one in await context.cookies()}
    token = {"X-CSRFToken": cookies["csrftoken"]}
    answer = await context.request.post(path, form=form, headers=JSON | token)
    assert answer.ok, await answer.text()
    return await answer.json()


async def summarised(context: BrowserContext, server: RunningServer, number: int) -> list[str]:
    """Paths of so many conversations that have a summary each."""
    paths = [imported(server, *turns(one)) for one in range(number)]
    for path in paths:
        await post(context, f"{path}compact/")
    for path in paths:
        await expect_version(context, path, 1)
    return paths


async def state_of(context: BrowserContext, path: str) -> Any:
    answer = await context.request.get(path, headers=JSON)
    return (await answer.json())["compression"]


async def expect_version(context: BrowserContext, path: str, version: int) -> None:
    for _ in range(200):
        state = await state_of(context, path)
        if state["version"] == version and not state["running"]:
            return
        await (await context.request.get("/healthz")).dispose()
    pytest.fail(f"{path} did not come to version {version}")


def stored(server: RunningServer, expression: str) -> str:
    """What an expression about the stored summaries says."""
    code = f"from chatapp.models import Summary; print({expression})"
    return manage(server, "shell", "--no-imports", "-c", code).strip()


async def press(page: Page, key: str) -> None:
    """Press a key of the review; its script shows the button for the keys once it listens."""
    await expect(page.get_by_role("button", name="Keys", exact=True)).to_be_visible()
    await page.keyboard.press(key)


async def opened(context: BrowserContext) -> Page:
    """The review of the first that waits, come to from the list."""
    page = context.pages[0] if context.pages else await context.new_page()
    await page.goto(LIST)
    await page.get_by_role("link", name="Start the review").click()
    await expect(page.get_by_role("group", name="Review")).to_be_visible()
    return page


async def line_changed(page: Page) -> None:
    """A line and its messages are marked together; then it is changed."""
    keyboard = page.keyboard
    await press(page, "j")
    line = page.locator("[data-line]").first
    await expect(line).to_be_focused()
    await expect(line).to_have_class(re.compile("lit"))
    await expect(page.locator("[data-seq].lit").first).to_be_in_viewport()
    await press(page, "e")
    await expect(line.get_by_role("textbox", name="Line")).to_be_focused()
    await keyboard.press("End")
    await keyboard.type(" and n: checked.")
    await keyboard.press("Tab")
    await keyboard.press("Enter")
    await expect(page.get_by_text("Done. Version 2 is active now.")).to_be_visible()
    await expect(page.locator("[data-line]", has_text="and n: checked.")).to_have_count(1)


async def detail_added(page: Page) -> None:
    """What only the messages have, by one press; then the versions are compared."""
    keyboard, chips = page.keyboard, page.locator(".chips button")
    there = await chips.count()
    await press(page, "c")
    await expect(chips.first).to_be_focused()
    await keyboard.press("Enter")
    await expect(page.get_by_text("Done. Version 3 is active now.")).to_be_visible()
    assert await chips.count() < there
    await press(page, "d")
    await expect(page.locator(".compared .added")).to_have_count(1)


@pytest.mark.soak
async def test_ten_summaries_are_reviewed_by_keyboard(
    context: BrowserContext, server: RunningServer
) -> None:
    """Nothing but keys: approve, next, a line changed, a detail added, a note, and the end.

    Breaks when: a verdict does not lead on, or a key does nothing where no field has the focus.
    """
    await summarised(context, server, 10)
    page = await opened(context)
    keyboard, group = page.keyboard, page.get_by_role("group", name="Review")
    await expect(group).to_contain_text("10 wait")
    await line_changed(page)
    await detail_added(page)
    keys = page.get_by_role("dialog", name="Keys")
    await press(page, "?")
    await expect(keys).to_be_visible()
    await keyboard.press("Escape")
    await expect(keys).to_be_hidden()
    await press(page, "a")
    await expect(group).to_contain_text("9 wait")

    # The second needs work, and why; the third is passed over with one key.
    await press(page, "w")
    await expect(page.get_by_label("What is wrong with it")).to_be_focused()
    await keyboard.type("a line is missing")
    await keyboard.press("Enter")
    await expect(group).to_contain_text("8 wait")
    passed = page.url
    await press(page, "n")
    await expect(page).not_to_have_url(passed)
    for left in range(7, 0, -1):
        await press(page, "a")
        await expect(group).to_contain_text(f"{left} wait")
    await expect(page).to_have_url(passed)
    await press(page, "a")
    await expect(page.get_by_text("Nothing else waits here.")).to_be_visible()

    said = "sorted(Summary.objects.filter(status='active').values_list('review', flat=True))"
    assert stored(server, said) == str(["approved"] * 9 + ["needs_work"])
    noted = "Summary.objects.get(review='needs_work').review_note"
    assert stored(server, noted) == "a line is missing"


@pytest.mark.soak
async def test_c11_an_edit_in_the_review_while_a_compression_runs_stays(
    context: BrowserContext, server: RunningServer, model: RunningUpstream
) -> None:
    """C11: the reviewer is told, the edit stays, and the run's draft is dropped with a sentence.

    Breaks when: a late draft is applied over the edit, or nothing says what became of it.
    """
    [path] = await summarised(context, server, 1)
    model.script(held_summary("Never use tabs."))
    page = await opened(context)
    await press(page, "m")
    await page.get_by_role("button", name="Compress again").click()
    await expect(page.get_by_text("is writing another summary")).to_be_visible()
    await expect(page.get_by_text("This conversation is being compressed now.")).to_be_visible()
    assert (await state_of(context, path))["running"]

    other = await context.new_page()
    await other.goto(page.url)
    await press(other, "l")
    await other.get_by_role("textbox", name="Line").last.fill("A person was here.")
    await other.get_by_role("button", name="Add", exact=True).click()
    await expect(other.get_by_text("the run's draft is dropped")).to_be_visible()
    # The page that was open meanwhile says so by itself.
    moved = page.get_by_role("status").filter(has_text="version 2 is there now")
    await expect(moved).to_be_visible()
    model.release()
    await expect(
        other.get_by_role("status").filter(has_text="no new summary came of it")
    ).to_be_visible()
    state = await state_of(context, path)
    assert (state["version"], state["running"]) == (2, False)
    assert "A person was here." in state["summary"]
    assert "Never use tabs." not in state["summary"]

    # Left to itself, another model's summary comes, with the person's line in it.
    model.script(held_summary("Never use tabs."))
    model.release()
    await other.reload()
    await press(other, "m")
    await other.get_by_role("button", name="Compress again").click()
    await expect_version(context, path, 3)
    text = (await state_of(context, path))["summary"]
    assert "A person was here." in text
    await expect(
        other.get_by_role("status").filter(has_text="version 3 is there now")
    ).to_be_visible()
    await other.get_by_role("link", name="Show it").click()
    await expect(other.locator("[data-line]", has_text="A person was here.")).to_be_visible()


async def test_what_was_typed_on_an_outdated_page_is_not_lost(
    context: BrowserContext, server: RunningServer
) -> None:
    """C11: of two who edit, the second sees what is there now and what they wrote.

    Breaks when: a refused change leads away from the page, or shows its text nowhere.
    """
    await summarised(context, server, 1)
    first = await opened(context)
    second = await context.new_page()
    await second.goto(first.url)
    for page, text in ((first, "From the first."), (second, "From the second.")):
        await press(page, "l")
        await page.get_by_role("textbox", name="Line").last.fill(text)
        await page.get_by_role("button", name="Add", exact=True).click()
    await expect(second.get_by_role("alert")).to_contain_text("changed meanwhile")
    unsaved = second.get_by_role("region", name="Your text, not saved")
    await expect(unsaved).to_contain_text("From the second.")
    await expect(second.locator("[data-line]", has_text="From the first.")).to_be_visible()
    await expect(second.locator("[data-line]", has_text="From the second.")).to_have_count(0)


async def test_a_summary_is_reviewed_on_a_phone(
    context: BrowserContext, server: RunningServer
) -> None:
    """At 390 pixels nothing is wider than the screen, and the messages of a line stay in sight.

    Breaks when: the list is a table there, the sheet of messages covers the lines before one is
    chosen, or the messages of a pressed line are below the fold.
    """
    await summarised(context, server, 3)
    page = await context.new_page()
    await page.set_viewport_size({"width": 390, "height": 844})
    lists = ("chatapp/conversation/", "chatapp/modelcall/", "auth/user/")
    for path in ("/admin/", LIST, f"{LIST}figures/", *(f"/admin/{one}" for one in lists)):
        await page.goto(path)
        assert await wider(page) == []
        for row in await page.locator("#result_list tbody tr").all():
            assert await row.evaluate("one => getComputedStyle(one).display") == "flex", path
    page = await opened(context)
    assert await wider(page) == []
    first = await page.locator("[data-line]").first.bounding_box()
    sheet = await page.locator(".summary-sources").bounding_box()
    assert first is not None
    assert sheet is not None
    assert first["y"] + first["height"] <= sheet["y"]
    line = page.locator("[data-line]").last
    await line.scroll_into_view_if_needed()
    await line.locator(".text").click()
    await expect(line).to_have_class(re.compile("lit"))
    chosen = await page.locator(".summary-sources").bounding_box()
    assert chosen is not None
    assert chosen["height"] <= 844 / 3
    message = page.locator("[data-seq].lit").first
    await expect(message).to_be_in_viewport()
    await message.locator(".text").click()
    await expect(page.locator("[data-line].lit").first).to_be_in_viewport()
    await page.get_by_role("button", name="Approve").click()
    await expect(page.get_by_role("group", name="Review")).to_contain_text("2 wait")


async def wider(page: Page) -> list[str]:
    """What reaches beyond the right edge of the screen, unless it scrolls by itself."""
    found = await page.evaluate(
        """() => document.documentElement.scrollWidth <= innerWidth ? [] :
            [...document.querySelectorAll("#content *")]
                .filter((one) => one.getBoundingClientRect().right > innerWidth + 1)
                .map((one) => one.outerHTML.slice(0, 80))"""
    )
    return list(found)


async def test_the_list_fits_its_width(context: BrowserContext, server: RunningServer) -> None:
    """Breaks when: a column is added without taking room from another."""
    await summarised(context, server, 1)
    page = await context.new_page()
    for width in (1280, 1440):
        await page.set_viewport_size({"width": width, "height": 860})
        await page.goto(LIST)
        table = page.locator("#changelist .results")
        assert await table.evaluate("one => one.scrollWidth <= one.clientWidth")
        assert await wider(page) == []


async def test_a_list_gives_room_to_what_is_said(
    context: BrowserContext, server: RunningServer
) -> None:
    """A time of today is its hour, and the day is told on pointing; a column in which no row says
    anything is left out; what can be done with rows comes once one is chosen.

    Breaks when: the script of the lists does not run, or a rule of Django's outranks ours.
    """
    await summarised(context, server, 2)
    page = await context.new_page()
    await page.goto("/admin/chatapp/conversation/")
    time = page.locator("#result_list time").first
    await expect(time).to_have_text(re.compile(r"^\d+:\d\d\s[AP]M$"))
    await expect(time).to_have_attribute("title", re.compile(r"20\d\d"))
    await expect(page.get_by_role("columnheader", name="Messages")).to_be_visible()
    await expect(page.get_by_role("columnheader", name="State")).to_be_hidden()
    await page.goto(LIST)
    action = page.get_by_role("combobox", name="Action")
    await expect(action).to_be_hidden()
    await page.locator(".action-select").first.check()
    await expect(action).to_be_in_viewport()


async def test_many_are_approved_at_once(context: BrowserContext, server: RunningServer) -> None:
    await summarised(context, server, 3)
    page = await context.new_page()
    await page.goto(f"{LIST}?queue=unseen")
    await page.get_by_role("checkbox").first.check()
    await page.get_by_role("combobox", name="Action").select_option(
        label="Approve the selected summaries"
    )
    await page.get_by_role("button", name="Go").click()
    await expect(page.get_by_text("3 approved.")).to_be_visible()
    queue = page.get_by_role("navigation", name="What waits for a reviewer")
    await expect(queue).to_contain_text("Nothing waits.")


@pytest.mark.soak
async def test_axe_finds_nothing_in_the_review(
    context: BrowserContext, server: RunningServer
) -> None:
    await summarised(context, server, 2)
    page, found = await opened(context), list[str]()
    found += await in_both_themes(page)
    folded = page.locator(".reviewing details:not([open]) > summary")
    while await folded.count():
        await folded.first.click()
    await press(page, "?")
    found += await in_both_themes(page)
    await page.keyboard.press("Escape")
    for path in ("/admin/", f"{LIST}?queue=waiting", f"{LIST}figures/?measure=made"):
        await page.goto(path)
        found += await in_both_themes(page)
    await page.set_viewport_size({"width": 390, "height": 844})
    for path in ("/admin/", f"{LIST}?state=unseen", f"{LIST}figures/?measure=made"):
        await page.goto(path)
        found += await in_both_themes(page)
    await opened(context)
    found += await in_both_themes(page)
    assert found == []
