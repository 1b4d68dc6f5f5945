"""Real processes that are killed and ended, and what is there afterwards."""

from __future__ import annotations

import asyncio
import signal
import sqlite3
import subprocess
import sys
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.faults.following import beside, cookies_of
from tests.json_client import Json, JsonClient
from tests.ports import free_port
from tests.servers import ROOT, RunningServer, status_of
from tests.upstreams import RunningUpstream, running_upstream

Serve = Callable[..., RunningServer]
# Seconds until something must have happened; a busy computer is slow.
PATIENCE = 60
SLOW = {"text": "word " * 400, "seconds_a_word": 0.02}


@pytest.fixture
def upstream() -> Iterator[RunningUpstream]:
    with running_upstream() as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


async def signed_in(server: RunningServer) -> JsonClient:
    client = JsonClient(server.base_url)
    await client.sign_in(server.signin_link)
    return client


@pytest.fixture
async def clients() -> AsyncIterator[list[JsonClient]]:
    made: list[JsonClient] = []
    yield made
    for client in made:
        await client.close()


def rows(folder: Path, query: str, *values: Any) -> list[tuple[Any, ...]]:
    """What a server's database holds, read from outside."""
    with closing(sqlite3.connect(folder / "server.sqlite3", timeout=20)) as connection:
        return connection.execute(query, values).fetchall()


async def until(look: Callable[[], Any]) -> Any:
    """The first true answer."""
    async with asyncio.timeout(PATIENCE):
        while not (answer := await asyncio.to_thread(look)):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return answer


async def first(client: JsonClient, kind: str) -> Json:
    async with asyncio.timeout(PATIENCE), aclosing(client.events()) as events:  # type: ignore[type-var]
        async for event in events:
            if event["type"] == kind:
                return dict(event)
    raise AssertionError(f"the socket was closed before {kind}")


async def shown_text(client: JsonClient) -> tuple[int, str]:
    """Follow until some of the reply is on the screen: where it begins, and what it is."""
    delta = await first(client, "delta")
    return delta["offset"], delta["text"]


async def test_i1_an_acknowledged_message_survives_sigkill(
    serve: Serve, upstream: RunningUpstream, folder: Path, clients: list[JsonClient]
) -> None:
    """Killed as soon as the answer is there, three times over.

    Breaks when: a view answers before the transaction is committed.
    """
    sent = []
    for number in range(3):
        upstream.script(SLOW)
        server = serve(OPENAI_BASE_URL=upstream.base_url)
        client = await signed_in(server)
        clients.append(client)
        await client.create()
        identity = str(uuid.uuid4())
        status, answer = await client.post(
            "messages/", text=f"message {number}", client_msg_id=identity
        )
        server.kill()
        assert status == 202
        sent.append((f"message {number}", uuid.UUID(identity).hex, answer["message_seq"]))
    found = rows(folder, "SELECT text, client_msg_id, seq FROM chatapp_message WHERE role = 'user'")
    assert sorted(found) == sorted(sent)


async def test_i5_i7_after_sigkill_the_turn_is_interrupted_and_its_text_kept(
    serve: Serve, upstream: RunningUpstream, folder: Path, clients: list[JsonClient]
) -> None:
    """Breaks when: the text is stored at the end only, or nothing sweeps at the start."""
    upstream.script(SLOW)
    server = serve(OPENAI_BASE_URL=upstream.base_url)
    client = await signed_in(server)
    clients.append(client)
    await client.create()
    accepted = await client.send("Hello")
    query = "SELECT text FROM chatapp_message WHERE role = 'assistant'"
    kept = await until(lambda: rows(folder, query)[0][0])
    server.kill()
    again = serve(OPENAI_BASE_URL=upstream.base_url)
    ended = "SELECT status FROM chatapp_turn WHERE finished_at IS NOT NULL"
    assert await until(lambda: rows(folder, ended)) == [("interrupted",)]
    reader = await signed_in(again)
    clients.append(reader)
    reader.code = client.code
    page = await reader.get()
    reply = page["messages"][1]
    assert reply["status"] == "partial"
    assert reply["text"].startswith(kept)
    assert page["turn"] is None
    assert page["turns"][0]["error"]["code"] == "interrupted"
    turn = await reader.get(f"turns/{accepted['turn']}/")
    assert turn["status"] == "interrupted"
    # The conversation goes on, and the model sees what was kept.
    await reader.send("Go on")
    await until(lambda: len(upstream.chats()) > 1)
    assert upstream.chats()[-1]["messages"][2]["content"] == reply["text"]


