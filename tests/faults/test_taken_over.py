"""On SQLite a process that starts alone takes over at once; beside a living one it takes nothing.

The leases are the product's half minutes, so what ends sooner did not wait for them.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.chatapp.test_durability import answers, under_uvicorn
from tests.fake_scripts import Json, Script, Text, Wait, default_answer, is_summary_request, text_of
from tests.fake_upstream import FakeUpstream
from tests.faults.database import Database
from tests.faults.following import beside, cookies_of
from tests.faults.world import ended, send, talk, until
from tests.json_client import JsonClient
from tests.servers import RunningServer, start_server

Serve = Callable[..., RunningServer]
NOW = "strftime('%Y-%m-%d %H:%M:%f', 'now')"
HELD = (
    f"SELECT (SELECT count(*) FROM chatapp_turn WHERE lease_expires_at > {NOW}"
    f" AND finished_at IS NULL), (SELECT count(*) FROM chatapp_conversation"
    f" WHERE compression_lease_expires_at > {NOW} AND compression_token <> '')"
)


@pytest.fixture
async def gate() -> asyncio.Event:
    return asyncio.Event()


@pytest.fixture
async def upstream(gate: asyncio.Event) -> AsyncIterator[FakeUpstream]:
    """Summaries, and replies to ``wait``, end once the gate is open."""

    def answer(request: Json) -> Script:
        steps = default_answer(request).steps
        said = [text_of(one) for one in request["messages"] if one["role"] == "user"]
        if is_summary_request(request):
            return Script(steps=(Wait(gate), *steps))
        return Script(steps=(Text("Well. "), Wait(gate), *steps) if said[-1] == "wait" else steps)

    async with FakeUpstream(handler=answer) as upstream:
        yield upstream


@pytest.fixture
def first(serve: Serve, upstream: FakeUpstream) -> RunningServer:
    return serve(OPENAI_BASE_URL=upstream.base_url, CHAT_MODEL="fake-model", CONTEXT_WINDOW="4000")


@pytest.fixture
async def working(first: RunningServer) -> AsyncIterator[tuple[JsonClient, JsonClient]]:
    """Two conversations of one person: in one a reply is written, in the other a summary."""
    replying = JsonClient(first.base_url)
    await replying.sign_in(first.signin_link)
    compressing = beside(cookies_of(replying), first.base_url, origin=first.origin)
    for client in (replying, compressing):
        await client.create()
    await talk(compressing)
    assert (await compressing.post("compact/"))[1]["state"] == "started"
    assert await send(replying, "wait", str(uuid.uuid4()))
    yield replying, compressing
    for client in (replying, compressing):
        await client.close()


@contextmanager
def under_daphne(first: RunningServer) -> Iterator[RunningServer]:
    """Another process on the same database, as the product is served."""
    known = first.environment
    server = start_server(
        Path(known["DATABASE_URL"].removeprefix("sqlite:///")).parent,
        prepare=False,
        OPENAI_BASE_URL=known["OPENAI_BASE_URL"],
        CHAT_MODEL="fake-model",
        CONTEXT_WINDOW="4000",
    )
    try:
        yield server
    finally:
        server.kill()


def held(server: RunningServer) -> tuple[int, int]:
    """Turns and compressions with a lease that has not expired."""
    ((turns, compressions),) = Database(server.environment["DATABASE_URL"]).rows(HELD)
    return turns, compressions


@pytest.mark.parametrize("another", [under_daphne, under_uvicorn])
async def test_i5_c03_what_a_killed_process_held_is_free_at_the_next_start(
    first: RunningServer, working: tuple[JsonClient, JsonClient], gate: asyncio.Event, another: Any
) -> None:
    """The reply is there as interrupted, the summary can be written, and half a minute of both
    leases is left.

    Breaks when: nobody takes over at a start, or only what has expired.
    """
    await asyncio.to_thread(first.kill)
    assert held(first) == (1, 1)
    with another(first) as second:
        await until(lambda: answers(f"{second.base_url}/healthz"))
        assert held(second) == (0, 0)
        origin = second.environment["ALLOWED_ORIGINS"]
        cookies = cookies_of(working[0])
        there = [beside(cookies, second.base_url, origin=origin) for _ in working]
        for client, before in zip(there, working, strict=True):
            client.code = before.code
        page = await ended(there[0])
        assert page["messages"][1]["status"] == "partial"
        assert page["turns"][0]["error"]["code"] == "interrupted"
        gate.set()
        status, said = await there[1].post("compact/")
        assert (status, said.get("state")) == (202, "started"), said
        for client in there:
            await client.close()


async def test_i5_i10_beside_a_living_process_nothing_is_taken(
    first: RunningServer, working: tuple[JsonClient, JsonClient], gate: asyncio.Event
) -> None:
    """Started by mistake, killed, and started again: the first one's reply and its summary come to
    their ends.

    Breaks when: a start takes over without asking whether it is alone.
    """
    replying, compressing = working
    for another in (under_daphne, under_uvicorn):
        with another(first) as second:
            await until(lambda: answers(f"{second.base_url}/healthz"))
            assert held(first) == (1, 1)
    gate.set()
    page = await ended(replying)
    assert [one["status"] for one in page["messages"]] == ["complete", "complete"]
    async with asyncio.timeout(60):
        while (await compressing.get())["compression"]["version"] == 0:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
