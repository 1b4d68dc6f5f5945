"""Metering of model calls, counted for the owner of the conversation."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from chatapp.conversations.turns import spending
from chatapp.llm import activity_log
from chatapp.llm.client import (
    ChatRequest,
    Chunk,
    Finished,
    LLMClient,
    ModelInfo,
    OnTokens,
    TokenUsage,
    WholeReply,
    collect,
)
from chatapp.llm.errors import LLMError, ReplyCut, ServerTimeout
from compression.database import AWAY
from compression.ports import TokenCounter

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Call:
    """One model call, as far as it has come."""

    request: ChatRequest
    texts: list[str] = field(default_factory=list)
    usage: TokenUsage | None = None
    refused: bool = False
    """The server did not accept the call, so it cost nothing."""


def _was_accepted(error: LLMError) -> bool:
    """Whether the server accepted the request, although no reply was received."""
    if isinstance(error, ServerTimeout):
        return bool(error.fields.get("limit") != "connect")
    return isinstance(error, ReplyCut)


class MeteredClient:
    """An :class:`chatapp.llm.client.LLMClient` that counts calls while there is a limit.

    ``cost_of`` gives the US dollars of a model's call, or None. A call that ends without a count
    by the provider, usually because of Stop, is counted by the ruler.
    """

    def __init__(
        self,
        client: LLMClient,
        counter: TokenCounter,
        cost_of: Callable[[str, TokenUsage], float | None],
    ) -> None:
        self._client = client
        self._counter = counter
        self._cost_of = cost_of

    @asynccontextmanager
    async def stream(self, request: ChatRequest) -> AsyncIterator[AsyncIterator[Chunk]]:
        """See :meth:`chatapp.llm.client.LLMClient.stream`."""
        conversation_id = activity_log.conversation()
        if conversation_id is None or not spending.limited():
            async with self._client.stream(request) as chunks:
                yield chunks
            return
        call = _Call(request)
        try:
            async with self._client.stream(request) as chunks:
                yield self._watched(chunks, call)
        except LLMError as error:
            call.refused = not (call.texts or _was_accepted(error))
            raise
        finally:
            if not call.refused:
                await asyncio.shield(self._count(conversation_id, call))

    async def _watched(self, chunks: AsyncIterator[Chunk], call: _Call) -> AsyncIterator[Chunk]:
        async for chunk in chunks:
            if isinstance(chunk, Finished):
                call.usage = chunk.usage
            else:
                call.texts.append(chunk.text)
            yield chunk

    async def _count(self, conversation_id: int, call: _Call) -> None:
        usage = call.usage
        if usage is None:
            usage = await asyncio.to_thread(self._estimated, call)
        try:
            await spending.aadd(
                conversation_id,
                tokens=usage.prompt_tokens + usage.completion_tokens,
                cost=self._cost_of(call.request.model, usage),
            )
        except AWAY as error:
            # A missing count must not cost the person the reply.
            logger.warning("The use of a model call could not be counted: %s", error)

    def _estimated(self, call: _Call) -> TokenUsage:
        asked = "\n".join(str(message.get("content", "")) for message in call.request.messages)
        return TokenUsage(
            prompt_tokens=self._counter.count(asked),
            completion_tokens=self._counter.count("".join(call.texts)),
        )

    async def complete(self, request: ChatRequest, on_tokens: OnTokens | None = None) -> WholeReply:
        """See :meth:`chatapp.llm.client.LLMClient.complete`."""
        return await collect(self.stream(request), on_tokens)

    async def models(self) -> tuple[ModelInfo, ...]:
        """See :meth:`chatapp.llm.client.LLMClient.models`."""
        return await self._client.models()

    async def aclose(self) -> None:
        """Close the client."""
        await self._client.aclose()
