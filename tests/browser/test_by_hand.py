"""Small things done by hand: keys on a message, Stop and the queue, files, a finger, Enter."""

from __future__ import annotations

import asyncio
import re

import pytest
import pytest_asyncio
from playwright.async_api import (
    Browser,
    CDPSession,
    FloatRect,
    Locator,
    Page,
    Route,
    expect,
)

from tests.browser.screen import Screen, sign_in
from tests.browser.scripts import unending
from tests.servers import RunningServer, manage
from tests.upstreams import RunningUpstream

pytestmark = pytest.mark.browser


@pytest_asyncio.fixture(loop_scope="session")
async def screen(screen: Screen) -> Screen:
    """As most people have it: what moves, moves."""
    await screen.page.emulate_media(reduced_motion="no-preference")
    return screen


_FILES = """([kind, files]) => {
    const data = new DataTransfer();
    for (const [name, type, text] of files) data.items.add(new File([text], name, {type}));
    const given = {bubbles: true, cancelable: true};
    const event = kind === "paste"
        ? new ClipboardEvent(kind, {...given, clipboardData: data})
        : new DragEvent(kind, {...given, dataTransfer: data});
    document.querySelector("#text").dispatchEvent(event);
}"""


async def test_letters_act_on_the_focused_message(screen: Screen, model: RunningUpstream) -> None:
    """And are letters everywhere else.

    Breaks when: ``anywhere`` in ``keys.js`` does not ask for the message itself, or the editor's
    caret stands before the text.
    """
    page, edited = screen.page, screen.page.get_by_role("textbox", name="Edit message")
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await screen.ask("A pipit")
    await page.keyboard.type("cer")
    await expect(screen.box).to_have_value("cer")
    await page.keyboard.press("Alt+ArrowUp")
    await page.keyboard.press("c")
    await expect(screen.articles.last.get_by_role("button", name="Copied")).to_be_visible()
    assert "A pipit" in await page.evaluate("navigator.clipboard.readText()")
    model.script({"text": "A better reply."})
    await page.keyboard.press("r")
    await expect(screen.articles.last).to_contain_text("A better reply.")
    await expect(screen.button("Stop")).to_be_hidden()
    for key in ("Alt+ArrowUp", "Alt+ArrowUp", "e"):
        await page.keyboard.press(key)
    await expect(edited).to_be_focused()
    await page.keyboard.type(" sings")
    await expect(edited).to_have_value("A pipit sings")
    await page.keyboard.press("Control+Enter")
    await expect(screen.articles.first).to_contain_text("A pipit sings")
    await expect(screen.box).to_be_focused()
    await expect(screen.box).to_have_value("cer")


async def test_stop_asks_what_becomes_of_the_queued_message(
    screen: Screen, model: RunningUpstream
) -> None:
    """Nothing is sent by itself, Continue stays, and a reload or another message loses nothing.

    Breaks when: Stop lets the queue go on, or the page forgets the question.
    """
    page, held = screen.page, screen.page.locator("[data-held]")
    await screen.ask("Hello.")
    model.script(unending("Once upon a time"), {"text": "And so it ends."})
    await screen.send("A story.")
    await expect(screen.articles.last).to_contain_text("Once upon a time")
    await screen.send("Make it about harbours.")
    await expect(page.get_by_text("Will be sent when the reply ends")).to_be_visible()
    await screen.button("Stop").click()
    await expect(screen.articles.last).to_contain_text("Stopped")
    await expect(held).to_contain_text("Make it about harbours.")
    await page.reload()
    await expect(held).to_contain_text("Not sent, because you stopped the reply")
    await expect(screen.box).to_have_value("")
    await screen.send("Something else")
    await expect(page.get_by_role("alert")).to_contain_text("keep it as a draft first")
    await expect(screen.box).to_have_value("Something else")
    await screen.box.fill("")
    await screen.button("Continue").click()
    await expect(screen.articles.last).to_contain_text("And so it ends.")
    await expect(screen.button("Stop")).to_be_hidden()
    await expect(held).to_be_visible()
    await screen.button("Keep as draft").click()
    await expect(held).to_have_count(0)
    await expect(screen.box).to_have_value("Make it about harbours.")
    model.script(unending("Another story"), {"text": "About boats, then."})
    await screen.box.fill("")
    await screen.send("Another.")
    await expect(screen.articles.last).to_contain_text("Another story")
    await screen.send("Make it about boats.")
    await expect(page.get_by_text("Will be sent when the reply ends")).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(held).to_be_visible()
    await screen.button("Send now").click()
    await expect(screen.box).to_be_focused()
    await expect(screen.articles.last).to_contain_text("About boats, then.")
    await expect(held).to_have_count(0)


async def test_what_cannot_be_taken_says_so_wherever_it_comes_from(screen: Screen) -> None:
    """Breaks when: only one of the three ways is told, or a refusal empties the message box."""
    page, alert = screen.page, screen.page.get_by_role("alert")
    zone = page.get_by_text("Drop text files here")
    image, pdf = ["crane.png", "image/png", "x"], ["crane.pdf", "application/pdf", "x"]
    text = ["crane.txt", "text/plain", "A ```crane```"]
    await screen.box.fill("Look:")
    await page.evaluate(_FILES, ["dragover", [image]])
    await expect(zone).to_be_visible()
    await page.evaluate(_FILES, ["dragleave", [image]])
    await expect(zone).to_be_hidden()
    await page.evaluate(_FILES, ["dragover", [image]])
    await page.evaluate(_FILES, ["drop", [image, pdf, text]])
    await expect(zone).to_be_hidden()
    await expect(alert).to_contain_text("Not added: crane.png (an image), crane.pdf (a PDF).")
    await expect(screen.box).to_have_value("Look:\n```` crane.txt\nA ```crane```\n````\n")
    await page.evaluate(_FILES, ["paste", [image]])
    await expect(alert).to_contain_text("crane.png is an image. Only text can be sent")
    chosen = {"name": "crane.bin", "mimeType": "", "buffer": b"a\0b"}
    await page.locator("#files").set_input_files(chosen)  # type: ignore[arg-type]
    await expect(alert).to_contain_text("crane.bin is not a text file.")
    long = {"name": "long.txt", "mimeType": "text/plain", "buffer": b"a" * 2_000_000}
    await page.locator("#files").set_input_files(long)  # type: ignore[arg-type]
    await expect(alert).to_contain_text("long.txt is too long. A message has at most")
    await expect(screen.box).to_have_value(re.compile("^Look:\n````"))


