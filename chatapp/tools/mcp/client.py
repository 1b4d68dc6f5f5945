"""The official SDK's client as a session: the only module that knows the SDK's client."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.types import (
    CONNECTION_CLOSED,
    Implementation,
    ListToolsRequest,
    PaginatedRequestParams,
)
from pydantic import RootModel, ValidationError

from chatapp.conversations.tools.servers import ServerAccess
from chatapp.text.safety import clean, without_hidden
from chatapp.tools.addresses import Reach
from chatapp.tools.mcp.connection import ConnectionBroken
from chatapp.tools.mcp.definitions import MOST_TOOLS
from chatapp.tools.mcp.results import as_text
from chatapp.tools.outbound import outbound_client
from chatapp.tools.sealing import Unreadable, unseal
from chatapp.version import VERSION
from compression.exceptions import ToolFailed
from compression.tools.approval import exact

logger = logging.getLogger(__name__)

#: Bytes of one answer, and of one event of a stream.
MOST_BYTES = 4 * 1024 * 1024
#: Seconds without any byte after which an answer is given up.
QUIET_SECONDS = 60.0
# Pages of a list of tools, so that a list without an end has one.
_MOST_PAGES = 20
# Characters of a server's words about a failure.
_MOST_WORDS = 1000


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
        if server.command:
            program, *arguments = server.command
            environment = {server.credential_name: key} if key else None
            target: Any = StdioServerParameters(
                command=program,
                args=arguments,
                env=environment,
                encoding_error_handler="replace",
            )
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
        yield SdkSession(
            await stack.enter_async_context(Client(target, cache=None, client_info=about))
        )


class SdkSession:
    """An open connection of the SDK's client."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def listing(self) -> dict[str, str]:
        """The server's tools: name and raw object. Raises ToolFailed and ConnectionBroken."""
        found: dict[str, str] = {}
        cursor = None
        try:
            for _ in range(_MOST_PAGES):
                params = PaginatedRequestParams(cursor=cursor) if cursor else None
                page = await self._client.session.send_request(
                    ListToolsRequest(params=params), _Raw
                )
                for raw in page.root.get("tools", ()):
                    found.setdefault(clean(str(raw["name"])), exact(raw))
                cursor = page.root.get("nextCursor")
                if not cursor:
                    break
        except MCPError as error:
            raise _failed(error) from None
        except (ValidationError, ValueError):
            raise ToolFailed("Its list of tools is not valid.") from None
        if cursor or len(found) > MOST_TOOLS:
            raise ToolFailed(f"It lists more than {MOST_TOOLS} tools.")
        return found

    async def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Call a tool. Returns its result as text. Raises ToolFailed and ConnectionBroken."""
        try:
            result = await self._client.call_tool(name, dict(arguments))
        except MCPError as error:
            raise _failed(error) from None
        except ValidationError:
            raise ToolFailed("The server's answer is not valid.") from None
        except RuntimeError as error:
            # What the tool returned is not what its definition promises.
            raise ToolFailed(_words(str(error))) from None
        text = as_text(result.model_dump(by_alias=True, mode="json", exclude_unset=True))
        if result.is_error:
            raise ToolFailed(text or "The tool failed and gave no reason.")
        return text


def _failed(error: MCPError) -> Exception:
    """An error of the protocol as one of ours."""
    if error.code == CONNECTION_CLOSED:
        return ConnectionBroken(_words(error.message))
    return ToolFailed(f"The server refused: {_words(error.message)}")


def _words(text: str) -> str:
    """A server's words, in a bounded number and without hidden characters, as a sentence."""
    told = clean(without_hidden(text)).strip()[:_MOST_WORDS]
    return told if told.endswith((".", "!", "?")) else f"{told}."
