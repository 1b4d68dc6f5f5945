"""Pictures of tools: calls and results, approval, what was looked up, masks, and their set-up."""

from __future__ import annotations

import asyncio

from playwright.async_api import expect

from tests.browser.pictures import picture, pictures_at
from tests.browser.screen import Screen, imported, imported_messages
from tests.browser.scripts import SET_UP, TAKE_AWAY, WRITES
from tests.browser.test_masking import looked
from tests.browser.test_recall import READ
from tests.servers import RunningServer, manage
from tests.tool_server import ToolServerProcess
from tests.upstreams import RunningUpstream

REPORTED = """
from chatapp.models import ToolDefinition
ToolDefinition.objects.filter(name="write").update(reported_sha256="e" * 64)
"""


async def of_tools(screen: Screen, model: RunningUpstream, product: RunningServer) -> None:
    """From a call that waits for approval to a server whose tools have changed."""
    server = ToolServerProcess()
    try:
        await asyncio.to_thread(
            manage, product, "shell", "-c", SET_UP.format(address=f"{server.origin}/mcp")
        )
        await _of_calls(screen, model)
        await _of_the_set_up(screen, product)
    finally:
        await asyncio.to_thread(manage, product, "shell", "-c", TAKE_AWAY)
        server.kill()
    await _of_recall(screen, model, product)
    await _of_masks(screen, product)


async def _of_calls(screen: Screen, model: RunningUpstream) -> None:
    page = screen.page
    # Nothing is left of the replies that the scene before had in store.
    model.reset()
    await page.goto("/?new")
    model.script(WRITES, {"text": "It is kept in your notes."})
    await screen.send("Write it down.")
    question = page.get_by_role("group", name="Approve tests__write")
    await expect(question).to_be_visible()
    await picture(screen, "tool-approval")
    await question.get_by_role("button", name="Allow once").click()
    await expect(screen.articles.last).to_contain_text("It is kept")
    await expect(screen.button("Stop")).to_be_hidden()
    await picture(screen, "tool-cards")
    for summary in await page.locator("#feed details > summary").all():
        await summary.press("Enter")
    await picture(screen, "tool-cards-open")
    await page.goto(page.url.partition("?")[0] + "tools/")
    await picture(screen, "tools-of-a-conversation")


async def _of_the_set_up(screen: Screen, product: RunningServer) -> None:
    page = screen.page
    await asyncio.to_thread(manage, product, "shell", "-c", REPORTED)
    await pictures_at(screen, admin_tool_servers="/admin/chatapp/toolserver/")
    await page.get_by_role("link", name="tests").click()
    await picture(screen, "admin-tool-server")


async def _of_recall(screen: Screen, model: RunningUpstream, product: RunningServer) -> None:
    page = screen.page
    secret = "The spare key KX-4021 hangs behind the third beehive, on a brass hook."
    words = "word " * 70
    rest = (f"Remark {number}: {words}" for number in range(43))
    await page.goto(imported(product, secret, *rest))
    await screen.button("Compact").click()
    await expect(screen.status).to_have_text("Conversation compressed")
    model.script(READ, {"text": "Behind the third beehive."})
    await screen.send("Where is KX-4021?")
    await expect(screen.articles.last).to_contain_text("Behind the third beehive.")
    await expect(screen.button("Stop")).to_be_hidden()
    for summary in await page.locator("#feed details > summary").all():
        await summary.press("Enter")
    await picture(screen, "looked-up")


async def _of_masks(screen: Screen, product: RunningServer) -> None:
    await screen.page.goto(imported_messages(product, looked()))
    await screen.ask("And now?")
    await expect(screen.page.locator("#notice")).to_contain_text("tool results masked")
    await picture(screen, "masked")
    await screen.button("Show what is masked").click()
    drawer = screen.page.get_by_role("complementary", name="What the model sees")
    await drawer.get_by_text("message 3").locator("..").click()
    await picture(screen, "drawer-masked")
