"""Processes over one database, the people at them, and what has to hold whatever broke."""

from __future__ import annotations

import asyncio
import os
import re
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import aiohttp

from tests.fake_scripts import Json, Script, default_answer, is_summary_request, saying, text_of
from tests.fake_upstream import FakeUpstream
from tests.faults.database import Database
from tests.faults.following import Follower, beside, cookies_of
from tests.json_client import JsonClient
from tests.servers import RunningServer, start_server

# Seconds until something must have happened; a busy computer is slow.
PATIENCE = 60
TERMINAL = {"complete", "stopped", "interrupted", "truncated", "filtered", "blocked", "failed"}
# A conversation of three such turns can be compressed in a window of this size.
WINDOW = 4000
LONG = "You must always say please. " + "word " * 300


def answer(request: Json) -> Script:
    """``slowly 300`` in a message: so many words, 50 a second; else a short echo."""
    said = [text_of(one) for one in request.get("messages", ()) if one.get("role") == "user"]
    asked = re.match(r"slowly (\d+)", said[-1]) if said else None
    if asked is None or is_summary_request(request):
        return default_answer(request)
    text = "".join(f"word{number} " for number in range(int(asked[1])))
    return saying(text, seconds_a_word=0.02)


class World:
    """One database and its processes; started at the first need, ended by :meth:`close`."""

    def __init__(self, folder: Path, *, database: str, redis: str, upstream_port: int) -> None:
        self.folder = folder
        self.lease = 3.0
        """Seconds of a turn's lease, in processes that start from now on."""
        self.redis = redis
        self.database = Database(database)
        self.upstream_port = upstream_port
        self._survivor: RunningServer | None = None
        self._started: list[RunningServer] = []
        self._cookies: list[tuple[str, str]] = []

    def start(
        self,
        *,
        prepare: bool = False,
        port: int = 0,
        env: Mapping[str, str] | None = None,
        **more: str,
    ) -> RunningServer:
        """A process of the product, hastened; ``env`` and ``more`` say how it is broken."""
        server = start_server(
            self.folder,
            prepare=prepare,
            fresh=False,
            port=port,
            **{
                "DJANGO_SETTINGS_MODULE": "tests.faults.settings",
                "DATABASE_URL": self.database.url,
                "REDIS_URL": self.redis,
                "OPENAI_BASE_URL": f"http://127.0.0.1:{self.upstream_port}/v1",
                "CHAT_MODEL": "fake-model",
                "TESTS_LEASE": str(self.lease),
                "CONTEXT_WINDOW": str(WINDOW),
                # All who write in these tests are one person.
                "REPLIES_PER_USER": "50",
                **(env or {}),
                **more,
            },
        )
        self._started.append(server)
        return server

    @property
    def survivor(self) -> RunningServer:
        """The process that nothing happens to."""
        if self._survivor is None:
            self._survivor = self.start(prepare=True)
        return self._survivor

    def close(self) -> None:
        """End every process."""
        for server in self._started:
            server.kill()

    async def person(self) -> JsonClient:
        """The owner at the survivor, with a conversation of their own."""
        server = await asyncio.to_thread(lambda: self.survivor)
        if not self._cookies:
            client = JsonClient(server.base_url)
            await client.sign_in(server.signin_link)
            self._cookies = cookies_of(client)
            await client.close()
        client = self.at(server.base_url, server)
        await client.create()
        return client

    def at(self, address: str, server: RunningServer, code: str = "") -> JsonClient:
        """The owner at an address that leads to ``server``."""
        client = beside(self._cookies, address, origin=server.origin)
        client.code = code
        return client

    def rows(self, query: str, code: str, *values: Any) -> list[tuple[Any, ...]]:
        """Rows of one conversation: the query's first ``%s`` is its code as it is stored."""
        stored = str(uuid.UUID(code)) if self.database.is_postgres else uuid.UUID(code).hex
        return self.database.rows(query, stored, *values)


async def send(client: JsonClient, text: str, identity: str) -> Json | None:
    """Send once; None when no answer came back."""
    try:
        async with asyncio.timeout(PATIENCE):
            status, sent = await client.post("messages/", text=text, client_msg_id=identity)
    except (aiohttp.ClientError, OSError):
        return None
    assert status < 300, sent
    return sent


async def ended(client: JsonClient) -> Json:
    """The page once no reply is written any more."""
    async with asyncio.timeout(PATIENCE):
        while (page := await client.get())["turn"] is not None:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    return page


