"""The HTTP client of tools: bounded, without redirects, and only to addresses that are allowed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager

import aiohttp
import httpx2

from chatapp.llm.openai_compatible.transport import AiohttpTransport
from chatapp.tools.addresses import AddressRefused, Reach

#: Requests of one client under way at once: more than a reply makes calls, each of which may be
#: cancelled by another request, beside what a connection to a tool server holds open.
MOST_REQUESTS = 40
#: Lines of a stream of events. A result has a few; a server could send notes without an end, and
#: each costs far more than its bytes.
MOST_LINES = 10_000
#: Seconds for a connection to be made.
CONNECT_SECONDS = 10.0
# Seconds that an idle connection is kept.
_KEEPALIVE = 15.0


class HostRefused(httpx2.RequestError):
    """A request names a host that is not configured, or leads to an address that is not allowed."""


class Redirected(httpx2.RequestError):
    """An answer points to another address."""


class BodyTooLarge(httpx2.RequestError):
    """An answer has more bytes than are read."""


def outbound_client(
    reach: Reach,
    *,
    most_bytes: int,
    seconds: float,
    headers: Mapping[str, str] | None = None,
    redirects: bool = True,
) -> httpx2.AsyncClient:
    """A client for requests within ``reach``.

    An answer's body may have ``most_bytes``; a wait for its head or its next piece may take
    ``seconds``. No redirect is followed; without ``redirects`` one is an error, for callers that
    would follow it. Answers are not compressed, since a small body could become a huge one.
    Requests raise httpx2.RequestError, among them HostRefused and BodyTooLarge.
    """
    return httpx2.AsyncClient(
        transport=_Outbound(reach, most_bytes, redirects=redirects),
        headers={"Accept-Encoding": "identity", **(headers or {})},
        timeout=httpx2.Timeout(seconds, connect=CONNECT_SECONDS),
        follow_redirects=False,
        trust_env=False,
    )


class _Outbound(httpx2.AsyncBaseTransport):
    def __init__(self, reach: Reach, most_bytes: int, *, redirects: bool) -> None:
        self._reach = reach
        self._redirects = redirects
        self._most_bytes = most_bytes
        self._inner = AiohttpTransport(
            most=MOST_REQUESTS, keepalive=_KEEPALIVE, open_socket=reach.open_socket
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if not self._reach.allows(request.url.host):
            raise HostRefused(f"{request.url.host} is not among the configured hosts.")
        # The transport below bounds only the connecting.
        seconds = request.extensions.get("timeout", {}).get("read")
        try:
            async with _within(seconds):
                response = await self._inner.handle_async_request(request)
        except httpx2.ConnectError as error:
            if _refused(error):
                raise HostRefused(
                    f"{request.url.host} leads to a private address, which is not allowed."
                ) from error
            raise
        if response.headers.get("Content-Encoding", "identity") != "identity":
            await response.aclose()
            raise httpx2.RemoteProtocolError("The answer is compressed, though nobody asked.")
        if response.has_redirect_location and not self._redirects:
            await response.aclose()
            raise Redirected("The server redirects to another address, which is not followed.")
        stream = response.stream
        assert isinstance(stream, httpx2.AsyncByteStream)
        kind = response.headers.get("Content-Type", "").lower()
        most_lines = MOST_LINES if kind.startswith("text/event-stream") else None
        response.stream = _Bounded(stream, self._most_bytes, most_lines, seconds)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


@asynccontextmanager
async def _within(seconds: float | None) -> AsyncIterator[None]:
    """Bound a wait for a server. Raises httpx2.ReadTimeout."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise httpx2.ReadTimeout("The server said nothing for too long.") from None


def _refused(error: BaseException) -> bool:
    """Whether a failed connection failed because its address is not allowed."""
    causes: Iterator[BaseException | None] = iter((error, error.__cause__))
    return any(
        isinstance(cause, aiohttp.ClientConnectorError)
        and isinstance(cause.os_error, AddressRefused)
        for cause in causes
    )


class _Bounded(httpx2.AsyncByteStream):
    """A body that ends with an error when it is too long, or when it stops."""

    def __init__(
        self,
        inner: httpx2.AsyncByteStream,
        most_bytes: int,
        most_lines: int | None,
        seconds: float | None,
    ) -> None:
        self._inner = inner
        self._left = most_bytes
        self._lines_left = most_lines
        self._seconds = seconds

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pieces = aiter(self._inner)
        while (piece := await self._next(pieces)) is not None:
            self._left -= len(piece)
            if self._lines_left is not None:
                self._lines_left -= piece.count(b"\n")
            if self._left < 0 or (self._lines_left is not None and self._lines_left < 0):
                raise BodyTooLarge("The answer is too long.")
            yield piece

    async def _next(self, pieces: AsyncIterator[bytes]) -> bytes | None:
        async with _within(self._seconds):
            return await anext(pieces, None)

    async def aclose(self) -> None:
        await self._inner.aclose()
