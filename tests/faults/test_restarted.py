"""Everybody is looking when the server is started anew."""

from __future__ import annotations

import asyncio
import json
import random
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest

from tests.benchmarks._processes import sessions
from tests.fake_upstream import FakeUpstream
from tests.faults.following import beside
from tests.faults.world import answer, send
from tests.json_client import Json, JsonClient
from tests.ports import free_port
from tests.servers import RunningServer, start_server
from tests.services import own_database, postgres, redis

# Twenty people, each with one conversation open in so many tabs.
PEOPLE, TABS = 20, 15
# Seconds in which everybody must be back once the server serves again.
BACK = 15
# Seconds until the test gives up; a busy computer is slow to open so many.
PATIENCE = 120
# Any token will do that is in the cookie and in the header.
TOKEN = "c" * 32


def pause(failures: int) -> float:
    """Seconds that the page waits (socket.js), of which a test in a browser holds."""
    return min(8.0, 0.25 * float(2**failures)) * (0.5 + random.random() / 2)


@dataclass(slots=True)
class Tab:
    """One open page: it is told states and text, and comes back as the page does."""

    client: JsonClient
    shown: int = 0
    """Characters of the reply."""
    states: list[tuple[float, Json]] = field(default_factory=list)
    """When each came, and what it said."""

    async def follow(self) -> None:
        """Until it is cancelled."""
        failures = 0
        while True:
            after = self.states[-1][1]["event_no"] if self.states else 0
            address = f"/ws/c/{self.client.code}/?format=json&after={after}"
            try:
                async with self.client._http.ws_connect(address) as socket:
                    async for message in socket:
                        failures = 0
                        event = json.loads(message.data)
                        if event["type"] == "state":
                            self.states.append((time.monotonic(), event))
                        elif event["type"] == "delta":
                            self.shown = event["offset"] + len(event["text"])
            except (OSError, aiohttp.ClientError):
                failures += 1
            await asyncio.sleep(pause(failures))

    def back_at(self, since: float) -> float | None:
        """When it was first told a state after that moment."""
        return next((at for at, _ in self.states if at > since), None)


async def told(tabs: list[Tab], since: float) -> float:
    """Seconds until every one of them has been told a state."""
    async with asyncio.timeout(PATIENCE):
        while not all(tab.back_at(since) for tab in tabs):  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    return max(tab.back_at(since) or 0.0 for tab in tabs) - since


async def ended(task: asyncio.Task[None]) -> None:
    """Cancel, and wait for it."""
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.fixture(params=[1, 2], ids=["sqlite", "postgres-redis-two-processes"])
def begin(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[Callable[..., list[RunningServer]]]:
    """Start every process, at the same ports each time; they end with the test."""
    ports = [free_port() for _ in range(request.param)]
    started: list[RunningServer] = []
    with ExitStack() as stack:
        services: dict[str, str] = {}
        if len(ports) > 1:
            services["DATABASE_URL"] = stack.enter_context(
                own_database(stack.enter_context(postgres()))
            )
            services["REDIS_URL"] = stack.enter_context(redis())

        def start(upstream: FakeUpstream, *, prepare: bool) -> list[RunningServer]:
            more = {"OPENAI_BASE_URL": upstream.base_url, "CHAT_MODEL": "fake-model", **services}
            serving = [
                start_server(
                    tmp_path, fresh=False, prepare=prepare and port == ports[0], port=port, **more
                )
                for port in ports
            ]
            started.extend(serving)
            return serving

        yield start
        for server in started:
            server.kill()


@pytest.mark.soak
@pytest.mark.timeout(300)
async def test_d08_three_hundred_pages_come_back(
    begin: Callable[..., list[RunningServer]],
) -> None:
    """Told to end in the middle of twenty replies and started anew: within 15 seconds every page
    has the truth again; no acknowledged message is lost; each reply is there, as interrupted,
    with every word that was shown of it.

    Breaks when: a text is not stored at an orderly end.
    """
    async with FakeUpstream(handler=answer) as upstream, AsyncExitStack() as stack:
        servers = await asyncio.to_thread(lambda: begin(upstream, prepare=True))
        people = []
        for number, key in enumerate((await asyncio.to_thread(sessions, servers[0]))[:PEOPLE]):
            at = servers[number % len(servers)]
            cookies = [("sessionid", key), ("csrftoken", TOKEN)]
            people.append(beside(cookies, at.base_url, origin=at.origin))
            stack.push_async_callback(people[-1].close)
            await people[-1].create()
        tabs = [Tab(client) for client in people for _ in range(TABS)]
        for tab in tabs:
            stack.push_async_callback(ended, asyncio.create_task(tab.follow()))
        await told(tabs, 0.0)
        sent = {}
        for client in people:
            accepted = await send(client, "slowly 3000", str(uuid.uuid4()))
            assert accepted is not None
            sent[client] = accepted["turn"]
        async with asyncio.timeout(PATIENCE):
            while not all(tab.shown for tab in tabs):  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        await asyncio.gather(*(asyncio.to_thread(server.terminate) for server in servers))
        shown = {client: max(t.shown for t in tabs if t.client is client) for client in people}
        down = time.monotonic()
        await asyncio.to_thread(lambda: begin(upstream, prepare=False))
        up = time.monotonic()
        # Who is at the process that was started first may be back before the last one serves.
        assert down + await told(tabs, down) - up <= BACK
        for tab in tabs:
            assert tab.states[-1][1]["turn"] is None
        for client, turn in sent.items():
            page = await client.get()
            assert [one["status"] for one in page["messages"]] == ["complete", "partial"]
            assert page["messages"][0]["text"] == "slowly 3000"
            assert len(page["messages"][1]["text"]) >= shown[client]
            assert (await client.get(f"turns/{turn}/"))["status"] == "interrupted"
