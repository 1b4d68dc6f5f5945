"""The clients of connections: one for each, kept as long as its connection stays as it is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from chatapp.llm.client import LLMClient


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A connection as requests use it."""

    name: str
    address: str
    sealed_key: str = ""
    """The key, encrypted; empty for none."""
    private: bool = False
    """Requests may go to addresses inside one's network, and on this computer."""


Make = Callable[[Server], Awaitable[LLMClient]]


@dataclass(slots=True)
class _Kept:
    server: Server
    client: LLMClient
    requests: int = 0
    """Under way at this moment."""


class Clients:
    """Clients by the connection's name, made by ``make`` when first needed.

    When a connection has been changed, the next request gets a new client. The old one is closed
    with the last of its requests, so that replies end as they began.
    """

    def __init__(self, make: Make) -> None:
        self._make = make
        self._kept: dict[str, _Kept] = {}
        self._making = asyncio.Lock()

    @asynccontextmanager
    async def lent(self, server: Server) -> AsyncIterator[LLMClient]:
        """The client of a connection, for one request. Raises LLMError if it cannot be made."""
        kept = await self._client_of(server)
        kept.requests += 1
        try:
            yield kept.client
        finally:
            kept.requests -= 1
            await self._close_if_idle(kept)

    async def aclose(self) -> None:
        """Close every client."""
        kept, self._kept = list(self._kept.values()), {}
        for one in kept:
            await one.client.aclose()

    async def _client_of(self, server: Server) -> _Kept:
        async with self._making:
            before = self._kept.get(server.name)
            if before is not None and before.server == server:
                return before
            made = self._kept[server.name] = _Kept(server, await self._make(server))
        if before is not None:
            await self._close_if_idle(before)
        return made

    async def _close_if_idle(self, kept: _Kept) -> None:
        if kept.requests == 0 and self._kept.get(kept.server.name) is not kept:
            await kept.client.aclose()
