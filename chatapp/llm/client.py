"""The contract of a chat model: requests, streamed chunks, whole replies.

Packages above this one know only these values and the :class:`LLMClient` protocol.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from chatapp.llm.errors import LLMError, MalformedReply


class Attempts(Protocol):
    """The log of the requests that one model call sends: the first, and each retry."""

    def sent(self, body: Mapping[str, Any]) -> None:
        """A request with this body is about to go out."""

    def refused(self, error: Exception) -> None:
        """The last request got no reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """One model call."""

    model: str
    messages: tuple[Mapping[str, Any], ...]
    """OpenAI-style messages, sent exactly as they are."""
    tools: tuple[Mapping[str, Any], ...] = ()
    """OpenAI-style tool definitions; if empty, no tool is offered."""
    max_tokens: int | None = None
    """Most tokens of the reply; None leaves it to the server."""
    temperature: float | None = None
    reasoning_effort: str = ""
    """``low``, ``medium`` or ``high``. Both dropped for servers that refuse them; None and empty
    leave them to the server."""
    response_format: Mapping[str, Any] | None = None
    """OpenAI-style ``response_format``; dropped for servers that refuse it."""
    include_usage: bool = True
    """Ask for token counts at the end of the stream; dropped for servers that refuse it."""
    summary: bool = False
    """The reply becomes a summary: only such requests go to the server that is for summaries."""
    on_retry: Callable[[LLMError, float], object] | None = field(default=None, compare=False)
    """Called before each retry with the reason and the seconds until then."""
    attempts: Attempts | None = field(default=None, compare=False)
    """Told of every request that goes out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextChunk:
    """A piece of the reply: not empty, without NUL and lone surrogates."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningChunk:
    """A piece of the model's reasoning, cleaned like the text."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call of a tool by the model."""

    id: str
    """The server's id, or ``call_<n>`` if it gave none. Two calls may share one id."""
    name: str
    arguments: str
    """JSON as the model wrote it: unchecked, possibly cut off or empty."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the server's own, such as signatures, to be sent back unchanged with the call.
    Those inside ``function`` are under that key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenUsage:
    """The provider's count of a call, in its own tokens."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int = 0
    """The part of ``prompt_tokens`` that came from the provider's cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """The end of a reply, sent once, as the last chunk. A reply without it is incomplete."""

    finish_reason: str
    """``stop``, ``length``, ``tool_calls``, ``content_filter``, ``refusal`` (the model's own) or
    the provider's own word."""
    tool_calls: tuple[ToolCall, ...] = ()
    usage: TokenUsage | None = None
    """None if the server reported none."""
    model: str = ""
    """The model's name in the server's answer."""
    reasoning_field: str = ""
    """The name under which the reasoning came, and may go back; empty if there was none, or only
    in a form that is not sent back."""
    error: LLMError | None = None
    """An error that the server reported after the model had ended its reply."""


Message = Mapping[str, Any]
Chunk = TextChunk | ReasoningChunk | Finished
OnTokens = Callable[[int], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeReply:
    """A reply that has ended."""

    text: str
    reasoning: str
    finish_reason: str
    tool_calls: tuple[ToolCall, ...] = ()
    usage: TokenUsage | None = None
    model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInfo:
    """A model as its server describes it."""

    name: str
    window: int | None = None
    """Context window in tokens; None if the server does not say."""
    max_output_tokens: int | None = None
    source: str = ""
    """Name of the field that the window was read from."""


class LLMClient(Protocol):
    """A chat model, or several behind one address."""

    def stream(self, request: ChatRequest) -> AbstractAsyncContextManager[AsyncIterator[Chunk]]:
        """Send a request; yields the reply in chunks, of which :class:`Finished` is the last.

        Leaving the context closes the connection at once, even in the middle of a reply. Raises
        :class:`chatapp.llm.errors.LLMError` on entering or while iterating.
        """

    async def complete(self, request: ChatRequest, on_tokens: OnTokens | None = None) -> WholeReply:
        """Send a request; returns the whole reply.

        ``on_tokens`` is called with the number of chunks (about one token each) so far. Raises
        :class:`chatapp.llm.errors.LLMError`.
        """

    async def models(self) -> tuple[ModelInfo, ...]:
        """The available models. Raises :class:`chatapp.llm.errors.LLMError`."""

    async def aclose(self) -> None:
        """Close every connection."""


def without_system_role(messages: Sequence[Message]) -> list[Message]:
    """The same messages with the text of the system messages heading the first user message."""
    texts = [str(m.get("content") or "") for m in messages if m.get("role") == "system"]
    others = [m for m in messages if m.get("role") != "system"]
    head = "\n\n".join(text for text in texts if text)
    first = next((i for i, m in enumerate(others) if m.get("role") == "user"), None)
    if first is None:
        return [{"role": "user", "content": head}, *others] if head else others
    if head:
        content = f"{head}\n\n{others[first].get('content') or ''}"
        others[first] = {**others[first], "content": content}
    return others


def without_tools(messages: Sequence[Message]) -> list[Message]:
    """The same messages with calls of tools and their results as plain text.

    For models without tools, whose servers refuse such messages. The results of one message become
    one message of the user, so that roles alternate as before; each is quoted as data.
    """
    names: dict[str, str] = {}
    told: list[Message] = []
    for message in messages:
        if message.get("role") == "tool":
            name = names.get(str(message.get("tool_call_id")), "a tool")
            text = _quoted_result(name, str(message.get("content") or ""))
            if told and told[-1].get("role") == "user":
                text = f"{told.pop().get('content')}\n\n{text}"
            told.append({"role": "user", "content": text})
        elif calls := message.get("tool_calls"):
            lines = [str(message["content"])] if message.get("content") else []
            for call in calls:
                function = call.get("function") or {}
                names[str(call.get("id"))] = str(function.get("name"))
                lines.append(f"[Called {function.get('name')} with {function.get('arguments')}]")
            rest = {key: part for key, part in message.items() if key != "tool_calls"}
            told.append({**rest, "content": "\n\n".join(lines)})
        else:
            told.append(message)
    return told


def _quoted_result(name: str, text: str) -> str:
    """A tool's result between two lines that it cannot hold: it is no word of the user.

    The lines are made of the text's own hash, so that a request stays the same as before.
    """
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
    mark = f"=== {int(digest, 16) % 10**12:012d} ==="
    return f"[Result of {name}, quoted as data]\n{mark}\n{text}\n{mark}"


async def collect(
    stream: AbstractAsyncContextManager[AsyncIterator[Chunk]], on_tokens: OnTokens | None = None
) -> WholeReply:
    """The whole reply of a stream; ``on_tokens`` as in :meth:`LLMClient.complete`.

    Raises what the stream raises, and MalformedReply when it has no :class:`Finished`.
    """
    text: list[str] = []
    reasoning: list[str] = []
    finished: Finished | None = None
    pieces = 0
    async with stream as chunks:
        async for chunk in chunks:
            if isinstance(chunk, Finished):
                finished = chunk
                continue
            (text if isinstance(chunk, TextChunk) else reasoning).append(chunk.text)
            pieces += 1
            if on_tokens is not None:
                await on_tokens(pieces)
    if finished is None:
        raise MalformedReply
    return WholeReply(
        text="".join(text),
        reasoning="".join(reasoning),
        finish_reason=finished.finish_reason,
        tool_calls=finished.tool_calls,
        usage=finished.usage,
        model=finished.model,
    )
