"""The whole contract for programs in one small client: HTTP for commands, a websocket to follow."""

from __future__ import annotations

import re
import uuid
from collections.abc import AsyncIterator
from typing import Any

import aiohttp

Json = dict[str, Any]


class JsonClient:
    """One person's conversation; ``close`` it at the end."""

    def __init__(self, base_url: str) -> None:
        jar = aiohttp.CookieJar(unsafe=True)  # keeps the cookies of an IP address, too
        headers = {"Accept": "application/json", "Origin": base_url}
        self._http = aiohttp.ClientSession(base_url, cookie_jar=jar, headers=headers)
        self.code, self.event_no, self.close = "", 0, self._http.close

    async def sign_in(self, link: str) -> None:
        """Spend a one-time link: its page holds the CSRF token, which every command then sends."""
        async with self._http.get(link) as page:
            token = re.findall(r'name="csrfmiddlewaretoken" value="(\w+)"', await page.text())[0]
        async with self._http.post(link, data={"csrfmiddlewaretoken": token}):
            cookies = {cookie.key: cookie.value for cookie in self._http.cookie_jar}
            self._http.headers["X-CSRFToken"] = cookies["csrftoken"]

    async def post(self, path: str, **fields: object) -> tuple[int, Json]:
        """A command on the conversation; its status and answer."""
        async with self._http.post(f"/c/{self.code}/{path}", json=fields) as answer:
            return answer.status, await answer.json()

    async def get(self, path: str = "") -> Json:
        """What a fresh page would show, or one of its parts."""
        async with self._http.get(f"/c/{self.code}/{path}") as answer:
            return dict(await answer.json())

    async def create(self, **fields: object) -> None:
        """Begin a conversation."""
        async with self._http.post("/c/", json=fields) as answer:
            self.code = (await answer.json())["code"]

    async def send(self, text: str) -> Json:
        """Send a message; its turn."""
        return (await self.post("messages/", text=text, client_msg_id=str(uuid.uuid4())))[1]

    async def events(self) -> AsyncIterator[Json]:
        """What happens from the last event seen on; leave the loop and call again to reconnect."""
        address = f"/ws/c/{self.code}/?format=json&after={self.event_no}"
        async with self._http.ws_connect(address) as socket:
            async for message in socket:
                event = message.json()
                self.event_no = max(self.event_no, event["event_no"])
                yield event
