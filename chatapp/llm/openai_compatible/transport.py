"""Requests of the HTTP library, carried by aiohttp.

A reply is hundreds of tiny pieces. The HTTP library's own connections take each through six layers;
aiohttp takes HTTP apart in C, and whoever reads takes all that has come. What the HTTP library does
well stays its own: addresses, headers, authentication, certificates, and every exception.
"""

from __future__ import annotations

import asyncio
import functools
import re
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.request import getproxies

import aiohttp
import httpx2
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_parser import RawResponseMessage
from aiohttp.streams import StreamReader

#: Bytes of one header, and of the status line; aiohttp takes 128 headers.
MAX_HEADER = 16 * 1024
#: Answers like 100 Continue that wait to be looked at.
MAX_INTERIM = 16
#: Bytes around a body, its head included: these, and so many for each byte of the body. A chunk of
#: one byte has five.
MAX_FRAMING = 4 * 1024 * 1024
FRAMING_PER_BYTE = 16

_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(rb"(?:[^\x00-\x20\x7f](?:[^\x00-\x08\x0a-\x1f\x7f]*[^\x00-\x20\x7f])?)?")

Headers = list[tuple[bytes, bytes]]
SocketFactory = Callable[[tuple[Any, ...]], socket.socket]


class AiohttpTransport(httpx2.AsyncBaseTransport):
    """Requests over connections of aiohttp, each for one request at a time.

    ``most`` requests are under way at once; an idle connection is kept ``keepalive`` seconds.
    ``open_socket`` makes the socket for a connection to a resolved address, or refuses by OSError.
    """

    def __init__(
        self, *, most: int, keepalive: float, open_socket: SocketFactory | None = None
    ) -> None:
        self._most = most
        self._keepalive = keepalive
        self._open_socket = open_socket
        self._under_way = 0
        self._session: aiohttp.ClientSession | None = None
        self._context: ssl.SSLContext | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request and return once the head of its answer has come.

        Raises httpx2.TransportError: LocalProtocolError for what cannot be sent, ConnectError,
        ConnectTimeout, PoolTimeout, ReadError, and RemoteProtocolError for what is not HTTP.
        """
        if request.url.scheme not in {"http", "https"} or not request.url.host:
            raise httpx2.UnsupportedProtocol("An address begins with http:// or https://.")
        if not _sendable(request.headers.raw):
            raise httpx2.LocalProtocolError("A header holds characters that cannot be sent.")
        if request.url.scheme == "https" and self._context is None:
            # It reads all certificates that the system trusts.
            self._context = await asyncio.to_thread(httpx2.create_ssl_context)
            self._context.set_alpn_protocols(["http/1.1"])
        if self._under_way >= self._most:
            raise httpx2.PoolTimeout("All connections are in use.")
        self._under_way += 1
        try:
            with _translated():
                response = await self._asked(request)
        except BaseException:
            self._finished()
            raise
        body = _Body(response, self._finished)
        headers = list(response.raw_headers)
        encodings = [value.lower() for value in response.headers.getall("Transfer-Encoding", ())]
        if not _sendable(headers) or encodings not in ([], ["chunked"]) or response.status < 200:
            await body.aclose()
            raise httpx2.RemoteProtocolError("The server sent a header that is none.")
        return httpx2.Response(response.status, headers=headers, stream=body)

    async def aclose(self) -> None:
        """Close every connection, those with a request too."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()
        # An aborted connection closes its socket in the loop's next round, which may be the last.
        await asyncio.sleep(0)

    def _finished(self) -> None:
        self._under_way -= 1

    async def _asked(self, request: httpx2.Request) -> aiohttp.ClientResponse:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=_Connector(
                    limit=0, keepalive_timeout=self._keepalive, socket_factory=self._open_socket
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                # The HTTP library gives the headers, and undoes what the body is encoded with.
                skip_auto_headers=("Content-Type",),
                auto_decompress=False,
                max_line_size=MAX_HEADER,
                max_field_size=MAX_HEADER,
            )
        seconds = request.extensions.get("timeout", {}).get("connect")
        return await self._session.request(
            request.method,
            str(request.url),
            headers=[(name.decode(), value.decode()) for name, value in request.headers.raw],
            data=request.stream if "Content-Length" in request.headers else None,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(connect=seconds, ceil_threshold=float("inf")),
            ssl=self._context or True,
        )