async def until(look: Callable[[], Any]) -> Any:
    """The first true answer of something that is asked in a thread."""
    async with asyncio.timeout(PATIENCE):
        while not (found := await asyncio.to_thread(look)):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    return found


async def held(pipe: Path) -> BinaryIO:
    """The writing end of a named pipe, once a unit is held by it (``TESTS_HELD``).

    To close it is to let the unit go on.
    """

    def opened() -> int | None:
        # Not before somebody reads it.
        with suppress(OSError):
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        return None

    return os.fdopen(await until(opened), "wb")


async def talk(client: JsonClient, turns: int = 3) -> None:
    """So many long turns, after which the conversation can be compressed."""
    for number in range(turns):
        assert await send(client, f"{number}: {LONG}", str(uuid.uuid4()))
        await ended(client)


async def until_compressed(person: JsonClient) -> None:
    """Ask again until the dead process's lease has expired: before that, its run is waited for."""
    async with asyncio.timeout(30):
        while (await person.get())["compression"]["version"] == 0:
            status, said = await person.post("compact/")
            assert status < 500, said
            await asyncio.sleep(0.2)


async def holds(
    world: World,
    client: JsonClient,
    upstream: FakeUpstream,
    *,
    acknowledged: dict[str, str],
    follower: Follower | None = None,
) -> Json:
    """I1 to I7, I9, I10 and I27 of one conversation, from outside; the page as it is now.

    ``acknowledged``: text by ``client_msg_id``.
    """
    page = await ended(client)
    if follower is not None:
        await follower.until_quiet()
        for message in page["messages"]:
            shown = follower.longest.get(message["seq"], "")
            assert message["text"].startswith(shown), ("I7", shown, message["text"])
    _check_rows(world, client.code, acknowledged)
    _check_summary(world, client.code)
    assert [one["seq"] for one in page["messages"]] == sorted(
        one["seq"] for one in page["messages"]
    ), "I3"
    async with asyncio.timeout(5):
        for chat in upstream.chats:
            ends = [chat.answered.wait(), chat.disconnected.wait()]
            tasks = [asyncio.ensure_future(end) for end in ends]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                task.cancel()
    return page


_OF = " WHERE conversation_id = (SELECT id FROM chatapp_conversation WHERE code = %s)"


def _check_rows(world: World, code: str, acknowledged: dict[str, str]) -> None:
    rows = world.rows(f"SELECT seq, client_msg_id, text FROM chatapp_message{_OF}", code)
    assert sorted(row[0] for row in rows) == list(range(1, len(rows) + 1)), "I3"
    stored = [(uuid.UUID(str(row[1])), row[2]) for row in rows if row[1] is not None]
    wanted = [(uuid.UUID(identity), text) for identity, text in acknowledged.items()]
    assert sorted(stored) == sorted(wanted), "I1, I2"
    turns = world.rows(f"SELECT id, status, finished_at FROM chatapp_turn{_OF}", code)
    assert all(status in TERMINAL and end is not None for _, status, end in turns), "I5"
    replies = world.rows(
        "SELECT t.status, m.status, m.text FROM chatapp_turn t JOIN chatapp_message m"
        " ON m.turn_id = t.id AND m.role = 'assistant'"
        " WHERE t.conversation_id = (SELECT id FROM chatapp_conversation WHERE code = %s)",
        code,
    )
    for turn_status, status, text in replies:
        assert status in {"complete", "partial"}, "I5"
        assert turn_status != "complete" or (status == "complete" and text.strip()), "I6"


def _check_summary(world: World, code: str) -> None:
    ((through, version, text, token),) = world.rows(
        "SELECT compressed_through, compression_version, compressed_context, compression_token"
        " FROM chatapp_conversation WHERE code = %s",
        code,
    )
    active = world.rows(
        f"SELECT version, through_seq, text FROM chatapp_summary{_OF} AND status = 'active'", code
    )
    assert active == ([(version, through, text)] if version else []), "I9"
    if token:
        utc = "strftime('%Y-%m-%d %H:%M:%f', 'now')"
        clock = "now()" if world.database.is_postgres else utc
        alive = world.rows(
            f"SELECT 1 FROM chatapp_conversation WHERE code = %s"
            f" AND compression_lease_expires_at > {clock}",
            code,
        )
        assert not alive, "I10"
