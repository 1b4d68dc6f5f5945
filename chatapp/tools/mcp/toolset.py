"""The tools of the servers that a conversation has switched on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

from chatapp.conversations.tools import definitions as stored
from chatapp.conversations.tools.servers import PinnedTool, ServerAccess, aswitched_on
from chatapp.tools.mcp import definitions
from chatapp.tools.mcp.connection import Connection, ConnectionBroken, Session
from compression.exceptions import ToolFailed
from compression.tools.tool import Tool

logger = logging.getLogger(__name__)

#: Seconds for one call, the look at the tool's definition before it included.
CALL_SECONDS = 30.0

OpenSession = Callable[[ServerAccess], AbstractAsyncContextManager[Session]]


Call = Callable[[PinnedTool, Mapping[str, Any]], Awaitable[str]]


def _tools(server: ServerAccess, call: Call) -> tuple[Tool, ...]:
    """The approved tools of a server, as a model is told of them; ``call`` calls one."""
    return tuple(_tool(server.name, one, call) for one in server.tools)


def _tool(server: str, pinned: PinnedTool, call: Call) -> Tool:
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
    whether the server still describes the tool like that.
    """

    def __init__(self, open_session: OpenSession) -> None:
        self._open_session = open_session
        # Tools hold their connection, which ends by itself some time after the last call.
        self._held: WeakValueDictionary[tuple[int, int], _Held] = WeakValueDictionary()

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
                await held.listing()
        except ToolFailed as error:
            await stored.arecord_problem(server.server_id, error.message)
            return error.message
        except TimeoutError:
            problem = f"The server gave no list within {CALL_SECONDS:.0f} seconds."
            await stored.arecord_problem(server.server_id, problem)
            return problem
        finally:
            await held.connection.aclose()
        return ""

    def tools_of(self, conversation_id: int, server: ServerAccess) -> tuple[Tool, ...]:
        """The approved tools of one server, for a conversation."""
        return _tools(server, self._to(conversation_id, server).call)

    def _to(self, conversation_id: int, server: ServerAccess) -> _Held:
        """The connection to a server that a turn's rounds share; a new one if its setup changed."""
        key = (conversation_id, server.server_id)
        held = self._held.get(key)
        if held is None or held.server != server:
            held = self._held[key] = _Held(server, self._open_session)
        return held

    async def release(self, conversation_id: int) -> None:
        """Close the connections of a conversation whose turn has ended."""
        mine = [held for key, held in list(self._held.items()) if key[0] == conversation_id]
        await asyncio.gather(*(held.connection.aclose() for held in mine))

    async def aclose(self) -> None:
        """Close every connection."""
        held = list(self._held.values())
        self._held.clear()
        await asyncio.gather(*(one.connection.aclose() for one in held))


class _Held:
    """The connection to one server for one conversation."""

    def __init__(self, server: ServerAccess, open_session: OpenSession) -> None:
        self.server = server
        self.connection = Connection(partial(open_session, server))
        self._listed: dict[str, str] | None = None

    async def call(self, pinned: PinnedTool, arguments: Mapping[str, Any]) -> str:
        """Call a tool, if it is still the one that was approved. Raises ToolFailed."""
        name = self.server.name
        try:
            async with asyncio.timeout(CALL_SECONDS):
                listed = await self.listing()
                if listed.get(pinned.name) != pinned.raw:
                    raise ToolFailed(
                        f"The server {name} describes this tool differently now than when it was "
                        "approved. It can be used again once an administrator has approved it."
                    )
                return await self.connection.run(
                    lambda session: session.call(pinned.name, arguments)
                )
        except TimeoutError:
            raise ToolFailed(
                f"The server {name} gave no result within {CALL_SECONDS:.0f} seconds. It is not "
                "known whether the call took effect."
            ) from None
        except ConnectionBroken as error:
            raise ToolFailed(
                f"The connection to the server {name} broke: {error} It is not known whether the "
                "call took effect."
            ) from None

    async def listing(self) -> dict[str, str]:
        """What the server lists now, which is stored if it is news."""
        listed = await self._asked()
        if listed != self._listed:
            await stored.arecord(self.server.server_id, listed)
            self._listed = listed
        return listed

    async def _asked(self) -> dict[str, str]:
        """What the server lists. Asking changes nothing, so a broken connection is made anew."""
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
                # It may have restarted since the last call.
                await self.connection.aclose()
