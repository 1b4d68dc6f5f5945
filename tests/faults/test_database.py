"""Many writers, a slow query, and a backup while the product runs."""

from __future__ import annotations

import asyncio
import sqlite3
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.fake_upstream import FakeUpstream
from tests.faults.world import World, ended, holds, send
from tests.json_client import JsonClient


@pytest.fixture
async def person(world: World, upstream: FakeUpstream) -> AsyncIterator[JsonClient]:
    client = await world.person()
    yield client
    await client.close()


async def test_b03_a_slow_query_of_one_delays_nobody_else(
    world: World, upstream: FakeUpstream, person: JsonClient
) -> None:
    """I25: one person's search takes five seconds; the others' pages come as always.

    Breaks when: units of work run in Django's one thread for everything synchronous.
    """
    server = await asyncio.to_thread(lambda: world.start(TESTS_SLOW="searching.search:5"))
    there = world.at(server.base_url, server, person.code)
    assert (await there.get())["messages"] == []
    begun = time.monotonic()
    slow = asyncio.create_task(searched(there))
    took = []
    while not slow.done():
        asked = time.monotonic()
        await there.get()
        took.append(time.monotonic() - asked)
        await asyncio.sleep(0.05)
    await slow
    assert time.monotonic() - begun >= 5
    assert sorted(took)[int(len(took) * 0.95)] < 1.0
    await there.close()
    await asyncio.to_thread(server.kill)


async def searched(client: JsonClient) -> int:
    async with client._http.get("/search/?q=hello") as answer:
        return answer.status


# On PostgreSQL pg_dump reads one snapshot: the same promise, and not ours to test.
@pytest.mark.parametrize("world", ["sqlite"], indirect=True)
async def test_b05_a_backup_taken_while_a_reply_is_written_can_be_served(
    world: World, upstream: FakeUpstream, person: JsonClient, tmp_path: Path
) -> None:
    """What was acknowledged is in it, whole; the reply in the middle ends there as interrupted.

    Breaks when: a message and its turn are stored by more than one transaction.
    """
    first, second = str(uuid.uuid4()), str(uuid.uuid4())
    assert await send(person, "Hello", first)
    await ended(person)
    assert await send(person, "slowly 100", second)
    copy = tmp_path / "server.sqlite3"
    source = world.database.url.removeprefix("sqlite:///")
    with closing(sqlite3.connect(source)) as one, closing(sqlite3.connect(copy)) as other:
        one.backup(other)
        assert other.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    restored = World(tmp_path, database=f"sqlite:///{copy}", redis="", upstream_port=1)
    try:
        reader = await restored.person()
        reader.code = person.code
        page = await ended(reader)
        texts = {first: "Hello", second: "slowly 100"}
        await holds(restored, reader, upstream, acknowledged=texts)
        assert page["turns"][-1]["status"] == "interrupted"
        await reader.close()
    finally:
        restored.close()


@pytest.mark.soak
@pytest.mark.timeout(240)
async def test_b01_twenty_writers_for_a_minute(
    world: World, upstream: FakeUpstream, person: JsonClient
) -> None:
    """Breaks when: transactions begin deferred, or the timeout for the lock is Django's."""
    clients = [await world.person() for _ in range(20)]
    until = time.monotonic() + 60
    sent: list[dict[str, str]] = [{} for _ in clients]

    async def write(number: int) -> None:
        while time.monotonic() < until:
            identity = str(uuid.uuid4())
            sent[number][identity] = "Hello"
            assert await send(clients[number], "Hello", identity)
            await ended(clients[number])

    await asyncio.gather(*(write(number) for number in range(20)))
    for client, texts in zip(clients, sent, strict=True):
        await holds(world, client, upstream, acknowledged=texts)
        await client.close()
    assert "database is locked" not in world.survivor.log
