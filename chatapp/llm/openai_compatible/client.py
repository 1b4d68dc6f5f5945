"""Any OpenAI-compatible server, by HTTP.

The SDK gives configuration, authentication and whole answers. A reply is asked for with its address
and headers but not by its methods, which walk through the options of each request at the cost of
all else that is sent with it; the bytes that come go to our own decoder. Retries are ours too,
since the SDK waits up to two minutes on ``Retry-After`` without a word, and redirects are not
followed, since they would take the conversation elsewhere.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterator,
    Mapping,
)
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import Any
from urllib.parse import unquote, urlsplit

import httpx2
import stamina
from openai import AsyncOpenAI

from chatapp.llm.client import (
    Attempts,
    ChatRequest,
    Chunk,
    ModelInfo,
    OnTokens,
    WholeReply,
    collect,
)
from chatapp.llm.errors import (
    ContextOverflow,
    LLMError,
    MalformedReply,
    RateLimitedByServer,
    RequestRefused,
    ServerFault,
    ServerTimeout,
    ServerUnreachable,
    clean_words,
)
from chatapp.llm.openai_compatible.adaptation import (
    Adaptation,
    Learned,
    objection,
    still_believed,
)
from chatapp.llm.openai_compatible.classify import MAX_BODY, from_response
from chatapp.llm.openai_compatible.limits import Clock, Limits
from chatapp.llm.openai_compatible.listing import read_models
from chatapp.llm.openai_compatible.sse import MAX_EVENT_BYTES, StreamDecoder
from chatapp.llm.openai_compatible.transport import SocketFactory, transport_for
from chatapp.llm.openai_compatible.transport_errors import opening_error, reading_error

#: (model, field of its profile, value): supports_usage, supports_json_schema,
#: supports_system_role, supports_tools, supports_temperature, supports_reasoning_effort, window,
#: max_output_tokens.
OnLearned = Callable[[str, str, Learned], Awaitable[None]]

#: Bytes; the longest known list has about 1 MB.
MAX_MODELS_BODY = 16 * 1024 * 1024
#: 200 parallel streams and some room.
MAX_CONNECTIONS = 1000
#: Seconds for which an idle connection is kept.
KEEPALIVE = 30.0
POOL = httpx2.Limits(max_connections=MAX_CONNECTIONS, keepalive_expiry=KEEPALIVE)
#: What each request says of itself; all that a server other than the chat's own is told.
PLAIN_HEADERS = {
    "Accept": "application/json",
    "Accept-Encoding": "identity",
    "User-Agent": "Palimpsest",
}
#: After [DONE], for the end of the body, so that the connection can be used again.
DRAIN_SECONDS = 0.2
DRAIN_BYTES = 64 * 1024
#: Statuses of a gateway that may pass within seconds: worth asking again.
QUICK_RETRIES = frozenset({502, 503})


class OpenAIClient:
    """An :class:`chatapp.llm.client.LLMClient` for one server.

    ``base_url`` as in the SDK, usually ending in ``/v1``; credentials in it are sent as Basic
    authentication and appear nowhere else. An empty ``api_key`` sends none. ``on_learned`` is
    awaited when a server turns out to know more or less than was thought; it must not raise.
    ``gather`` gives the seconds for which the bytes of a reply that has begun may gather between
    two readings, since nobody is shown every token by itself. ``open_socket`` makes the sockets, or
    refuses; no proxy is used then. ``of_the_chat``: also send the headers that the SDK takes from
    environment variables, which are meant for the chat's own server.
    """

    def __init__(
        self,
        *,
        base_url: str,
        api_key: str = "",
        limits: Limits | None = None,
        on_learned: OnLearned | None = None,
        gather: Callable[[], float] = lambda: 0.0,
        open_socket: SocketFactory | None = None,
        of_the_chat: bool = True,
    ) -> None:
        self._limits = limits or Limits()
        self._on_learned = on_learned
        self._adaptations: dict[str, tuple[Adaptation, float]] = {}
        # By model, and when it was learned.
        address, credentials = split_credentials(base_url)
        self._has_key = bool(api_key) or credentials is not None
        # The texts that authenticate its requests, which must be in no log.
        self.secrets = tuple(s for s in (api_key, *(credentials or ())) if len(s) > 3)
        timeout = httpx2.Timeout(None, connect=self._limits.connect, pool=self._limits.connect)
        transport = transport_for(open_socket, most=MAX_CONNECTIONS, keepalive=KEEPALIVE)
        # The HTTP library's own connections give one chunk at a time, however many have come.
        self._gather = gather if transport else lambda: 0.0
        self._http = httpx2.AsyncClient(
            transport=transport,
            auth=httpx2.BasicAuth(*credentials) if credentials else None,
            timeout=timeout,
            limits=POOL,
            follow_redirects=False,
            trust_env=open_socket is None,
            event_hooks={"response": [self._refuse_errors]},
        )
        self._sdk = AsyncOpenAI(
            base_url=address,
            api_key=api_key or "none",
            max_retries=0,
            timeout=timeout,
            http_client=self._http,
            default_headers={"Accept-Encoding": "identity"},
        )
        headers = self._sdk.default_headers if of_the_chat else PLAIN_HEADERS
        headers = {**headers, **(self._sdk.auth_headers if api_key else {})}
        self._headers = {name: text for name, text in headers.items() if isinstance(text, str)}

    @asynccontextmanager
    async def stream(self, request: ChatRequest) -> AsyncIterator[AsyncIterator[Chunk]]:
        """See :meth:`chatapp.llm.client.LLMClient.stream`."""
        clock = Clock(self._limits)
        async with AsyncExitStack() as stack:
            response = await self._open(request, clock, stack)
            async with aclosing(self._chunks(response, clock)) as chunks:
                yield chunks

    async def complete(self, request: ChatRequest, on_tokens: OnTokens | None = None) -> WholeReply:
        """See :meth:`chatapp.llm.client.LLMClient.complete`."""
        return await collect(self.stream(request), on_tokens)

    async def models(self) -> tuple[ModelInfo, ...]:
        """The models that the server lists under ``/models``."""
        clock = Clock(self._limits)
        async with AsyncExitStack() as stack:
            response = await self._sent("GET", "models", None, clock, stack)
            body = await self._bounded_body(response, clock, MAX_MODELS_BODY)
        return await asyncio.to_thread(read_models, body)

    async def aclose(self) -> None:
        """Close every connection."""
        await self._http.aclose()

    async def _open(
        self, request: ChatRequest, clock: Clock, stack: AsyncExitStack
    ) -> httpx2.Response:
        """The response whose body is the reply, opened on ``stack``.

        What the server refuses to know is left out, each thing once.
        """
        learned, since = self._adaptations.get(request.model, (Adaptation(), 0.0))
        known = adaptation = still_believed(learned, time.monotonic() - since)
        while True:
            try:
                response = await self._ask_patiently(request, adaptation, clock, stack)
                break
            except (RequestRefused, ServerFault) as error:
                # Templates that know no system role make llama.cpp answer 500.
                changed = objection(error, request, adaptation)
                if changed is None:
                    raise
                adaptation = changed
            except ContextOverflow as error:
                if window := error.fields.get("window"):
                    await self._tell(request.model, "window", window)
                raise
        # What was refused once and is taken now is told as well.
        taken = [lesson for lesson in adaptation.lessons(learned, request) if lesson[1] is True]
        lessons = adaptation.lessons(known, request) + taken
        if adaptation != known or lessons:
            self._adaptations[request.model] = adaptation, time.monotonic()
        for field, value in lessons:
            await self._tell(request.model, field, value)
        return response

    async def _tell(self, model: str, field: str, value: Learned) -> None:
        if self._on_learned is not None:
            await self._on_learned(model, field, value)

    async def _ask_patiently(
        self, request: ChatRequest, adaptation: Adaptation, clock: Clock, stack: AsyncExitStack
    ) -> httpx2.Response:
        """Ask, and a few times again while the server is busy or away for a moment."""
        limits, body = self._limits, adaptation.apply(request)

        def is_worth_a_retry(error: Exception) -> bool | float:
            if isinstance(error, RateLimitedByServer):
                wait = limits.retry_wait if error.retry_after is None else error.retry_after
                if wait >= clock.retry_budget_left:
                    return False
                if request.on_retry is not None:
                    request.on_retry(error, wait)
                return max(wait, 0.01)
            if isinstance(error, ServerFault):
                return error.http_status in QUICK_RETRIES
            return isinstance(error, ServerUnreachable) and error.passing

        async for attempt in stamina.retry_context(
            on=is_worth_a_retry,
            attempts=limits.attempts,
            timeout=limits.retry_budget,
            wait_initial=limits.retry_wait,
            wait_max=limits.retry_wait * 4,
            wait_jitter=limits.retry_wait,
        ):
            with attempt:
                return await self._ask(body, request.attempts, clock, stack)
        raise ServerUnreachable

    async def _ask(
        self,
        body: Mapping[str, Any],
        attempts: Attempts | None,
        clock: Clock,
        stack: AsyncExitStack,
    ) -> httpx2.Response:
        """The response whose body is still to be read, opened on ``stack``."""
        clock.asking()
        if attempts is not None:
            attempts.sent(body)
        try:
            return await self._sent("POST", "chat/completions", body, clock, stack)
        except Exception as error:
            if attempts is not None:
                attempts.refused(error)
            raise

    async def _sent(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        clock: Clock,
        stack: AsyncExitStack,
    ) -> httpx2.Response:
        try:
            url = self._sdk.base_url.join(path)
            asked = self._http.build_request(method, url, json=body, headers=self._headers)
            response = await clock.within(self._http.send(asked, stream=True))
        except Exception as error:
            # ValueError and its kin come through, and their texts may hold the key.
            raise opening_error(error, self._limits) from None
        stack.push_async_callback(response.aclose)
        return response

    async def _refuse_errors(self, response: httpx2.Response) -> None:
        """Turn every answer but success into our error, before the SDK reads it without bound."""
        if response.is_success:
            return
        parts: list[bytes] = []
        size = 0
        async with aclosing(response.aiter_bytes()) as pieces:
            async for piece in pieces:
                parts.append(piece)
                size += len(piece)
                if size >= MAX_BODY:
                    break
        headers = {name.lower(): value for name, value in response.headers.items()}
        body = b"".join(parts)
        error = from_response(response.status_code, headers, body, has_key=self._has_key)
        raise self._without_secrets(error)

    def _without_secrets(self, error: LLMError) -> LLMError:
        if error.provider_message:
            words = clean_words(error.provider_message, secrets=self.secrets)
            error.fields["provider_message"] = words
        return error

    async def _chunks(self, response: httpx2.Response, clock: Clock) -> AsyncGenerator[Chunk, None]:
        decoder = StreamDecoder(max_reply_characters=self._limits.max_reply_characters)
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        try:
            if kind in {"text/html", "application/xhtml+xml"}:
                raise MalformedReply
            if kind == "application/json":
                body = await self._bounded_body(response, clock, MAX_EVENT_BYTES)
                for chunk in (*decoder.feed_whole(body), *self._end(decoder)):
                    yield chunk
                return
            async with aclosing(response.aiter_bytes()) as pieces:
                async with aclosing(_streamed(pieces, clock, decoder, self._gather)) as chunks:
                    async for chunk in chunks:
                        yield chunk
                for chunk in self._end(decoder):
                    yield chunk
                if decoder.done:
                    await _drain(pieces)
        except LLMError as error:
            raise self._without_secrets(error) from None

    def _end(self, decoder: StreamDecoder) -> Iterator[Chunk]:
        if decoder.error is not None:
            self._without_secrets(decoder.error)
        return decoder.end()

    async def _bounded_body(self, response: httpx2.Response, clock: Clock, at_most: int) -> bytes:
        """The whole body. Raises MalformedReply when it is longer than ``at_most`` bytes."""
        parts: list[bytes] = []
        size = 0
        try:
            async with aclosing(response.aiter_bytes()) as pieces:
                while piece := await clock.within(anext(pieces, b"")):
                    parts.append(piece)
                    size += len(piece)
                    if size > at_most:
                        raise MalformedReply
        except Exception as error:
            raise reading_error(error) from None
        return b"".join(parts)


async def _streamed(
    pieces: AsyncGenerator[bytes, None],
    clock: Clock,
    decoder: StreamDecoder,
    gather: Callable[[], float],
) -> AsyncGenerator[Chunk, None]:
    """The chunks decoded from the body, until the decoder is done or the body ends.

    Once the finish reason has come, a cut or a silence is an end like any other.
    """
    now = asyncio.get_running_loop().time
    characters, read_at = 0, 0.0
    while not decoder.done:
        # Nothing is put off before the first word of the reply has come.
        if characters and (early := read_at + gather() - now()) > 0:
            await asyncio.sleep(early)
        try:
            piece = await clock.within(anext(pieces, b""))
        except Exception as error:
            if decoder.finish_reason and isinstance(error, ServerTimeout | httpx2.HTTPError):
                return
            raise reading_error(error) from None
        if not piece:
            return
        read_at = now()
        for chunk in decoder.feed(piece):
            yield chunk
        if decoder.finish_reason:
            clock.finish_came()
        elif decoder.characters > characters:
            characters = decoder.characters
            clock.content_came()


async def _drain(pieces: AsyncGenerator[bytes, None]) -> None:
    """Read the few bytes that end the body; if they do not come, the connection is closed."""
    size = 0
    try:
        async with asyncio.timeout(DRAIN_SECONDS):
            async for piece in pieces:
                size += len(piece)
                if size > DRAIN_BYTES:
                    return
    except (TimeoutError, httpx2.HTTPError, httpx2.StreamError):
        # The reply is whole: the connection is merely not used again.
        return


def split_credentials(base_url: str) -> tuple[str, tuple[str, str] | None]:
    """An address without its ``user:password@``, and these two if there were any."""
    parts = urlsplit(base_url)
    if "@" not in parts.netloc:
        return base_url, None
    credentials, _, host = parts.netloc.rpartition("@")
    user, _, password = credentials.partition(":")
    return parts._replace(netloc=host).geturl(), (unquote(user), unquote(password))
