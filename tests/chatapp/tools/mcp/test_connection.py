"""A connection's own task: whatever happens to it, whoever waits gets an answer and goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from chatapp.tools.mcp import connection as connections
from chatapp.tools.mcp.connection import Connection, ConnectionBroken
from compression.exceptions import ToolFailed


class Scripted:
    """A session that does what its test tells it, and how often it was entered and left."""

    def __init__(self) -> None:
        self.entered = 0
        self.left = 0
        self.owner: asyncio.Task[Any] | None = None
        self.breaks = asyncio.Event()
        self.held = asyncio.Event()
        self.cancelled = 0

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Scripted]:
        """As the SDK's: a task group whose end cancels whoever entered it."""
        self.entered += 1
        owner = self.owner = asyncio.current_task()
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._break)
                yield self
                group.cancel_scope.cancel()
        finally:
            assert asyncio.current_task() is owner
            self.left += 1

    async def _break(self) -> None:
        await self.breaks.wait()
        self.breaks.clear()
        raise ConnectionResetError("the server is gone")

    async def listing(self) -> dict[str, str]:
        return {"a": "{}"}

    async def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        if name == "hang":
            try:
                await self.held.wait()
            except asyncio.CancelledError:
                self.cancelled += 1
                raise
        if name == "fail":
            raise ToolFailed("It did not work.")
        return name


async def call(connection: Connection, name: str) -> str:
    return await connection.run(lambda session: session.call(name, {}))


async def test_it_works() -> None:
    scripted = Scripted()
    connection = Connection(scripted.open)
    assert not connection.is_open
    assert await call(connection, "one") == "one"
    assert await call(connection, "two") == "two"
    assert scripted.entered == 1
    assert scripted.owner is not asyncio.current_task()
    await connection.aclose()
    assert (scripted.entered, scripted.left) == (1, 1)


async def test_calls_run_side_by_side() -> None:
    scripted = Scripted()
    connection = Connection(scripted.open)
    hanging = asyncio.create_task(call(connection, "hang"))
    assert await call(connection, "one") == "one"
    scripted.held.set()
    assert await hanging == "hang"
    await connection.aclose()


async def test_a_broken_connection_ends_what_waits_and_nobody_else() -> None:
    """Breaks when: the session is entered in the caller's task, which it would then cancel."""
    scripted = Scripted()
    connection = Connection(scripted.open)
    hanging = [asyncio.create_task(call(connection, "hang")) for _ in range(3)]
    assert await call(connection, "one") == "one"
    scripted.breaks.set()
    for task in hanging:
        with pytest.raises(ConnectionBroken, match="the server is gone"):
            await task
    # It is made anew, and nobody notices.
    assert await call(connection, "two") == "two"
    assert scripted.entered == 2
    await connection.aclose()
    assert scripted.left == 2


async def test_a_cancelled_call_is_cancelled_there_and_the_connection_stays() -> None:
    """Breaks when: a caller's cancellation does not reach its call, or ends the connection."""
    scripted = Scripted()
    connection = Connection(scripted.open)
    hanging = asyncio.create_task(call(connection, "hang"))
    assert await call(connection, "one") == "one"
    hanging.cancel()
    with pytest.raises(asyncio.CancelledError):
        await hanging
    assert await call(connection, "two") == "two"
    assert (scripted.cancelled, scripted.entered) == (1, 1)
    await connection.aclose()


async def test_an_error_of_a_call_is_the_callers() -> None:
    connection = Connection(Scripted().open)
    with pytest.raises(ToolFailed, match="did not work"):
        await call(connection, "fail")
    assert await call(connection, "one") == "one"
    await connection.aclose()


async def test_who_cannot_connect_says_why() -> None:
    @asynccontextmanager
    async def nowhere() -> AsyncIterator[Scripted]:
        async with anyio.create_task_group():
            raise ConnectionRefusedError("no such server")
        yield Scripted()

    connection = Connection(nowhere)
    with pytest.raises(ConnectionBroken, match="no such server"):
        await call(connection, "one")
    assert not connection.is_open


async def test_an_idle_connection_ends_by_itself() -> None:
    """Breaks when: the owner waits for work without a limit."""
    scripted = Scripted()
    connection = Connection(scripted.open, idle=0.01)
    assert await call(connection, "one") == "one"
    owner = scripted.owner
    assert owner is not None
    await asyncio.wait_for(owner, 5)
    assert (connection.is_open, scripted.left) == (False, 1)
    assert await call(connection, "two") == "two"
    await connection.aclose()


async def test_closing_ends_what_waits() -> None:
    scripted = Scripted()
    connection = Connection(scripted.open)
    hanging = asyncio.create_task(call(connection, "hang"))
    assert await call(connection, "one") == "one"
    await connection.aclose()
    with pytest.raises(ConnectionBroken):
        await hanging
    assert scripted.left == 1


async def test_a_retired_connection_serves_what_is_under_way_and_nothing_else() -> None:
    """Breaks when: who gives a connection up ends the calls of others on it."""
    scripted = Scripted()
    connection = Connection(scripted.open)
    hanging = asyncio.create_task(call(connection, "hang"))
    assert await call(connection, "one") == "one"
    connection.retire()
    assert await call(connection, "two") == "two"
    assert (scripted.entered, scripted.left) == (2, 0)
    scripted.held.set()
    assert await hanging == "hang"
    await connection.aclose()
    assert scripted.left == 2


async def test_closing_waits_for_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when: a connection may take its leave for as long as the server likes."""
    monkeypatch.setattr(connections, "CLOSE_SECONDS", 0.05)
    scripted = Scripted()

    @asynccontextmanager
    async def clinging() -> AsyncIterator[Scripted]:
        try:
            yield scripted
        finally:
            await asyncio.Event().wait()

    connection = Connection(clinging)
    assert await call(connection, "one") == "one"
    async with asyncio.timeout(5):
        await connection.aclose()
    assert not connection.is_open
