"""The official SDK's client as a session: the only module that knows the SDK's client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from mcp import Client, ClientSession, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.types import (
    CONNECTION_CLOSED,
    HEADER_MISMATCH,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    CallToolRequest,
    CallToolRequestParams,
    Implementation,
    ListToolsRequest,
    PaginatedRequestParams,
)
from pydantic import RootModel, ValidationError

from chatapp.conversations.tools.servers import ServerAccess
from chatapp.text import lengths
from chatapp.text.safety import clean, without_hidden
from chatapp.tools.addresses import Reach
from chatapp.tools.mcp.connection import UNKNOWN, ConnectionBroken
from chatapp.tools.mcp.definitions import MOST_CHARACTERS, MOST_TOOLS
from chatapp.tools.mcp.results import as_text
from chatapp.tools.mcp.stdio import program
from chatapp.tools.outbound import outbound_client
from chatapp.tools.sealing import Unreadable, unseal
from chatapp.version import VERSION
from compression.exceptions import ToolFailed
from compression.tools.approval import exact

#: Bytes of one answer, and of one event of a stream.
MOST_BYTES = 4 * 1024 * 1024
#: Seconds without any byte after which an answer is given up.
QUIET_SECONDS = 60.0
#: Characters of a server's words about a failure.
MOST_WORDS = 2000
# Pages of a list of tools, so that a list without an end has one.
_MOST_PAGES = 20
# Errors that a server gives before it runs a tool.
_DID_NOT_RUN = frozenset({HEADER_MISMATCH, INVALID_PARAMS, METHOD_NOT_FOUND})


class _Raw(RootModel[dict[str, Any]]):
    """A result as it came: the SDK checks it and leaves it alone."""


@asynccontextmanager
async def open_session(server: ServerAccess) -> AsyncIterator[SdkSession]:
    """A connection to a server. To be entered by a task of its own: see ``connection``.

    Raises ToolFailed for a key that cannot be read, and whatever the SDK raises.
    """
    try:
        key = unseal(server.sealed_key)
    except Unreadable:
        raise ToolFailed("The stored key cannot be read: it has to be entered again.") from None
    async with AsyncExitStack() as stack:
        target: Any
        if server.command:
            environment = {server.credential_name: key} if key else {}
            target = program(server.command, environment, most_bytes=MOST_BYTES)
        else:
            headers = {server.credential_name: key} if key else {}
            reach = Reach(
                hosts=frozenset({(urlsplit(server.address).hostname or "").lower()}),
                private=server.private_addresses,
            )
            http = await stack.enter_async_context(
                outbound_client(
                    reach,
                    most_bytes=MOST_BYTES,
                    headers=headers,
                    seconds=QUIET_SECONDS,
                    redirects=False,
                )
            )
            target = streamable_http_client(
                server.address, http_client=http, max_sse_event_size=MOST_BYTES
            )
        about = Implementation(name="palimpsest", version=VERSION)
        client = await stack.enter_async_context(Client(target, cache=None, client_info=about))
        yield SdkSession(client.session)


class SdkSession:
    """An open connection of the SDK's client.

    Requests go past the SDK's own ``list_tools`` and ``call_tool``. These would change what a
    server sent, and check results by a schema that nobody approved, with patterns that may take
    for ever; a result that does not fit would be lost although the call took effect.
    """

    def __init__(self, session: ClientSession) -> None:
        self._session = session

    async def listing(self) -> dict[str, str]:
        """The server's tools: name and raw object. Raises ToolFailed and ConnectionBroken."""
        found: dict[str, str] = {}
        cursor = None
        try:
            for _ in range(_MOST_PAGES):
                params = PaginatedRequestParams(cursor=cursor) if cursor else None
                page = await self._session.send_request(ListToolsRequest(params=params), _Raw)
                # In a thread, because a page may hold megabytes.
                found = {**await asyncio.to_thread(_objects, page.root), **found}
                cursor = page.root.get("nextCursor")
                if not cursor or len(found) > MOST_TOOLS:
                    break
        except MCPError as error:
            raise _failed(error) from None
        except (ValidationError, ValueError, KeyError, TypeError):
            raise ToolFailed("Its list of tools is not valid.") from None
        if cursor or len(found) > MOST_TOOLS:
            raise ToolFailed(f"It lists more than {MOST_TOOLS} tools.")
        return found

    async def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Call a tool. Returns its result as text. Raises ToolFailed and ConnectionBroken."""
        params = CallToolRequestParams(name=name, arguments=dict(arguments))
        try:
            result = await self._answer(CallToolRequest(params=params))
        except MCPError as error:
            raise _failed(error, called=True) from None
        except ValidationError:
            raise ToolFailed(f"The server's answer is not valid. {UNKNOWN}") from None
        # In a thread, because a result may have a hundred thousand blocks.
        return await asyncio.to_thread(_told, result.root)

    async def _answer(self, call: CallToolRequest) -> _Raw:
        try:
            return await self._session.send_request(call, _Raw)
        except MCPError as error:
            if error.code != HEADER_MISMATCH:
                raise
        # It did not run: the server wants some arguments in headers too. The SDK learns from a
        # listing of its own which ones these are.
        await self._session.list_tools()
        return await self._session.send_request(call, _Raw)


def _objects(page: Mapping[str, Any]) -> dict[str, str]:
    """The tools of a page: name and raw object. Raises ToolFailed for what is not stored."""
    found: dict[str, str] = {}
    for raw in page.get("tools", ()):
        name, text = clean(str(raw["name"])), exact(raw)
        if len(name) > lengths.NAME_LENGTH:
            raise ToolFailed(f"It lists a name of more than {lengths.NAME_LENGTH} characters.")
        if len(text) > MOST_CHARACTERS:
            raise ToolFailed(
                f"It describes the tool {without_hidden(name)} with more than "
                f"{MOST_CHARACTERS:,} characters."
            )
        found.setdefault(name, text)
    return found


def _told(result: Mapping[str, Any]) -> str:
    """A raw result as text. Raises ToolFailed for that of a failure, and for what is none yet."""
    if result.get("resultType", "complete") != "complete":
        raise ToolFailed("The tool asks for more than its arguments, which nobody can give here.")
    text = as_text(result)
    if not result.get("isError"):
        return text
    left = len(text) - MOST_WORDS
    if left > 0:
        text = f"{text[:MOST_WORDS]}\n[{left:,} more characters were left out]"
    raise ToolFailed(text or "The tool failed and gave no reason.")


def _failed(error: MCPError, *, called: bool = False) -> Exception:
    """An error of the protocol as one of ours; ``called``: the request may have run a tool."""
    words = _words(error.message)
    if error.code == CONNECTION_CLOSED:
        return ConnectionBroken(words)
    if called and error.code not in _DID_NOT_RUN:
        return ToolFailed(f"The server answered with an error: {words} {UNKNOWN}")
    return ToolFailed(f"The server refused: {words}")


def _words(text: str) -> str:
    """A server's words, in a bounded number and without hidden characters, as a sentence."""
    told = clean(without_hidden(text[:MOST_WORDS])).strip()
    return told if told.endswith((".", "!", "?")) else f"{told}."