async def test_d01_sent_again_after_an_hour_and_a_restart(
    serve: Serve, upstream: RunningUpstream, folder: Path, clients: list[JsonClient]
) -> None:
    """The same ids, one message, and the model is not asked again.

    Breaks when: a repeated ``client_msg_id`` is looked for in the process's memory, or among the
    messages of the last minutes only.
    """
    server = serve(OPENAI_BASE_URL=upstream.base_url)
    clients.append(await signed_in(server))
    await clients[0].create()
    message = {"text": "Hello", "client_msg_id": str(uuid.uuid4())}
    first = await clients[0].post("messages/", **message)
    await until(lambda: rows(folder, "SELECT 1 FROM chatapp_turn WHERE finished_at IS NOT NULL"))
    await asyncio.to_thread(server.terminate)
    an_hour_passes(folder)
    again = serve(OPENAI_BASE_URL=upstream.base_url)
    clients.append(beside(cookies_of(clients[0]), again.base_url, origin=again.origin))
    clients[1].code = clients[0].code
    assert await clients[1].post("messages/", **message) == first
    assert [one["text"] for one in (await clients[1].get())["messages"]] == [
        "Hello",
        "You said: Hello",
    ]
    assert len(upstream.chats()) == 1


def an_hour_passes(folder: Path) -> None:
    """Everything that is stored of messages, turns and conversations was stored an hour earlier."""
    with closing(sqlite3.connect(folder / "server.sqlite3", isolation_level=None)) as file:
        for table in ("chatapp_message", "chatapp_turn", "chatapp_conversation"):
            columns = [row[1] for row in file.execute(f"PRAGMA table_info({table})")]
            times = [name for name in columns if name.endswith("_at")]
            earlier = ", ".join(f"{name} = datetime({name}, '-1 hour')" for name in times)
            file.execute(f"UPDATE {table} SET {earlier}")


