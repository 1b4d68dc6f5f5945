"""The tools of the servers that a conversation has switched on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import partial
from typing import Any

from chatapp.conversations.tools import definitions as stored
from chatapp.conversations.tools.servers import (
    PinnedTool,
    ServerAccess,
    astill_offered,
    aswitched_on,
)
from chatapp.tools.mcp import definitions
from chatapp.tools.mcp.connection import UNKNOWN, Connection, ConnectionBroken, Session
from compression.exceptions import ToolFailed
from compression.tools.running import SECONDS
from compression.tools.tool import Tool

#: Seconds for one call, the look at the tool's definition before it included. Less than any tool
#: may take: otherwise the turn ends the call first, and the model is told less.
CALL_SECONDS = SECONDS - 2

OpenSession = Callable[[ServerAccess], AbstractAsyncContextManager[Session]]


Call = Callable[[PinnedTool, Mapping[str, Any]], Awaitable[str]]


def _tool(server: str, pinned: PinnedTool, call: Call) -> Tool:
    """An approved tool of a server, as a model is told of it; ``call`` calls it."""
    raw = definitions.parsed(pinned.raw)
    return Tool(
        name=definitions.offered_name(server, pinned.name),
        description=definitions.described(raw),
        parameters=definitions.parameters_of(raw),
        run=partial(call, pinned),
        read_only=definitions.is_read_only(raw),
    )


class McpTools:
    """The connections of this process's turns to tool servers.

    Nothing is connected to offer a tool: its approved definition is stored. A call first looks
    whether it may still be made, and whether the server still describes the tool like that.
    """

    def __init__(self, open_session: OpenSession) -> None:
        self._open_session = open_session
        self._held: dict[int, dict[ServerAccess, _Held]] = {}
        self._ending: set[Connection] = set()

    async def tools(self, conversation_id: int) -> tuple[Tool, ...]:
        """What the next request of a conversation offers of its servers."""
        found: list[Tool] = []
        for server in await aswitched_on(conversation_id):
            found += self.tools_of(conversation_id, server)
        return tuple(found)

    async def read(self, server: ServerAccess) -> str:
        """Store what a server lists now. Returns why that failed, in a sentence; empty if not."""
        held = _Held(server, self._open_session)
        try:
            async with asyncio.timeout(CALL_SECONDS):
                reported = await held.reported()
        except ToolFailed as error:
            await stored.arecord_problem(server.server_id, error.message)
            return error.message
        except TimeoutError:
            problem = f"The server gave no list within {CALL_SECONDS:.0f} seconds."
            await stored.arecord_problem(server.server_id, problem)
            return problem
        finally:
            await held.connection.aclose()
        await stored.arecord(server.server_id, reported)
        return ""

    def tools_of(self, conversation_id: int, server: ServerAccess) -> tuple[Tool, ...]:
        """The approved tools of one server, for a conversation."""
        call = partial(self._call, conversation_id, server)
        return tuple(_tool(server.name, one, call) for one in server.tools)

    async def _call(
        self,
        conversation_id: int,
        server: ServerAccess,
        pinned: PinnedTool,
        arguments: Mapping[str, Any],
    ) -> str:
        """Call a tool, if that may still be done; a person may have thought about it for minutes.

        Raises ToolFailed.
        """
        if not await astill_offered(conversation_id, server, pinned):
            raise ToolFailed(
                "This tool is no longer offered here, so it did not run: it was withdrawn, or its "
                "server was changed or switched off."
            )
        return await self._to(conversation_id, server).call(pinned, arguments)

    def _to(self, conversation_id: int, server: ServerAccess) -> _Held:
        """The connection to a server that a turn's rounds share; a new one if its setup changed."""
        setup = replace(server, tools=())
        held = self._held.setdefault(conversation_id, {})
        if setup not in held:
            held[setup] = _Held(setup, self._open_session)
        return held[setup]

    async def release(self, conversation_id: int) -> None:
        """Close the connections of a conversation whose turn has ended."""
        held = self._held.pop(conversation_id, {})
        await self._end([one.connection for one in held.values()])

    async def aclose(self) -> None:
        """Close every connection."""
        await asyncio.gather(*(self.release(one) for one in list(self._held)))
        await self._end(list(self._ending))

    async def _end(self, connections: Sequence[Connection]) -> None:
        # Whoever waits for this may be cancelled; then the connections are closed with all others.
        self._ending.update(connections)
        await asyncio.gather(*(one.aclose() for one in connections))
        self._ending.difference_update(connections)


class _Held:
    """The connection to one server for one conversation."""

    def __init__(self, server: ServerAccess, open_session: OpenSession) -> None:
        self.server = server
        self.connection = Connection(partial(open_session, server))
        self._known: dict[str, str] | None = None

    async def call(self, pinned: PinnedTool, arguments: Mapping[str, Any]) -> str:
        """Call a tool, if it is still the one that was approved. Raises ToolFailed."""
        name, sent = self.server.name, False
        try:
            async with asyncio.timeout(CALL_SECONDS):
                await self._compare(pinned)
                sent = True
                return await self.connection.run(
                    lambda session: session.call(pinned.name, arguments)
                )
        except TimeoutError:
            # What the server has not answered yet would hold up the calls after it.
            self.connection.retire()
            if not sent:
                raise ToolFailed(
                    f"The server {name} did not list its tools within {CALL_SECONDS:.0f} seconds, "
                    "so the call did not run."
                ) from None
            raise ToolFailed(
                f"The server {name} gave no result within {CALL_SECONDS:.0f} seconds. {UNKNOWN}"
            ) from None
        except ConnectionBroken as error:
            raise ToolFailed(
                f"The connection to the server {name} broke: {error} {UNKNOWN}"
            ) from None

    async def _compare(self, pinned: PinnedTool) -> None:
        """Raises ToolFailed if the server does not describe a tool as it was approved."""
        reported = await self.reported()
        if reported != self._known:
            await stored.aquarantine(self.server.server_id, reported)
            self._known = reported
        if reported.get(pinned.name) != pinned.raw:
            raise ToolFailed(
                f"The server {self.server.name} describes this tool differently now than when it "
                "was approved. It can be used again once an administrator has approved it."
            )

    async def reported(self) -> dict[str, str]:
        """What the server lists now. Raises ToolFailed.

        Asking changes nothing, so with a broken connection it is done once more.
        """
        tries = 2 if self.connection.is_open else 1
        while True:
            tries -= 1
            try:
                return await self.connection.run(lambda session: session.listing())
            except (ConnectionBroken, ToolFailed) as error:
                if not tries:
                    raise ToolFailed(
                        f"The server {self.server.name} cannot be used now: {error}"
                    ) from None
                # It may have restarted since the last call. Other calls may still be under way.
                self.connection.retire()
