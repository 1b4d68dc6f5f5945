"""A call that waits for approval, on every open page: answered by keyboard, and on a phone."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator

import pytest
from playwright.async_api import BrowserContext, Locator, expect

from tests.browser.screen import Screen
from tests.browser.scripts import SET_UP, TAKE_AWAY, WRITES
from tests.browser.test_accessibility import findings
from tests.servers import RunningServer, manage
from tests.tool_server import ToolServerProcess
from tests.upstreams import RunningUpstream

pytestmark = pytest.mark.browser

CALL = "a1b2c3d4e"
# What a turn's process does when the model has called a tool, done by another process: the page
# learns of it from the database.
ASKS = f"""
from chatapp.conversations.tools import approvals
from chatapp.models import Message, Turn
from compression.tools.approval import exact, fingerprint
turn = Turn.objects.filter(finished_at=None).latest("pk")
given = {{"path": "notes/<b>today</b>.md", "text": "Buy milk"}}
call = {{"id": "{CALL}", "type": "function",
        "function": {{"name": "notes__write", "arguments": exact(given)}}}}
Message.objects.filter(turn=turn, role="assistant").update(tool_calls=[call])
approvals.ask(approvals.Question(
    conversation_id=turn.conversation_id, turn=turn.pk, call_id="{CALL}", tool="notes__write",
    definition_sha256="d" * 64, arguments=exact(given), arguments_sha256=fingerprint(given)))
"""


async def _asked(screen: Screen, model: RunningUpstream, product: RunningServer) -> Locator:
    """The question on a page whose reply is still being written."""
    model.script({"steps": [{"text": "One moment. "}, {"wait": None}]})
    await screen.send("Write it down.")
    await expect(screen.articles.last).to_contain_text("One moment.")
    await asyncio.to_thread(manage, product, "shell", "-c", ASKS)
    return _question(screen)


def _question(screen: Screen) -> Locator:
    return screen.page.get_by_role("group", name="Approve notes__write")


@pytest.mark.soak
async def test_it_is_allowed_by_keyboard_and_every_page_shows_it(
    screen: Screen, signed_in: BrowserContext, model: RunningUpstream, product: RunningServer
) -> None:
    """Breaks when: a button is none, the focus goes with the question, or a page learns nothing."""
    question = await _asked(screen, model, product)
    await expect(question).to_contain_text('"path": "notes/<b>today</b>.md"')
    await expect(question.get_by_role("button")).to_have_text(
        ["Allow once", "Always for this tool here", "Refuse"]
    )
    assert await findings(screen.page) == []
    other = Screen(await signed_in.new_page())
    await other.page.goto(screen.page.url)
    await expect(_question(other)).to_be_visible()
    await question.get_by_role("button", name="Allow once").focus()
    await screen.page.keyboard.press("Enter")
    for page in (screen, other):
        await expect(page.feed).to_contain_text("notes__write: you allowed this call.")
        await expect(_question(page)).to_have_count(0)
    await expect(screen.articles.last).to_be_focused()
    assert screen.complaints == other.complaints == []
    await screen.button("Stop").click()


async def test_on_a_phone_it_is_refused_by_touch(
    screen: Screen, model: RunningUpstream, product: RunningServer
) -> None:
    """Breaks when: the buttons are smaller than 44 px, or do not fit on the screen."""
    await screen.page.set_viewport_size({"width": 390, "height": 844})
    question = await _asked(screen, model, product)
    for button in await question.get_by_role("button").all():
        await button.scroll_into_view_if_needed()
        box = await button.bounding_box()
        assert box is not None
        assert box["height"] >= 44
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
    await question.get_by_role("button", name="Refuse").click()
    await expect(screen.feed).to_contain_text("notes__write: you refused this call.")
    await screen.button("Stop").click()


async def test_a_reload_shows_it_and_stop_ends_it(
    screen: Screen, model: RunningUpstream, product: RunningServer
) -> None:
    """Breaks when: only an event shows a question, or buttons stay that do nothing."""
    await expect(await _asked(screen, model, product)).to_be_visible()
    await screen.page.reload()
    await expect(_question(screen)).to_be_visible()
    await screen.button("Stop").click()
    await expect(screen.articles.last).to_contain_text("Stopped")
    await expect(_question(screen)).to_have_count(0)
    await expect(screen.feed).to_contain_text(re.compile("the reply ended before you answered"))


@pytest.fixture
def notes(product: RunningServer) -> Iterator[ToolServerProcess]:
    """A tool server that every conversation of the product may use while the test runs."""
    server = ToolServerProcess()
    try:
        manage(product, "shell", "-c", SET_UP.format(address=f"{server.origin}/mcp"))
        yield server
        manage(product, "shell", "-c", TAKE_AWAY)
    finally:
        server.kill()


async def test_t02_t06_a_real_call_runs_when_it_is_allowed(
    screen: Screen, model: RunningUpstream, notes: ToolServerProcess
) -> None:
    """T02, T06: from the model's call to the server and back, with a person between.

    Breaks when: the product runs turns without asking anybody.
    """
    model.script(WRITES, {"text": "It is kept."})
    await screen.send("Write it down.")
    question = screen.page.get_by_role("group", name="Approve tests__write")
    await expect(question).to_contain_text('"text": "Buy milk"')
    assert notes.control()["written"] == []
    await question.get_by_role("button", name="Allow once").click()
    await expect(screen.articles.last).to_contain_text("It is kept.")
    assert notes.control()["written"] == ["Buy milk"]
    assert screen.complaints == []


async def test_while_a_call_waits_nothing_is_said_to_run(
    screen: Screen, model: RunningUpstream, product: RunningServer
) -> None:
    """Breaks when: "Running" stands beside the question that everything waits for."""

    async def after_it() -> str:
        read = "one => getComputedStyle(one, '::after').content"
        return str(await screen.articles.last.evaluate(read))

    model.script({"steps": [{"text": "One moment. "}, {"wait": None}]})
    await screen.send("Write it down.")
    await expect(screen.articles.last).to_contain_text("One moment.")
    asks = ASKS.replace("tool_calls=[call])", 'tool_calls=[call], status="complete")')
    await asyncio.to_thread(manage, product, "shell", "-c", asks)
    question = _question(screen)
    await expect(question).to_be_visible()
    await expect(screen.articles.last).not_to_have_attribute("aria-busy", "true")
    assert await after_it() == "none"
    await question.get_by_role("button", name="Allow once").click()
    await expect(question).to_have_count(0)
    assert await after_it() == '"Running"'
    await screen.button("Stop").click()