@contextmanager
def under_uvicorn(server: RunningServer) -> Iterator[RunningServer]:
    """Another process on the same database, under a server that tells its end by lifespan."""
    port = free_port()
    command = ["uvicorn", "chatapp.asgi:application", "--port", str(port), "--lifespan", "on"]
    process = subprocess.Popen(
        [sys.executable, "-m", *command],
        cwd=ROOT,
        env=server.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    address = f"http://127.0.0.1:{port}"
    try:
        yield RunningServer(
            process=process, base_url=address, signin_link="", environment=server.environment
        )
    finally:
        process.kill()
        process.wait()


async def is_ended_in_order(
    server: RunningServer, client: JsonClient, folder: Path, how: signal.Signals
) -> None:
    """Told to end in the middle of a reply, it stores what came, within ten seconds."""
    await client.create()
    await client.send("Hello")
    offset, shown = await shown_text(client)
    begun = time.monotonic()
    server.process.send_signal(how)
    await asyncio.to_thread(server.process.wait, 20)
    assert time.monotonic() - begun < 10
    ((turn_status, text, message_status),) = rows(
        folder,
        "SELECT t.status, m.text, m.status FROM chatapp_turn t"
        " JOIN chatapp_message m ON m.turn_id = t.id AND m.role = 'assistant'",
    )
    assert (turn_status, message_status) == ("interrupted", "partial")
    assert text[offset:].startswith(shown)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
async def test_d09_an_orderly_end_stores_what_came_in_time(
    serve: Serve,
    upstream: RunningUpstream,
    folder: Path,
    clients: list[JsonClient],
    how: signal.Signals,
) -> None:
    """Breaks when: the shutdown trigger is not installed: Daphne ends without any ``finally``."""
    upstream.script(SLOW)
    server = serve(OPENAI_BASE_URL=upstream.base_url)
    client = await signed_in(server)
    clients.append(client)
    await is_ended_in_order(server, client, folder, how)
    assert server.process.returncode == 0


async def test_d09_an_orderly_end_under_a_server_with_lifespan(
    serve: Serve, upstream: RunningUpstream, folder: Path, clients: list[JsonClient]
) -> None:
    """Breaks when: the ASGI application does not flush at ``lifespan.shutdown``."""
    upstream.script(SLOW)
    first = serve(OPENAI_BASE_URL=upstream.base_url)
    clients.append(await signed_in(first))
    with under_uvicorn(first) as server:
        client = beside(cookies_of(clients[0]), server.base_url, origin=first.origin)
        clients.append(client)
        await until(lambda: answers(f"{server.base_url}/healthz"))
        await is_ended_in_order(server, client, folder, signal.SIGTERM)


def answers(address: str) -> bool:
    """Whether somebody listens there and is well."""
    try:
        return status_of(address) == 200
    except OSError:
        return False


async def test_i7_closing_every_socket_changes_nothing(
    serve: Serve, upstream: RunningUpstream, clients: list[JsonClient]
) -> None:
    """Breaks when: the turn's task belongs to the consumer or to the request."""
    upstream.script({"text": "word " * 60, "seconds_a_word": 0.02})
    server = serve(OPENAI_BASE_URL=upstream.base_url)
    client = await signed_in(server)
    clients.append(client)
    await client.create()
    await client.send("Hello")
    await shown_text(client)
    # The socket is closed now, and so is the person's connection.
    code, link_cookies = client.code, client._http.cookie_jar
    await client.close()
    clients.remove(client)
    reader = JsonClient(server.base_url)
    clients.append(reader)
    reader._http.cookie_jar.update_cookies({c.key: c.value for c in link_cookies})
    reader.code = code
    async with asyncio.timeout(PATIENCE):
        while (page := await reader.get())["turn"] is not None:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    assert page["messages"][1]["status"] == "complete"
    assert page["messages"][1]["text"] == "word " * 60


async def test_l14_a_stop_reaches_the_turn_in_another_process(
    serve: Serve, upstream: RunningUpstream, folder: Path, clients: list[JsonClient]
) -> None:
    """Two processes over one database; the one that is asked does not run the turn.

    Breaks when: a runner does not look for stops that others have stored.
    """
    upstream.script(SLOW)
    here = serve(OPENAI_BASE_URL=upstream.base_url)
    there = serve(OPENAI_BASE_URL=upstream.base_url, prepare=False)
    client = await signed_in(here)
    clients.append(client)
    await client.create()
    await client.send("Hello")
    await shown_text(client)
    other = JsonClient(there.base_url)
    clients.append(other)
    cookies = {cookie.key: cookie.value for cookie in client._http.cookie_jar}
    other._http.cookie_jar.update_cookies(cookies)
    other._http.headers["X-CSRFToken"] = cookies["csrftoken"]
    other.code = client.code
    status, _ = await other.post("stop/")
    assert status < 300
    query = "SELECT status FROM chatapp_turn WHERE finished_at IS NOT NULL"
    assert await until(lambda: rows(folder, query)) == [("stopped",)]


@pytest.mark.soak
async def test_i5_within_the_lease_another_process_ends_what_a_dead_one_left(
    serve: Serve, upstream: RunningUpstream, folder: Path, clients: list[JsonClient]
) -> None:
    """No lease is set back here: 30 s of lease, at most 5 s to the next sweep.

    Breaks when: a process sweeps at its start only.
    """
    upstream.script(SLOW)
    dead = serve(OPENAI_BASE_URL=upstream.base_url)
    serve(OPENAI_BASE_URL=upstream.base_url, prepare=False)
    client = await signed_in(dead)
    clients.append(client)
    await client.create()
    await client.send("Hello")
    await shown_text(client)
    dead.kill()
    killed = time.monotonic()
    query = "SELECT status FROM chatapp_turn WHERE finished_at IS NOT NULL"
    assert await until(lambda: rows(folder, query)) == [("interrupted",)]
    assert time.monotonic() - killed < 40
