"""The recorder of model calls: every request that goes out becomes one :class:`Call`.

A request that is sent again is a call of its own. :mod:`chatapp.activity` writes the calls down.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal, Protocol

from chatapp.llm.client import (
    ChatRequest,
    Chunk,
    Finished,
    LLMClient,
    ModelInfo,
    OnTokens,
    TextChunk,
    TokenUsage,
    ToolCall,
    WholeReply,
    collect,
)
from compression.exceptions import UserFacingError

Kind = Literal["chat", "summary", "probe", "title"]
#: The end of a call whose reader left before the reply had ended, mostly because of Stop.
STOPPED = "stopped"
#: Seconds for which the end of a call waits for its line; a slow disk holds up nobody longer.
PATIENCE = 1.0

#: US dollars of a model's call; None if its price is unknown.
CostOf = Callable[[str, TokenUsage], float | None]

_subject: ContextVar[dict[str, Any] | None] = ContextVar("subject", default=None)


@contextmanager
def about(**subject: Any) -> Iterator[None]:
    """A context in which calls belong to these: ``conversation`` and ``turn`` by id, ``kind``."""
    token = _subject.set({**(_subject.get() or {}), **subject})
    try:
        yield
    finally:
        _subject.reset(token)


def conversation() -> int | None:
    """The conversation that calls in this context are made for; None if there is none."""
    found = (_subject.get() or {}).get("conversation")
    return found if isinstance(found, int) else None


def turn() -> int | None:
    """The turn that calls in this context are made for; None if there is none."""
    found = (_subject.get() or {}).get("turn")
    return found if isinstance(found, int) else None


@dataclass(slots=True, kw_only=True)
class Call:
    """One request that went out, and what came of it."""

    request: Mapping[str, Any]
    """The body as sent."""
    known_as: str = ""
    """The model's name here, if it differs from the one in the request: with its server's name."""
    kind: str = "chat"
    conversation_id: int | None = None
    turn: int | None = None
    id: str = field(default_factory=lambda: str(uuid.uuid4()))
    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    begun: float = field(default_factory=time.monotonic)
    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str = ""
    usage: TokenUsage | None = None
    cost: float | None = None
    duration: float = 0.0
    """Seconds from the request to the end of its reply."""
    first_token: float | None = None
    """Seconds from the request to the first piece of its reply; None if none came."""
    error: dict[str, str] | None = None
    """``code``, ``message`` and, where the server gave one, its own words as ``provider``."""

    @property
    def model(self) -> str:
        """The model's name here."""
        return self.known_as or str(self.request.get("model") or "")

    def take(self, chunk: Chunk) -> None:
        """Note a piece of the reply."""
        if isinstance(chunk, Finished):
            self.finish_reason, self.usage = chunk.finish_reason, chunk.usage
            self.tool_calls = chunk.tool_calls
            if chunk.error is not None:
                self.error = told(chunk.error)
            return
        if self.first_token is None:
            self.first_token = time.monotonic() - self.begun
        (self.text if isinstance(chunk, TextChunk) else self.reasoning).append(chunk.text)


class Log(Protocol):
    """The place that calls are written to."""

    def put(self, call: Call) -> asyncio.Future[None] | None:
        """Write a call that has ended, and never raise. The future is done when it is written."""

    async def aclose(self) -> None:
        """Wait for what is being written."""


def told(error: Exception) -> dict[str, str]:
    """An error as a line of the log has it."""
    if not isinstance(error, UserFacingError):
        return {"code": "internal_error", "message": type(error).__name__}
    words = {"code": error.code, "message": error.message}
    provider = error.fields.get("provider_message")
    return {**words, "provider": str(provider)} if provider else words


class _Attempts:
    """The requests of one model call. Each is put into the log when it has ended."""

    def __init__(self, model: str, log: Log, cost_of: CostOf) -> None:
        self._model = model
        self._log = log
        self._cost_of = cost_of
        self._open: Call | None = None
        self._written: asyncio.Future[None] | None = None
        self._about = _subject.get() or {}

    def sent(self, body: Mapping[str, Any]) -> None:
        """A request is about to go out."""
        self._open = Call(
            request=body,
            known_as=self._model,
            kind=self._about.get("kind") or "chat",
            conversation_id=self._about.get("conversation"),
            turn=self._about.get("turn"),
        )

    def refused(self, error: Exception) -> None:
        """The open request got no reply."""
        self.end(told(error))

    def take(self, chunk: Chunk) -> None:
        """Note a piece of the reply to the open request."""
        if self._open is not None:
            self._open.take(chunk)

    def end(self, error: dict[str, str] | None = None) -> None:
        """The open request has ended. Without ``error`` and finish reason it was stopped."""
        call, self._open = self._open, None
        if call is None:
            return
        call.duration = time.monotonic() - call.begun
        if not call.finish_reason:
            # What is raised after the reply's end is its reader's.
            call.error = error or call.error
        if call.error is None and not call.finish_reason:
            call.error = {"code": STOPPED, "message": "Stopped before the reply had ended."}
        if call.usage is not None:
            call.cost = self._cost_of(call.model, call.usage)
        self._written = self._log.put(call)

    async def written(self, seconds: float) -> None:
        """Wait until the last line is written, for at most so many seconds."""
        if self._written is not None:
            await asyncio.wait({self._written}, timeout=seconds)


def _no_cost(model: str, usage: TokenUsage) -> float | None:
    return None


class RecordedClient:
    """An :class:`chatapp.llm.client.LLMClient` that logs every request that ``client`` sends.

    What is refused before it goes out, as for a connection that is gone, is no call.
    """

    def __init__(self, client: LLMClient, log: Log, cost_of: CostOf = _no_cost) -> None:
        self._client = client
        self._log = log
        self._cost_of = cost_of

    @asynccontextmanager
    async def stream(self, request: ChatRequest) -> AsyncIterator[AsyncIterator[Chunk]]:
        """See :meth:`chatapp.llm.client.LLMClient.stream`."""
        attempts = _Attempts(request.model, self._log, self._cost_of)
        sent = replace(request, attempts=attempts)
        try:
            async with self._client.stream(sent) as chunks:
                yield self._watched(chunks, attempts)
        except Exception as error:
            attempts.end(told(error))
            raise
        finally:
            attempts.end()
            await attempts.written(PATIENCE)

    async def _watched(
        self, chunks: AsyncIterator[Chunk], attempts: _Attempts
    ) -> AsyncIterator[Chunk]:
        async for chunk in chunks:
            attempts.take(chunk)
            yield chunk

    async def complete(self, request: ChatRequest, on_tokens: OnTokens | None = None) -> WholeReply:
        """See :meth:`chatapp.llm.client.LLMClient.complete`."""
        return await collect(self.stream(request), on_tokens)

    async def models(self) -> tuple[ModelInfo, ...]:
        """See :meth:`chatapp.llm.client.LLMClient.models`; a listing is no call of a model."""
        return await self._client.models()

    async def aclose(self) -> None:
        """Close the client, and wait for the last lines."""
        await self._client.aclose()
        await self._log.aclose()