async def place(found: Locator) -> FloatRect:
    box = await found.bounding_box()
    assert box is not None
    return box


async def swipe(session: CDPSession, begin: tuple[int, int], end: tuple[int, int]) -> None:
    """A finger that goes from one place to another."""
    for kind, share in (("touchStart", 0.0), *(("touchMove", n / 4) for n in range(1, 5))):
        x, y = (a + (b - a) * share for a, b in zip(begin, end, strict=True))
        points = [{"x": x, "y": y}]
        await session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    await session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


async def pulled_down(session: CDPSession, sheet: Locator) -> None:
    """Take a sheet by its head, and have it away."""
    top = int((await place(sheet))["y"])
    await swipe(session, (120, top + 20), (125, top + 160))
    await expect(sheet).to_be_hidden()


async def loaded(page: Page, name: str) -> None:
    """Wait for a module that is fetched on first use."""
    found = (
        "name => performance.getEntriesByType('resource').find((one) => one.name.includes(name))"
    )
    await page.wait_for_function(found, arg=name)
    await page.evaluate(f"name => import(({found})(name).name)", name)


async def test_a_finger_opens_and_puts_away(
    screen: Screen, product: RunningServer, browser: Browser, model: RunningUpstream
) -> None:
    """Not from the edge itself, which is the browser's, nor on what moves sideways.

    Breaks when: ``began`` in ``swipe.js`` takes any finger, the model is not in the header, or one
    of the two sheets does not follow.
    """
    model.script({"text": "```\n" + "a long line " * 40 + "\n```"})
    await screen.ask("Code, please.")
    context = await browser.new_context(
        base_url=product.base_url,
        viewport={"width": 390, "height": 800},
        has_touch=True,
        is_mobile=True,
        reduced_motion="reduce",
        storage_state=await sign_in(product, browser),
    )
    page = await context.new_page()
    held = Screen(page)
    await page.goto(screen.page.url)
    model_name = page.get_by_role("combobox", name="Model", exact=True)
    await expect(model_name).to_be_in_viewport()
    assert (await place(model_name))["height"] >= 44
    session = await context.new_cdp_session(page)
    navigation = page.get_by_role("dialog", name="Conversations")
    drawer = page.get_by_role("complementary", name="What the model sees")
    await page.locator("#scroller").tap(position={"x": 200, "y": 500})
    await loaded(page, "swipe")
    code = await place(held.feed.locator("pre"))
    for begin in ((4, 400), (40, int(code["y"] + 10)), (300, 400)):
        await swipe(session, begin, (begin[0] + 90, begin[1]))
    await swipe(session, (60, 300), (90, 480))
    await expect(navigation).to_be_hidden()
    await swipe(session, (60, 500), (220, 510))
    await expect(navigation).to_be_visible()
    await swipe(session, (260, 500), (60, 510))
    await expect(navigation).to_be_hidden()
    await held.button("What the model sees").tap()
    await expect(drawer).to_contain_text("kept free for the reply")
    await pulled_down(session, drawer)
    await page.keyboard.press("Control+Shift+L")
    outline = page.get_by_role("complementary", name="Outline")
    await expect(outline.get_by_role("link", name="Code, please.")).to_be_visible()
    await pulled_down(session, outline)
    assert held.complaints == []
    await context.close()


async def test_enter_signs_in(product: RunningServer, browser: Browser) -> None:
    """By the link at once; and after a wrong password the next word typed is the password.

    Breaks when: the link's button or the password has not the focus.
    """
    page = await (await browser.new_context(base_url=product.base_url)).new_page()
    await page.goto("/accounts/login/")
    await expect(page.get_by_label("Username")).to_be_focused()
    await page.keyboard.type("owner")
    await page.keyboard.press("Tab")
    await page.keyboard.type("wrong")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("alert")).to_be_visible()
    await expect(page.get_by_label("Username")).to_have_value("owner")
    await expect(page.get_by_label("Password")).to_be_focused()
    link = manage(product, "signin_link").strip().rpartition(" ")[2]
    await page.goto(link)
    await expect(page.get_by_role("button", name="Sign in as owner")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("form", name="Message")).to_be_visible()
    await page.context.close()


async def test_commands_given_while_one_is_under_way_are_all_carried_out(screen: Screen) -> None:
    """In their order, after the one that the server is slow to answer.

    Breaks when: ``#sink`` does not queue all of them, since htmx drops all that wait but the last.
    """
    page = screen.page
    await screen.ask("A wren")
    answers, done = asyncio.Event(), []

    async def slow(route: Route) -> None:
        await answers.wait()
        await route.continue_()
        done.append(route.request.post_data)

    await page.route("**/settings/", slow)
    async with page.expect_request("**/settings/"):
        await screen.send("/title One")
    await screen.send("/title Two")
    await screen.send("/system Sing.")
    await screen.send("/title Three")
    answers.set()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Three")
    assert done == ["title=One", "title=Two", "system_prompt=Sing.", "title=Three"]
