"""Many writers, a slow query, a backup while the product runs, and storage that fails."""

from __future__ import annotations

import asyncio
import os
import resource
import sys
import time
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.benchmarks._processes import sessions
from tests.documents import OPERATIONS
from tests.fake_scripts import Finish, Script, Step, Text, Wait
from tests.fake_upstream import FakeUpstream
from tests.faults.database import Database
from tests.faults.following import Follower, beside, replied, shown
from tests.faults.world import World, ended, held, holds, send, talk, until, until_compressed
from tests.json_client import JsonClient
from tests.services import own_database, postgres, postgres_folder

# What is kept of a conversation, and all that the program keeps.
PARTS = ("message", "turn", "summary")
TABLES = ("conversation", *PARTS, "project", "modelprofile", "usersettings")
STORED = (
    "SELECT text FROM chatapp_message WHERE role = 'assistant' AND conversation_id ="
    " (SELECT id FROM chatapp_conversation WHERE code = %s)"
)


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


# Backups, as docs/operations.md says


@pytest.mark.parametrize("world", ["sqlite"], indirect=True)
async def test_b05_a_backup_of_sqlite_is_taken_and_served(
    world: World, upstream: FakeUpstream, person: JsonClient, tmp_path: Path
) -> None:
    """Breaks when: the document has the file copied."""
    copy = f"sqlite:///{tmp_path / 'server.sqlite3'}"
    await is_backed_up(world, upstream, person, folder=tmp_path, elsewhere=copy)


@pytest.mark.soak
async def test_b05_a_backup_of_postgres_is_taken_and_served(
    upstream: FakeUpstream, wide_world: World, tmp_path: Path
) -> None:
    """Breaks when: the document leaves out the rows."""
    with own_database(wide_world.database.url) as url, own_database(url) as copy:
        world = World(tmp_path, database=url, redis="", upstream_port=wide_world.upstream_port)
        try:
            person = await world.person()
            await is_backed_up(world, upstream, person, folder=tmp_path, elsewhere=copy)
            await person.close()
        finally:
            world.close()


async def is_backed_up(
    world: World, upstream: FakeUpstream, person: JsonClient, *, folder: Path, elsewhere: str
) -> None:
    """While a reply is written: every row of a conversation at rest is in the copy as it is, and
    the reply ends there as interrupted, with what was stored of it.
    """
    await talk(person)
    await until_compressed(person)
    writing, text, identity = await world.person(), "slowly 3000", str(uuid.uuid4())
    assert await send(writing, text, identity)
    kept = await until(lambda: world.rows(STORED, writing.code)[0][0])
    written = [line for line in OPERATIONS.read_text("utf-8").splitlines() if "backup." in line]
    program = "pg_" if world.database.is_postgres else "sqlite3"
    out, back = (line for line in written if program in line)
    await carried_out(out, folder, world.database.url)
    # Into an empty database, and into one that holds something.
    for _ in range(2):
        await carried_out(back, folder, elsewhere)
    assert (await writing.get())["turn"] is not None
    restored = World(folder, database=elsewhere, redis="", upstream_port=1)
    try:
        assert contents(restored, person.code) == contents(world, person.code)
        reader = await restored.person()
        reader.code = person.code
        assert (await reader.get())["messages"] == (await person.get())["messages"]
        reader.code = writing.code
        page = await ended(reader)
        await writing.post("stop/")
        await ended(writing)
        await holds(restored, reader, upstream, acknowledged={identity: text})
        assert page["turns"][-1]["status"] == "interrupted"
        assert page["messages"][1]["text"].startswith(kept)
        for client in (reader, writing):
            await client.close()
    finally:
        restored.close()


