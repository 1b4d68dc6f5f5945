"""What keeps people out: axe-core on every page in both themes, and the job by keyboard alone."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from importlib.resources import files
from pathlib import Path
from typing import Literal

import pytest
from playwright.async_api import Browser, Locator, Page, expect

from tests.browser.screen import Screen, imported, sign_in
from tests.browser.scripts import MARKDOWN, held_summary, pausing, unending
from tests.browser.test_compression import DETAILS, RULE, fill
from tests.servers import RunningServer, manage, start_server
from tests.upstreams import RunningUpstream

pytestmark = pytest.mark.browser

_FILES = files("axe_playwright_python")
AXE = _FILES.joinpath("axe.min.js").read_text(encoding="utf-8")
Theme = Literal["light", "dark"]
THEMES: tuple[Theme, ...] = ("light", "dark")
# Pages without a conversation; those of one are looked at as the job goes on.
PAGES = (
    "/?new",
    "/?archived",
    "/search/",
    "/search/?q=project",
    "/settings/",
    "/connections/",
    "/shares/",
    "/no-such-page",
    "/accounts/password_change/",
    "/accounts/password_change/done/",
)
OF_A_CONVERSATION = (
    "",
    "context/",
    "context/?left-out",
    "context/?reply",
    "summaries/",
    "preview/",
    "outline/",
    "activity/",
    "tools/",
    "shares/",
)


#: axe's rules that look at colours.
BY_COLOUR = ("color-contrast", "link-in-text-block")


async def findings(page: Page, *rules: str) -> list[str]:
    """What axe-core finds on the page as it is now: rule, and where.

    ``rules`` are those that are checked; all, if none is named.
    """
    # Evaluated by the debugger: the page's policy allows no script of ours.
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(AXE)
    options = {"resultTypes": ["violations"], "preload": False}
    if rules:
        options["runOnly"] = list(rules)
    found = await page.evaluate("options => axe.run(document, options)", options)
    return [
        f"{one['id']}: {node['target']} {node.get('failureSummary', '')}"
        for one in found["violations"]
        for node in one["nodes"]
    ]


async def in_both_themes(page: Page) -> list[str]:
    """The findings in light and in dark, which differ by colour only."""
    found: list[str] = []
    for theme, rules in zip(THEMES, ((), BY_COLOUR), strict=True):
        await page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        found += [f"{theme} {page.url} {one}" for one in await findings(page, *rules)]
    return found


@pytest.mark.soak
async def test_axe_finds_nothing_on_pages_without_a_conversation(
    screen: Screen, browser: Browser, product: RunningServer
) -> None:
    found: list[str] = []
    for path in PAGES:
        await screen.page.goto(path)
        found += await in_both_themes(screen.page)
    assert found == []


async def test_axe_finds_nothing_on_the_way_in_and_out(
    browser: Browser, product: RunningServer
) -> None:
    """Sign-in, its refusals, the link that signs in, a form that is refused, and the way out."""
    # A second link ends the first, which the other tests came in by.
    await sign_in(product, browser)
    page, found = await browser.new_page(base_url=product.base_url), list[str]()

    async def look(title: str) -> None:
        await expect(page).to_have_title(f"{title} · Palimpsest")
        found.extend(await in_both_themes(page))

    await page.goto("/accounts/login/")
    await look("Sign in")
    await page.get_by_label("Username").fill("nobody")
    await page.get_by_label("Password").fill("nothing")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("alert")).to_be_visible()
    await look("Sign in")
    await page.locator("[name=csrfmiddlewaretoken]").evaluate("field => field.value = 'x'")
    await page.get_by_label("Password").fill("nothing")
    await page.keyboard.press("Enter")
    await look("Not done")
    link = re.search(r"http\S+", manage(product, "signin_link", "owner"))
    assert link
    await page.goto(link.group())
    await look("Sign in")
    await page.get_by_role("button", name="Sign in as owner").click()
    await page.goto(link.group())
    await look("Not done")
    await page.goto("/accounts/password_change/")
    await page.get_by_label("New password", exact=True).fill("short")
    await page.get_by_label("confirmation").fill("other")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("alert").first).to_be_visible()
    await look("Password")
    await page.goto("/")
    await page.locator("#account-button").click()
    await page.get_by_role("button", name="Sign out").click()
    await look("Sign in")
    await page.close()
    assert found == []


async def test_axe_finds_nothing_on_what_an_import_says(screen: Screen, tmp_path: Path) -> None:
    page, file = screen.page, tmp_path / "messages.json"
    good = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hello."}]
    for content, said in ((good, "1 conversation imported"), ({"not": "a conversation"}, "")):
        file.write_text(json.dumps(content))
        await page.goto("/settings/")
        await page.get_by_label("A file of conversations").set_input_files(file)
        await page.get_by_role("button", name="Import").click()
        await expect(page).not_to_have_url(re.compile("settings"))
        await expect(page.get_by_role("main")).to_contain_text(said)
        assert await in_both_themes(page) == []
    # A plain page with an error, as a browser without JavaScript sees it.
    await page.goto("/?new")
    await screen.ask("Hello.")
    await page.goto(f"{page.url}?before=x")
    await expect(page.get_by_role("alert")).to_be_visible()
    assert await in_both_themes(page) == []


async def test_axe_finds_nothing_where_the_server_fails(browser: Browser, tmp_path: Path) -> None:
    """The page that says so, of a row that cannot be read."""
    server = start_server(tmp_path)
    context = await browser.new_context(
        base_url=server.base_url, storage_state=await sign_in(server, browser)
    )
    path = imported(server, "Hello.")
    with closing(sqlite3.connect(tmp_path / "server.sqlite3")) as database, database:
        database.execute("UPDATE chatapp_message SET created_at = '2026-13-13 13:13'")
    page = await context.new_page()
    answer = await page.goto(path)
    assert answer is not None
    assert answer.status == 500
    await expect(page.get_by_role("alert")).not_to_be_empty()
    assert await in_both_themes(page) == []
    await context.close()
    server.kill()


@pytest.mark.soak
async def test_axe_finds_nothing_in_the_review(screen: Screen, model: RunningUpstream) -> None:
    """What the admin shows of conversations and summaries, with our colours."""
    page, found = screen.page, list[str]()
    await fill(screen, 3)
    await screen.button("Compact").click()
    await expect(page.get_by_role("region", name="Compressed messages")).to_be_visible()
    for model_name in ("conversation", "summary", "message", "accessrecord", "modelprofile"):
        await page.goto(f"/admin/chatapp/{model_name}/")
        found += await in_both_themes(page)
        if await page.locator("#result_list tbody th a").count():
            async with page.expect_navigation():
                await page.locator("#result_list tbody th a").first.click()
            found += await in_both_themes(page)
        if model_name == "summary":
            await page.get_by_role("link", name="All facts").click()
            found += await in_both_themes(page)
    assert found == []


async def test_axe_finds_nothing_in_a_conversation(screen: Screen, model: RunningUpstream) -> None:
    page, found = screen.page, list[str]()
    model.script({"text": MARKDOWN, "reasoning": "Let me think."})
    await screen.ask(f"{RULE} {DETAILS}")
    found += await in_both_themes(page)
    for number in range(2):
        await screen.ask(f"Question {number}. {DETAILS}")
    await screen.button("Compact").click()
    await expect(page.get_by_role("region", name="Compressed messages")).to_be_visible()
    await screen.button("View summary").click()
    for view in ("Summary", "Versions", "This reply", "Next request"):
        await page.get_by_role("tab", name=view).click()
        await expect(page.get_by_role("tabpanel", name=view)).to_be_visible()
        found += await in_both_themes(page)
    await page.get_by_role("button", name="More about this message").last.click()
    await expect(page.get_by_role("group", name="Message", exact=True)).to_be_visible()
    found += await in_both_themes(page)
    await page.keyboard.press("Escape")
    for opened in ("Conversation settings", "What the model sees"):
        await page.get_by_role("button", name=opened).click()
        found += await in_both_themes(page)
        await page.keyboard.press("Escape")
    await page.keyboard.press("Control+/")
    found += await in_both_themes(page)
    await page.keyboard.press("Escape")
    await screen.box.press("ArrowUp")
    await expect(screen.button("Branch instead")).to_be_visible()
    found += await in_both_themes(page)
    await page.keyboard.press("Enter")
    await page.get_by_role("link", name="Edited").click()
    await expect(page.get_by_role("heading", name="Before message")).to_be_visible()
    found += await in_both_themes(page)
    await page.keyboard.press("Escape")
    model.script({"status": 429, "message": "Slow down", "headers": {"Retry-After": "30"}})
    await screen.send("And now?")
    await expect(page.get_by_role("alert").first).to_be_visible()
    found += await in_both_themes(page)
    home = page.url
    for path in OF_A_CONVERSATION:
        await page.goto(f"{home}{path}")
        found += await in_both_themes(page)
    assert found == []


async def test_whoever_wants_less_motion_sees_none(screen: Screen, model: RunningUpstream) -> None:
    """Breaks when: an animation of the style sheet runs whatever the reader wants."""
    page = screen.page
    await fill(screen, 3)
    moving = "document.getAnimations().filter((one) => one.playState === 'running').length"
    for scripted, sent, shown in (
        ({"steps": [{"wait": None}]}, "Are you there?", page.locator(".waiting")),
        (held_summary(RULE), "/compact", page.locator(".compressing .line")),
    ):
        model.script(scripted)
        await screen.send(sent)
        await expect(shown).to_be_visible()
        await page.emulate_media(reduced_motion="no-preference")
        assert await page.evaluate(moving) > 0
        await page.emulate_media(reduced_motion="reduce")
        await page.wait_for_function(f"{moving} === 0")
        model.release()
        await expect(shown).to_have_count(0)


async def test_there_is_room_to_read_at_a_zoom_of_400_percent(screen: Screen) -> None:
    """Of a screen of 1280 × 1024 pixels 320 × 256 are left then.

    Breaks when: the header and the composer keep their places there.
    """
    page = screen.page
    await fill(screen, 2)
    await page.set_viewport_size({"width": 320, "height": 256})
    for shown in (screen.box, screen.articles.last.locator(".body"), screen.button("Send")):
        await shown.scroll_into_view_if_needed()
        await expect(shown).to_be_in_viewport()
    messages = page.locator("#scroller")
    await messages.scroll_into_view_if_needed()
    box = await messages.bounding_box()
    assert box is not None
    assert min(box["y"] + box["height"], 256) - max(box["y"], 0) >= 200
    assert await page.evaluate("document.documentElement.scrollWidth") <= 320


async def test_the_composer_is_seen_to_be_focused_in_forced_colours(screen: Screen) -> None:
    """Breaks when: only the colour of its border says so."""
    await screen.page.emulate_media(forced_colors="active")
    outline = "(composer) => getComputedStyle(composer).outlineStyle"
    composer = screen.page.get_by_role("form", name="Message")
    await screen.page.get_by_role("link", name="New conversation", exact=True).focus()
    assert await composer.evaluate(outline) == "none"
    await screen.box.focus()
    assert await composer.evaluate(outline) == "solid"


async def tab_to(page: Page, wanted: Locator, key: str = "Tab") -> None:
    """Press the key until the focus is there, as one must who has no mouse."""
    await expect(wanted).to_be_visible()
    for _ in range(40):
        if await wanted.evaluate("element => element === document.activeElement"):
            return
        await page.keyboard.press(key)
    pytest.fail(f"{wanted} is not reached with {key}")


@pytest.mark.soak
async def test_the_whole_job_can_be_done_by_keyboard(
    screen: Screen, model: RunningUpstream
) -> None:
    page, keyboard = screen.page, screen.page.keyboard
    await keyboard.press("Shift+Escape")
    await expect(screen.box).to_be_focused()
    await keyboard.type(f"{RULE} {DETAILS}")
    await keyboard.press("Enter")
    await expect(page).to_have_url(re.compile("/c/"))
    for number in range(1, 3):
        await expect(screen.articles).to_have_count(2 * number)
        await expect(screen.button("Stop")).to_be_hidden()
        await keyboard.press("Shift+Escape")
        await keyboard.type(f"Question {number}. {DETAILS}")
        await keyboard.press("Enter")
    await expect(screen.articles).to_have_count(6)
    await expect(screen.button("Stop")).to_be_hidden()
    await keyboard.type("/comp")
    await keyboard.press("Tab")
    await keyboard.type("prices")
    await keyboard.press("Enter")
    divider = page.get_by_role("region", name="Compressed messages")
    await expect(divider).to_be_visible()
    await tab_to(page, divider.get_by_role("button", name="Edit summary"), "Shift+Tab")
    await keyboard.press("Enter")
    text = page.get_by_role("textbox", name="Summary")
    await expect(text).to_be_focused()
    await keyboard.press("Control+Home")
    await keyboard.press("Tab")
    await expect(screen.button("Save summary")).to_be_focused()
    # Esc leaves the drawer, and the focus is where it came from.
    await keyboard.press("Escape")
    await expect(page.get_by_role("complementary", name="What the model sees")).to_be_hidden()
    await expect(divider.get_by_role("button", name="Edit summary")).to_be_focused()
    await tab_to(page, divider.get_by_role("button", name="Undo compression"))
    await keyboard.press("Enter")
    await expect(divider).to_contain_text("The summary was removed")
    await keyboard.press("Alt+ArrowUp")
    await expect(screen.articles.last).to_be_focused()
    for _ in range(3):
        await keyboard.press("Tab")
    await expect(screen.articles.last.get_by_role("button").last).to_be_focused()
    await keyboard.press("Enter")
    await expect(page.get_by_role("button", name="Pin", exact=True)).to_be_focused()
    await keyboard.press("Enter")
    await expect(screen.articles.last.get_by_text("Pinned")).to_be_visible()


async def listen(screen: Screen) -> None:
    """Note in ``window.heard`` what a screen reader says from now on."""
    await screen.page.evaluate(
        """() => {
            window.heard = [];
            const region = document.querySelector("#spoken");
            new MutationObserver(() => {
                const said = region.textContent;
                if (said && said !== window.heard.at(-1)) window.heard.push(said);
            }).observe(region, {childList: true, characterData: true, subtree: true});
        }"""
    )


async def test_a_screen_reader_hears_the_boundaries_and_nothing_between(
    screen: Screen, model: RunningUpstream
) -> None:
    await screen.ask(f"{RULE} {DETAILS}")
    await listen(screen)
    model.script(pausing(*["and so on "] * 40, seconds=0.02))
    for number in (1, 2):
        await screen.ask(f"Question {number}. {DETAILS}")
        await expect(screen.status).to_have_text("Answer complete")
    await screen.button("Compact").click()
    await expect(screen.status).to_have_text("Conversation compressed")
    model.script(unending("Once upon a time"))
    await screen.send("A story.")
    await expect(screen.articles.last).to_contain_text("Once upon a time")
    await screen.button("Stop").click()
    await expect(screen.status).to_have_text("Answer stopped")
    heard = await screen.page.evaluate("window.heard")
    assert heard == [
        *["Answering", "Answer complete"] * 2,
        "Compressing conversation",
        "Conversation compressed",
        "Answering",
        "Answer stopped",
    ]


@pytest.mark.parametrize("lost", ["turn-started", "turn-finished"])
async def test_a_screen_reader_hears_of_a_turn_whose_event_was_lost(
    screen: Screen, model: RunningUpstream, lost: str
) -> None:
    """Breaks when: only the event tells, and not the state that comes in its place."""
    await screen.ask("Hello")
    cut = await screen.cut_at(lost)
    await screen.page.reload()
    await listen(screen)
    model.script(unending("Once upon a time"))
    await screen.send("A story.")
    await expect(screen.articles.last).to_contain_text("Once upon a time")
    await expect(screen.status).to_have_text("Answering")
    await screen.button("Stop").click()
    await expect(screen.status).to_have_text("Answer stopped")
    assert cut
    heard = await screen.page.evaluate("window.heard")
    assert heard == ["Answering", "Answer stopped"]