class _Connector(aiohttp.TCPConnector):
    """Connections of the class below."""

    def __init__(
        self, *, limit: int, keepalive_timeout: float, socket_factory: SocketFactory | None
    ) -> None:
        super().__init__(
            limit=limit, keepalive_timeout=keepalive_timeout, socket_factory=socket_factory
        )
        self._factory = functools.partial(_Connection, loop=self._loop)  # type: ignore[assignment]


class _Connection(ResponseHandler):
    """One connection, with what aiohttp leaves open.

    An answer that came before the request is not taken for the request's. Whoever reads a body
    learns that its rest makes no sense, or that the connection was closed here. What is not part of
    a body is bounded. Closing drops what has not been sent yet.
    """

    _head_is_awaited = False
    _received = 0

    def set_response_params(self, **params: Any) -> None:
        """A request is about to be sent. Called by aiohttp."""
        self._head_is_awaited = True
        self._received = 0
        super().set_response_params(**params)

    def data_received(self, data: bytes) -> None:
        """Called by asyncio."""
        super().data_received(data)
        self._received += len(data)
        body = self._payload
        if body is not None and (
            self._received > MAX_FRAMING + FRAMING_PER_BYTE * body.total_bytes
        ):
            self.close()

    def feed_data(self, data: tuple[RawResponseMessage, StreamReader], size: int = 0) -> None:
        """Take the head of an answer. Called by aiohttp."""
        if self._head_is_awaited and len(self) <= MAX_INTERIM:
            self._head_is_awaited = data[0].code < 200
            super().feed_data(data, size)
        elif not self.is_eof():
            self.close()
            self.set_exception(aiohttp.ClientConnectionError("Not one answer, but many."))

    def set_exception(self, exc: BaseException, *cause: BaseException) -> None:
        """Tell whoever waits for a head, and whoever reads a body. Called by aiohttp."""
        super().set_exception(exc, *cause)
        self._tell_reader()

    def abort(self) -> None:
        """Close at once."""
        self._tell_reader()
        super().abort()

    def close(self) -> None:
        """Close at once: a server that does not read would keep all that waits to be sent."""
        self.abort()

    def _tell_reader(self) -> None:
        body = self._payload
        if body is not None and not body.is_eof() and body.exception() is None:
            body.set_exception(aiohttp.ClientPayloadError("The connection is closed."))


class _Body(httpx2.AsyncByteStream):
    """The body of one answer. Read to its end, its connection serves the next request."""

    def __init__(self, response: aiohttp.ClientResponse, finished: Callable[[], None]) -> None:
        self._response = response
        self._finished = finished

    async def __aiter__(self) -> AsyncIterator[bytes]:
        content = self._response.content
        broken: aiohttp.ClientError | None = None
        while broken is None:
            try:
                piece = await content.readany()
            except aiohttp.ClientError as error:
                # What came before the break is as good as the rest.
                broken, piece = error, content._read_nowait(-1)
            if piece:
                yield piece
            elif broken is None:
                return
        raise httpx2.ReadError("The body was cut.") from broken

    async def aclose(self) -> None:
        """Close the connection, if it is not back among the idle ones since all was read."""
        self._response.close()
        self._finished()


def _sendable(headers: Headers) -> bool:
    """Whether RFC 9110 allows these headers; aiohttp is not as strict."""
    return all(_NAME.fullmatch(name) and _VALUE.fullmatch(value) for name, value in headers)


@contextmanager
def _translated() -> Iterator[None]:
    """The exceptions of aiohttp as those of the HTTP library."""
    try:
        yield
    except aiohttp.ConnectionTimeoutError as error:
        raise httpx2.ConnectTimeout("No connection in time.") from error
    except aiohttp.ClientConnectorError as error:
        raise httpx2.ConnectError("No connection.") from error
    except aiohttp.InvalidURL as error:
        raise httpx2.UnsupportedProtocol("The address names no host.") from error
    except aiohttp.ClientResponseError as error:
        raise httpx2.RemoteProtocolError("The server did not answer in HTTP.") from error
    except aiohttp.ClientError as error:
        raise httpx2.ReadError("The connection broke.") from error


def transport_for(
    open_socket: SocketFactory | None, *, most: int, keepalive: float
) -> AiohttpTransport | None:
    """Connections of aiohttp; None, the HTTP library's, where the environment names a proxy."""
    if open_socket is None and getproxies().keys() & {"http", "https", "all"}:
        return None
    return AiohttpTransport(most=most, keepalive=keepalive, open_socket=open_socket)
