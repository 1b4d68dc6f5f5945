"""The client for models of several servers: each request goes to the server in its model's name."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from chatapp.llm.client import (
    Attempts,
    ChatRequest,
    Chunk,
    Finished,
    LLMClient,
    ModelInfo,
    OnTokens,
    WholeReply,
    collect,
)
from chatapp.llm.errors import LLMError
from chatapp.llm.servers.names import SUMMARIES, parted
from chatapp.llm.servers.pool import Clients, Server

#: Gives the connection of this name for a request to its model of that name. Raises LLMError when
#: there is none, or whoever is behind the request may not use it.
Find = Callable[[str, str], Awaitable[Server]]


class RoutingClient:
    """An :class:`chatapp.llm.client.LLMClient` before those of all servers.

    ``own`` is the chat's own server. ``summaries`` are those that settings name for summaries, by
    the whole name of their model: nobody can have a conversation answered there. What ``find``
    gives are connections. A request is never sent to another server than its model's.
    """

    def __init__(
        self, own: LLMClient, *, summaries: Mapping[str, LLMClient], find: Find, clients: Clients
    ) -> None:
        self._own = own
        self._summaries = dict(summaries)
        self._find = find
        self._clients = clients

    @asynccontextmanager
    async def stream(self, request: ChatRequest) -> AsyncIterator[AsyncIterator[Chunk]]:
        """See :meth:`chatapp.llm.client.LLMClient.stream`."""
        model, name = parted(request.model)
        if not name:
            async with self._own.stream(request) as chunks:
                yield chunks
            return
        attempts = _NamedAttempts(request.attempts, name) if request.attempts else None
        asked = replace(request, model=model, attempts=attempts)
        try:
            if request.summary and request.model in self._summaries:
                async with self._summaries[request.model].stream(asked) as chunks:
                    yield _named(chunks, name)
                return
            server = await self._find(name, model)
            async with self._clients.lent(server) as client, client.stream(asked) as chunks:
                yield _named(chunks, name)
        except LLMError as error:
            raise about(error, name) from None

    async def complete(self, request: ChatRequest, on_tokens: OnTokens | None = None) -> WholeReply:
        """See :meth:`chatapp.llm.client.LLMClient.complete`."""
        return await collect(self.stream(request), on_tokens)

    async def models(self) -> tuple[ModelInfo, ...]:
        """The models of the chat's own server; those of connections are stored with them."""
        return await self._own.models()

    async def aclose(self) -> None:
        """Close every connection."""
        for client in (self._own, *self._summaries.values()):
            await client.aclose()
        await self._clients.aclose()


@dataclass(frozen=True, slots=True)
class _NamedAttempts:
    """The log of a call's requests, which is told of errors as the person is."""

    log: Attempts
    name: str

    def sent(self, body: Mapping[str, Any]) -> None:
        """See :meth:`chatapp.llm.client.Attempts.sent`."""
        self.log.sent(body)

    def refused(self, error: Exception) -> None:
        """See :meth:`chatapp.llm.client.Attempts.refused`."""
        self.log.refused(about(error, self.name) if isinstance(error, LLMError) else error)


async def _named(chunks: AsyncIterator[Chunk], name: str) -> AsyncIterator[Chunk]:
    async for chunk in chunks:
        if isinstance(chunk, Finished) and chunk.error is not None:
            about(chunk.error, name)
        yield chunk


def about(error: LLMError, name: str) -> LLMError:
    """The error with what its sentence says of the chat's settings said of this server."""
    if name == SUMMARIES:
        address, key = "SUMMARY_BASE_URL", "SUMMARY_API_KEY"
    else:
        address, key = f"the address of “{name}”", f"the key of “{name}”"
    words = error.message.replace("OPENAI_BASE_URL", address).replace("OPENAI_API_KEY", key)
    error.message = words[:1].upper() + words[1:]
    error.args = (error.message,)
    return error
