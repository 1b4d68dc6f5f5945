"""The screen by its names and roles, as a reader and a screen reader find them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import zip_longest
from typing import Any

import httpx2
from playwright.async_api import (
    Browser,
    ConsoleMessage,
    Dialog,
    Locator,
    Page,
    Request,
    StorageState,
    WebSocketRoute,
    expect,
)

from tests.servers import RunningServer

_sessions: dict[str, StorageState] = {}
_imports = itertools.count()


async def sign_in(server: RunningServer, browser: Browser) -> StorageState:
    """Cookies of the owner, who signs in once a server: the printed link works once."""
    if server.signin_link not in _sessions:
        context = await browser.new_context()
        page = await context.new_page()
        await page.goto(server.signin_link)
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.get_by_role("form", name="Message")).to_be_visible()
        _sessions[server.signin_link] = await context.storage_state()
        await context.close()
    return _sessions[server.signin_link]


def imported(server: RunningServer, *texts: str, written: Sequence[str] = ()) -> str:
    """Path of a new conversation of these messages, the user's and the assistant's in turn.

    ``written`` says when each was, in ISO 8601; now, if nothing is said.
    """
    roles = ("user", "assistant")
    messages = [
        {"role": roles[n % 2], "content": text, "created_at": at}
        for n, (text, at) in enumerate(zip_longest(texts, written))
    ]
    return imported_messages(server, messages)


def imported_messages(server: RunningServer, messages: Sequence[dict[str, Any]]) -> str:
    """The same of OpenAI-style messages, calls and results of tools among them.

    Always a new conversation, by the microseconds of its first message: the same file imported
    again is recognised, and would be whatever an earlier test has made of it.
    """
    first, *others = messages
    written = first.get("created_at")
    at = datetime.fromisoformat(written) if written else datetime.now(UTC).replace(microsecond=0)
    at += timedelta(microseconds=next(_imports))
    messages = [{**first, "created_at": at.isoformat()}, *others]
    file = {"file": ("messages.json", json.dumps(messages))}
    with _browser_of_owner(server) as client:
        told = client.post("/import/", files=file).raise_for_status().json()
        while told.get("state", "finished") in {"waiting", "running"}:
            told = client.get(f"/import/{told['job']}/").raise_for_status().json()
    assert told["conversations"][0]["created"], told
    return f"/c/{told['conversations'][0]['code']}/"


def forget_conversations(server: RunningServer) -> None:
    """Delete those of the owner: what is under way in them ends, and asks the model no more."""
    with _browser_of_owner(server) as client:
        while listed := client.get("/").raise_for_status().json()["conversations"]:
            for one in listed:
                client.post(f"/c/{one['code']}/delete/").raise_for_status()


def _browser_of_owner(server: RunningServer) -> httpx2.Client:
    """Without a page: what a script with the owner's cookies can send. They have signed in."""
    cookies = {one["name"]: one["value"] for one in _sessions[server.signin_link]["cookies"]}
    headers = {
        "Accept": "application/json",
        "Origin": server.origin,
        "X-CSRFToken": cookies["csrftoken"],
    }
    return httpx2.Client(base_url=server.base_url, cookies=cookies, headers=headers, timeout=60)


@dataclass
class Screen:
    """One page of the chat. ``complaints`` are errors of scripts and of the content policy."""

    page: Page
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("request", self._requested)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error.stack)))
        self.page.on("console", self._said)

    def _requested(self, request: Request) -> None:
        self.requests.append(request.url)

    def _said(self, message: ConsoleMessage) -> None:
        if "Content Security Policy" in message.text:
            self.complaints.append(message.text)

    @property
    def box(self) -> Locator:
        """Where a message is written."""
        return self.page.get_by_role("textbox", name="Message", exact=True)

    @property
    def feed(self) -> Locator:
        """The messages."""
        return self.page.get_by_role("log", name="Messages")

    @property
    def articles(self) -> Locator:
        """Each message, oldest first."""
        return self.feed.get_by_role("article")

    @property
    def status(self) -> Locator:
        """What a screen reader is told."""
        return self.page.get_by_role("status")

    def button(self, name: str) -> Locator:
        """The button of this name."""
        return self.page.get_by_role("button", name=name, exact=True)

    async def send(self, text: str) -> None:
        """Write and press Enter."""
        await self.box.fill(text)
        await self.box.press("Enter")

    async def ask(self, text: str) -> None:
        """Send, and wait for the whole answer."""
        before = await self.articles.count()
        await self.send(text)
        await expect(self.articles).to_have_count(before + 2)
        await expect(self.button("Stop")).to_be_hidden()
        await expect(self.feed.locator("[aria-busy]")).to_have_count(0)

    async def cut_at(self, event: str) -> list[str]:
        """Have the first connection from the next load on end in place of an event of this name.

        The next one makes up for it by a state. Returns a list that then holds the event.
        """
        lost: list[str] = []

        async def through(page: WebSocketRoute) -> None:
            server, first = page.connect_to_server(), not lost

            async def to_the_page(message: str | bytes) -> None:
                if first and f'data-event="{event}"' in str(message):
                    lost.append(str(message))
                    await page.close(code=1011)
                elif not first or not lost:
                    page.send(message)

            server.on_message(to_the_page)

        await self.page.route_web_socket("**/ws/**", through)
        return lost

    async def act(self, number: int, action: str) -> None:
        """Choose an action of the message of that number, counted from 0."""
        article = self.articles.nth(number)
        await article.hover()
        await article.get_by_role("button", name="More about this message").click()
        menu = self.page.get_by_role("group", name="Message", exact=True)
        await menu.get_by_role("button", name=action, exact=True).click()

    async def leaves(self) -> str | None:
        """What the browser asks whoever loads the page again; None: nothing."""
        asked: list[str] = []

        async def answer(dialog: Dialog) -> None:
            asked.append(dialog.type)
            await dialog.accept()

        self.page.on("dialog", answer)
        await self.page.reload()
        self.page.remove_listener("dialog", answer)
        return asked[0] if asked else None

    async def feed_html(self) -> str:
        """The feed as the document has it now."""
        return str(await self.feed.evaluate("feed => feed.innerHTML"))

    async def listed(self) -> list[str]:
        """The codes of the conversations in the list."""
        answer = await self.page.request.get("/", headers={"Accept": "application/json"})
        return [one["code"] for one in (await answer.json())["conversations"]]

    async def stored(self) -> Any:
        """The conversation as JSON."""
        headers = {"Accept": "application/json"}
        answer = await self.page.request.get(self.page.url, headers=headers)
        return await answer.json()
