"""Many writers, a slow query, a backup while the product runs, and storage that fails."""

from __future__ import annotations

import asyncio
import os
import resource
import sqlite3
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.benchmarks._processes import sessions
from tests.fake_upstream import FakeUpstream
from tests.faults.database import Database
from tests.faults.following import Follower, beside, replied
from tests.faults.world import World, ended, held, holds, send
from tests.json_client import JsonClient
from tests.services import own_database, postgres


@pytest.fixture
async def person(world: World, upstream: FakeUpstream) -> AsyncIterator[JsonClient]:
    client = await world.person()
    yield client
    await client.close()


async def test_b03_a_slow_query_of_one_delays_nobody_else(
    world: World, upstream: FakeUpstream, person: JsonClient, tmp_path: Path
) -> None:
    """I25: one person's search is held in the middle of a query; another one begins a conversation,
    follows it, sends and is answered meanwhile.

    Breaks when: units of work have one thread between them.
    """
    pipe, identity = tmp_path / "pipe", str(uuid.uuid4())
    os.mkfifo(pipe)
    server = await asyncio.to_thread(lambda: world.start(TESTS_HELD=f"searching.search:{pipe}"))
    there = world.at(server.base_url, server, person.code)
    (key, *_) = await asyncio.to_thread(sessions, server)
    cookies = [("sessionid", key), ("csrftoken", "c" * 32)]
    other = beside(cookies, server.base_url, origin=server.origin)
    search = asyncio.create_task(searched(there))
    holding = await held(pipe)
    await other.create()
    follower = Follower(other)
    async with follower.following():
        await follower.until(lambda mirror: mirror.states)
        assert await send(other, "Hello", identity)
        await follower.until(replied(2))
        await holds(world, other, upstream, acknowledged={identity: "Hello"}, follower=follower)
    assert not search.done()
    holding.close()
    assert await search == 200
    for client in (there, other):
        await client.close()
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

    Breaks when: only a process that has died here before is swept after.
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
    """Breaks when: transactions begin deferred."""
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


# What keeps a server from storing


async def refused_and_taken(
    person: JsonClient,
    begin: Callable[[], None],
    end: Callable[[], None],
    *,
    seconds: float,
    page: int = 200,
) -> dict[str, str]:
    """Send again and again while the storage fails, and once more afterwards; what was sent.

    Each try gets the same plain answer, a page the status ``page``, and nothing but the end of the
    outage is needed for the same message to be taken.
    """
    identity = str(uuid.uuid4())
    begin()
    begun = time.monotonic()
    while True:
        async with asyncio.timeout(60):
            status, said = await person.post("messages/", text="Hello", client_msg_id=identity)
        assert (status, said["error"]["code"]) == (503, "storage_unavailable")
        assert said["error"]["retryable"]
        headers = {"Accept": "text/html"}
        async with person._http.get(f"/c/{person.code}/", headers=headers) as answer:
            assert answer.status == page
            assert (page == 200) == ("cannot reach its database" not in await answer.text())
        if time.monotonic() - begun > seconds:
            break
        await asyncio.sleep(0.5)
    end()
    async with asyncio.timeout(30):
        while (await tried(person, "Hello", identity)) >= 500:  # noqa: ASYNC110
            await asyncio.sleep(0.2)
    return {identity: "Hello"}


@pytest.mark.soak
@pytest.mark.timeout(240)
@pytest.mark.parametrize("how", ["away", "read-only"])
async def test_b02_the_database_server_is_away_or_read_only(
    upstream: FakeUpstream, wide_world: World, tmp_path: Path, how: str
) -> None:
    """Half a minute with no acknowledgement and a plain error; then all goes on without a restart.

    Breaks when: a send is answered before it is stored, or a broken connection is used again.
    """
    with ExitStack() as stack:
        admin = stack.enter_context(postgres())
        url = stack.enter_context(own_database(admin))
        world = World(tmp_path, database=url, redis="", upstream_port=wide_world.upstream_port)
        stack.callback(world.close)
        person = await world.person()
        # What is stored at the first message of all, as of the model, is stored.
        first = str(uuid.uuid4())
        assert await send(person, "First", first)
        await ended(person)
        name, outside = urlsplit(url).path[1:], Database(admin)
        ending = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"

        def changed(away: str, read_only: str) -> Callable[[], None]:
            def change() -> None:
                setting = away if how == "away" else f"SET {read_only}"
                outside.run(f"ALTER DATABASE {name} {setting}")
                outside.run(ending)

            return change

        sent = await refused_and_taken(
            person,
            changed("ALLOW_CONNECTIONS false", "default_transaction_read_only = on"),
            changed("ALLOW_CONNECTIONS true", "default_transaction_read_only = off"),
            seconds=30,
            page=503 if how == "away" else 200,
        )
        await holds(world, person, upstream, acknowledged={first: "First", **sent})
        await person.close()


@pytest.mark.soak
@pytest.mark.parametrize("world", ["sqlite"], indirect=True)
async def test_b02_the_disk_is_full(
    world: World, upstream: FakeUpstream, person: JsonClient
) -> None:
    """No file of the process may grow, in the middle of a reply: it goes on for its viewers,
    nothing is acknowledged meanwhile, and with room again its end is stored and the next message
    taken.

    Breaks when: the end of a turn is written once only.
    """
    server = await asyncio.to_thread(lambda: world.start(TESTS_LEASE="30"))
    there = world.at(server.base_url, server, person.code)

    def room(size: int) -> Callable[[], None]:
        # Whatever would be written beyond so many bytes of a file is refused by the kernel.
        def limit() -> None:
            limits = (size, resource.RLIM_INFINITY)
            resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, limits)

        return limit

    text, identity = "slowly 100", str(uuid.uuid4())
    follower = Follower(there)
    async with follower.following():
        await follower.until(lambda mirror: mirror.states)
        assert await send(there, text, identity)
        await follower.until(lambda mirror: mirror.messages.get(2, {}).get("text"))
        other = world.at(server.base_url, server)
        await other.create()
        sent = await refused_and_taken(other, room(0), room(resource.RLIM_INFINITY), seconds=3)
        await follower.until(replied(2))
        page = await holds(world, there, upstream, acknowledged={identity: text}, follower=follower)
        await holds(world, other, upstream, acknowledged=sent)
    assert page["messages"][1]["status"] == "complete"
    for client in (there, other):
        await client.close()
    await asyncio.to_thread(server.kill)


async def tried(client: JsonClient, text: str, identity: str) -> int:
    """The status of one try to send."""
    status, _ = await client.post("messages/", text=text, client_msg_id=identity)
    return status
