"""Tools on the screen: cards while they run and after a reload, and Stop in the midst of one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from tests.browser.screen import Screen, sign_in
from tests.servers import RunningServer, start_server
from tests.upstreams import RunningUpstream

pytestmark = pytest.mark.browser

HANG = {"steps": [{"tool": {"name": "hang", "arguments": '{"city": "Malmö"}'}}, {"finish": "stop"}]}
WEATHER = {
    "steps": [
        {"text": "I will look."},
        {"tool": {"name": "weather", "arguments": '{"city": "Malmö<b>"}'}},
        {"finish": "tool_calls"},
        {"done": True},
    ]
}


@pytest.fixture(scope="module")
def tooled(
    tmp_path_factory: pytest.TempPathFactory, model_server: RunningUpstream
) -> Iterator[RunningServer]:
    """A product whose models are offered two tools."""
    server = start_server(
        tmp_path_factory.mktemp("tooled"),
        DJANGO_SETTINGS_MODULE="tests.tool_settings",
        OPENAI_BASE_URL=model_server.base_url,
        OPENAI_API_KEY="a-key",
        CONTEXT_WINDOW="8192",
    )
    yield server
    server.kill()


@pytest_asyncio.fixture(loop_scope="session")
async def screen(
    tooled: RunningServer, browser: Browser, model: RunningUpstream
) -> AsyncIterator[Screen]:
    """A new conversation of that product."""
    context = await browser.new_context(
        base_url=tooled.base_url, storage_state=await sign_in(tooled, browser)
    )
    page = await context.new_page()
    screen = Screen(page)
    await page.goto("/?new")
    yield screen
    assert screen.complaints == []
    await context.close()


async def test_i22_cards_of_calls_and_results_are_the_same_after_a_reload(
    screen: Screen, model: RunningUpstream
) -> None:
    """Folded: the name; open: arguments, and in the next card result and time.

    Breaks when: an event shows a call in another way than the page, or twice.
    """
    model.script(WEATHER, {"text": "It is sunny."})
    await screen.send("How is the weather?")
    await expect(screen.articles).to_have_count(4)
    await expect(screen.articles.nth(3)).to_contain_text("It is sunny.")
    await expect(screen.button("Stop")).to_be_hidden()
    call = screen.articles.nth(1).get_by_role("group")
    await expect(call).to_have_count(1)
    await expect(call.get_by_text("Called weather")).to_be_visible()
    await expect(call.locator("pre")).to_be_hidden()
    await call.get_by_text("Called weather").press("Enter")
    await expect(call.locator("pre")).to_have_text('{"city": "Malmö<b>"}')
    answer = screen.articles.nth(2)
    await expect(answer.get_by_role("heading")).to_have_text("Tool: weather")
    await expect(answer.get_by_text("after 0.0 s")).to_be_visible()
    await answer.locator("summary").press("Enter")
    await expect(answer.locator("pre")).to_have_text("Sunny in Malmö<b>.")
    for details in (call, answer.get_by_role("group")):
        await details.evaluate("one => { one.open = false }")
    before = await screen.feed_html()
    await screen.page.reload()
    await expect(screen.articles).to_have_count(4)
    assert await screen.feed_html() == before


async def test_stop_in_mid_tool_and_a_reload_before_it(
    screen: Screen, model: RunningUpstream
) -> None:
    """Breaks when: a page that is opened in mid-tool has no Stop, or the tool outlives it."""
    model.script(HANG)
    await screen.send("Hang on")
    await expect(screen.articles.nth(1).get_by_text("Called hang")).to_be_visible()
    await screen.page.reload()
    await expect(screen.articles.nth(1).get_by_text("Called hang")).to_be_visible()
    await expect(screen.articles).to_have_count(2)
    await expect(screen.button("Regenerate")).to_be_hidden()
    await expect(screen.page.locator("#scroller[data-answering]")).to_be_attached()
    after = "one => getComputedStyle(one, '::after').content"
    # A state may put another element in the place of the one that was just found: then it is empty.
    await screen.page.wait_for_function(
        f"({after})(document.querySelectorAll('#feed article')[1]) === '\"Running\"'"
    )
    await screen.button("Stop").click()
    await expect(screen.button("Stop")).to_be_hidden()
    await expect(screen.articles.nth(1)).to_contain_text("Stopped")
    stored = await screen.stored()
    assert [one["status"] for one in stored["turns"]] == ["stopped"]
    assert [one["role"] for one in stored["messages"]] == ["user", "assistant"]
    await expect(screen.page.locator("#scroller[data-answering]")).not_to_be_attached()
    assert await screen.articles.nth(1).evaluate(after) in {"none", "normal", ""}
    await screen.ask("And now?")
    results = [one for one in model.chats()[-1]["messages"] if one["role"] == "tool"]
    assert [one["content"] for one in results] == [
        "error: No result came. It is not known whether the call took effect."
    ]


async def test_whoever_opens_the_page_in_mid_tool_sees_the_answer_come(
    screen: Screen, model: RunningUpstream
) -> None:
    """A reload between two rounds: the next reply streams into the page that was opened then.

    Breaks when: a viewer does not know that the turn goes on in another message.
    """
    model.script(
        WEATHER, {"steps": [{"wait": None}, {"text": "Sunny."}, {"finish": "stop"}, {"done": True}]}
    )
    await screen.send("How is the weather?")
    await expect(screen.articles).to_have_count(4)
    await screen.page.reload()
    await expect(screen.articles).to_have_count(4)
    await expect(screen.articles.nth(3)).to_have_attribute("aria-busy", "true")
    model.release()
    await expect(screen.articles.nth(3)).to_contain_text("Sunny.")
    await expect(screen.button("Stop")).to_be_hidden()
