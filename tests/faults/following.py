"""A program that follows a conversation and comes back whenever it is cut off."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from tests.json_client import Json, JsonClient
from tests.mirror import Mirror, Pages

# Seconds until something must have happened, and before a lost socket is opened again.
PATIENCE = 60
RETURN = 0.1
# Seconds within which a screen shows the truth, whatever was lost: two looks of an idle socket.
QUIET = 20


def beside(cookies: Iterable[tuple[str, str]], address: str, *, origin: str) -> JsonClient:
    """The same signed-in person at another address: another process, or a proxy before one."""
    client = JsonClient(address)
    known = dict(cookies)
    client._http.cookie_jar.update_cookies(known)
    client._http.headers["X-CSRFToken"] = known["csrftoken"]
    client._http.headers["Origin"] = origin
    return client


def cookies_of(client: JsonClient) -> list[tuple[str, str]]:
    """What :func:`beside` needs."""
    return [(cookie.key, cookie.value) for cookie in client._http.cookie_jar]


def replied(count: int) -> Callable[[Mirror], bool]:
    """Whether so many messages are shown, each of them ended."""

    def holds(mirror: Mirror) -> bool:
        ended = [one for one in mirror.messages.values() if one["status"] != "streaming"]
        return mirror.turn is None and len(ended) == len(mirror.messages) == count

    return holds


def shown(characters: int) -> Callable[[Mirror], bool]:
    """Whether more than so many characters of the first reply are shown."""
    return lambda mirror: len(mirror.messages.get(2, {}).get("text", "")) > characters


class Follower:
    """Its mirror shows the conversation; its journal holds every event in order.

    ``client`` may be exchanged at any time: the next connection is made with the new one.
    """

    def __init__(self, client: JsonClient) -> None:
        self.client = client
        self.mirror = Mirror()
        self.journal: list[Json] = []
        self.longest: dict[int, str] = {}
        """The most that was ever shown of each message."""
        self.close_code: int | None = None
        self.connections = 0
        self._changed = asyncio.Event()
        self._socket: aiohttp.ClientWebSocketResponse | None = None

    async def events(self) -> AsyncIterator[Json]:
        """The events of one connection. Raises ConnectionError when it ends."""
        seen, state_no = self.mirror.seen, self.mirror.state_no
        address = f"/ws/c/{self.client.code}/?format=json&after={seen}&state={state_no}"
        http = self.client._http
        async with http.ws_connect(address, max_msg_size=0) as socket:
            self._socket = socket
            self.connections += 1
            async for message in socket:
                yield message.json()
            self.close_code = socket.close_code
        raise ConnectionError(self.close_code)

    @asynccontextmanager
    async def following(self) -> AsyncIterator[Follower]:
        """Follow until the block ends; what the mirror does not take fails the block."""
        task = asyncio.create_task(self._follow())
        self._task = task
        try:
            yield self
            if task.done():
                task.result()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _follow(self) -> None:
        while True:
            try:
                async for event in self.events():
                    self._take(event)
            except (OSError, aiohttp.ClientError):
                # Also what ConnectionError says: the socket is gone.
                await asyncio.sleep(RETURN)

    def _take(self, event: Json) -> None:
        self.journal.append(event)
        self.mirror.apply(event)
        for seq, message in self.mirror.messages.items():
            if len(message["text"]) > len(self.longest.get(seq, "")):
                self.longest[seq] = message["text"]
        self._changed.set()

    async def drop(self) -> None:
        """Lose the connection; the follower comes back by itself."""
        if self._socket is not None:
            await self._socket.close()

    async def until(self, holds: Callable[[Mirror], Any]) -> None:
        """Wait until the mirror shows it. Raises what the mirror did not take."""
        async with asyncio.timeout(PATIENCE):
            while not holds(self.mirror):
                self._changed.clear()
                waiting = asyncio.create_task(self._changed.wait())
                await asyncio.wait({waiting, self._task}, return_when=asyncio.FIRST_COMPLETED)
                waiting.cancel()
                if self._task.done():
                    self._task.result()

    async def until_quiet(self) -> None:
        """Until the mirror equals a fresh page, asked of the same process."""
        deadline = asyncio.get_running_loop().time() + QUIET
        while (different := self.mirror.difference(await self.client.get())) is not None:
            assert asyncio.get_running_loop().time() < deadline, different
            await asyncio.sleep(0.1)
            if self._task.done():
                self._task.result()


class PageFollower(Follower):
    """A page that was loaded once and lives on fragments, as in a browser."""

    pages: Pages

    async def load(self) -> PageFollower:
        """Show the page as it is now."""
        page = await html_of(self.client)
        self.mirror.seen = int(re.findall(r'data-event-no="(\d+)"', page)[0])
        self.pages = Pages(page)
        return self

    async def events(self) -> AsyncIterator[Json]:
        """The fragments of one connection."""
        address = f"/ws/c/{self.client.code}/?after={self.mirror.seen}"
        async with self.client._http.ws_connect(address, max_msg_size=0) as socket:
            self._socket = socket
            self.connections += 1
            async for message in socket:
                yield {"html": message.data}
            self.close_code = socket.close_code
        raise ConnectionError(self.close_code)

    def _take(self, event: Json) -> None:
        self.journal.append(event)
        numbers = re.findall(r'data-event-no="(\d+)"', event["html"])
        self.mirror.seen = max([self.mirror.seen, *map(int, numbers)])
        self.pages.apply(event["html"])
        self._changed.set()

    async def until_quiet(self) -> None:
        """Until the words equal those of a fresh page, asked of the same process."""
        deadline = asyncio.get_running_loop().time() + QUIET
        while self.pages.text != (fresh := Pages(await html_of(self.client)).text):
            assert asyncio.get_running_loop().time() < deadline, (self.pages.text, fresh)
            await asyncio.sleep(0.1)
            if self._task.done():
                self._task.result()


async def html_of(client: JsonClient) -> str:
    """The page of the client's conversation, as a browser loads it."""
    async with client._http.get(f"/c/{client.code}/", headers={"Accept": "text/html"}) as answer:
        assert answer.status == 200
        return await answer.text()