async def carried_out(command: str, folder: Path, url: str) -> None:
    """Run a command of the document, which is written for the program's folder and its own file."""
    command = command.replace(".venv/bin/python", sys.executable)
    command = command.replace("var/palimpsest.sqlite3", url.removeprefix("sqlite:///"))
    environment = {**os.environ, "DATABASE_URL": url}
    environment["PATH"] += f":{postgres_folder()}"
    process = await asyncio.create_subprocess_shell(command, cwd=folder, env=environment)
    assert await process.wait() == 0, command


def contents(world: World, code: str) -> dict[str, Any]:
    """How many rows each table has, and all of those of one conversation."""
    found: dict[str, Any] = {}
    for table in TABLES:
        found[table] = world.database.rows(f"SELECT count(*) FROM chatapp_{table}")
    of = "(SELECT id FROM chatapp_conversation WHERE code = %s)"
    for table, key in (("conversation", "id"), *((name, "conversation_id") for name in PARTS)):
        rows = world.rows(f"SELECT * FROM chatapp_{table} WHERE {key} = {of} ORDER BY id", code)
        assert rows
        found[f"{table} of one"] = rows
    return found


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


# Connections that break


async def test_b04_every_connection_to_the_database_is_ended(
    wide_world: World, upstream: FakeUpstream, person: JsonClient
) -> None:
    """In the middle of a reply, three times: it completes, its viewers follow, the next send works.

    Breaks when: a broken connection is given to the next unit of work.
    """
    end = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    text, identity = "slowly 150", str(uuid.uuid4())
    follower = Follower(person)
    async with follower.following():
        await follower.until(lambda mirror: mirror.states)
        sent = await send(person, text, identity)
        assert sent is not None
        for times in range(3):
            await follower.until(shown(150 * times))
            await asyncio.to_thread(wide_world.database.rows, end)
        await follower.until(replied(2))
        turn = await person.get(f"turns/{sent['turn']}/")
        assert turn["status"] == "complete", (turn, wide_world.survivor.log[-6000:])
        again = str(uuid.uuid4())
        while await tried(person, "Hello", again) >= 500:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        await follower.until(replied(4))
        await holds(
            wide_world,
            person,
            upstream,
            acknowledged={identity: text, again: "Hello"},
            follower=follower,
        )


async def test_b04_connections_that_nobody_used_are_ended(
    wide_world: World, upstream: FakeUpstream, person: JsonClient
) -> None:
    """While a model is silent: the viewer's next look finds what has changed, on the socket that
    there was; what comes of the reply is stored; and the next message is taken at the first try.

    Breaks when: a connection from the pool is used without a look at whether it is alive.
    """
    end = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND state = 'idle'"
    )
    gates = [asyncio.Event(), asyncio.Event()]
    steps: list[Step] = [Text("Well. "), Wait(gates[0]), Text("Now. "), Wait(gates[1])]
    upstream.enqueue(Script(steps=(*steps, Finish("stop"))))
    identity, again = str(uuid.uuid4()), str(uuid.uuid4())
    follower = Follower(person)
    async with follower.following():
        await follower.until(lambda mirror: mirror.states)
        assert await send(person, "Hello", identity)
        await until(lambda: wide_world.rows(STORED, person.code)[0][0])
        assert await asyncio.to_thread(wide_world.database.rows, end)
        wide_world.database.run(
            "UPDATE chatapp_conversation SET title = 'Elsewhere', event_no = event_no + 1"
            f" WHERE code = '{person.code}'"
        )
        await follower.until(lambda mirror: mirror.title == "Elsewhere")
        assert await asyncio.to_thread(wide_world.database.rows, end)
        gates[0].set()
        await until(lambda: wide_world.rows(STORED, person.code)[0][0] == "Well. Now. ")
        gates[1].set()
        await follower.until(replied(2))
        assert await asyncio.to_thread(wide_world.database.rows, end)
        assert await tried(person, "Again", again) == 202
        await follower.until(replied(4))
        await holds(
            wide_world,
            person,
            upstream,
            acknowledged={identity: "Hello", again: "Again"},
            follower=follower,
        )
    assert follower.connections == 1


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
