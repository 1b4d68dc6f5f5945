"""HTTP/1.1 straight on asyncio: connections that are kept, bodies that come as they arrive.

A reply is hundreds of tiny pieces. The HTTP library takes each through six layers, which costs
three times as much as reading, decoding, rendering and showing it; here a piece is appended to a
buffer, and whoever reads takes all that has come. What the library does well stays its own: URLs,
headers, authentication, certificates, and every exception.

The syntax of messages follows RFC 9112; what it does not allow is refused, not guessed at.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections import defaultdict
from collections.abc import AsyncIterator, Callable

import httpx2

#: Bytes of a status line with its headers; no server sends a tenth of it.
MAX_HEAD = 64 * 1024
#: Bytes that wait to be read before the server is made to wait.
MAX_BUFFER = 256 * 1024
#: Bytes of the line that begins a chunk, extensions included, and of a trailer's.
MAX_LINE = 4096
#: Answers like 100 Continue before the one that counts.
MAX_INTERIM = 16

_STATUS = re.compile(rb"HTTP/1\.[01] ([0-9]{3})(?: |$)")
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(rb"(?:[^\x00-\x20\x7f](?:[^\x00-\x08\x0a-\x1f\x7f]*[^\x00-\x20\x7f])?)?")
_SIZE = re.compile(rb"[0-9a-fA-F]{1,15}")
_LENGTH = re.compile(rb"[0-9]{1,15}")

Headers = list[tuple[bytes, bytes]]
Key = tuple[str, str, int]


class Connection(asyncio.Protocol):
    """One connection: bytes in a buffer, and a way to wait for more of them."""

    def __init__(self) -> None:
        self.buffer = bytearray()
        self.lost = False
        self.transport: asyncio.Transport
        self._error: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._paused = False
        self.when_lost: Callable[[Connection], None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Called by asyncio."""
        self.buffer += data
        if len(self.buffer) >= MAX_BUFFER and not self._paused:
            self._paused = True
            self.transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        """Called by asyncio; the connection is closed, since nothing more can come."""

    def connection_lost(self, error: Exception | None) -> None:
        """Called by asyncio."""
        self.lost, self._error = True, error
        self._wake()
        if self.when_lost is not None:
            self.when_lost(self)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def more(self) -> bool:
        """Wait for bytes beyond those in the buffer; False when the server has closed.

        Raises httpx2.ReadError when the connection broke.
        """
        if not self.lost:
            if self._paused:
                self._paused = False
                self.transport.resume_reading()
            had = len(self.buffer)
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
            if len(self.buffer) > had:
                return True
        if self._error is not None:
            raise httpx2.ReadError("The connection broke.") from self._error
        return False


class DirectTransport(httpx2.AsyncBaseTransport):
    """Requests over connections of its own, each for one request at a time.

    ``most`` connections are open at once, of which idle ones are kept ``keepalive`` seconds.
    """

    def __init__(self, *, most: int, keepalive: float) -> None:
        self._most = most
        self._keepalive = keepalive
        self._open: set[Connection] = set()
        self._connecting: set[asyncio.Task[Connection]] = set()
        self._idle: defaultdict[Key, list[tuple[float, Connection]]] = defaultdict(list)
        self._context: ssl.SSLContext | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request and return once the head of its answer has come.

        Raises httpx2.TransportError: LocalProtocolError for what cannot be sent, ConnectError,
        ConnectTimeout, PoolTimeout, ReadError, and RemoteProtocolError for what is not HTTP.
        """
        message = _message(request, b"".join([part async for part in _parts(request)]))
        key = _key(request)
        seconds = request.extensions.get("timeout", {}).get("connect")
        connection = self._kept(key) or await self._connect(key, seconds)
        try:
            connection.transport.write(message)
            status, headers = await _head(connection)
            body = _Body(connection, request.method, status, headers, self._release(key))
        except BaseException:
            connection.transport.abort()
            raise
        return httpx2.Response(status, headers=headers, stream=body)

    async def aclose(self) -> None:
        """Close every connection, those with a request too."""
        if self._connecting:
            await asyncio.wait(self._connecting)
        for connection in tuple(self._open):
            connection.transport.abort()
        self._idle.clear()
        # An aborted transport closes its socket in the loop's next round, which may be the last.
        await asyncio.sleep(0)

    def _kept(self, key: Key) -> Connection | None:
        """A connection that waits for a request; old ones are closed on the way."""
        now = asyncio.get_running_loop().time()
        kept = self._idle[key]
        while kept:
            until, connection = kept.pop()
            if not connection.lost and not connection.buffer and now < until:
                return connection
            connection.transport.abort()
        return None

    def _release(self, key: Key) -> Callable[[Connection], None]:
        def release(connection: Connection) -> None:
            until = asyncio.get_running_loop().time() + self._keepalive
            self._idle[key].append((until, connection))

        return release

    def _forget(self, connection: Connection) -> None:
        self._open.discard(connection)
        for kept in self._idle.values():
            kept[:] = [one for one in kept if one[1] is not connection]

    async def _connect(self, key: Key, seconds: float | None) -> Connection:
        if len(self._open) + len(self._connecting) >= self._most:
            raise httpx2.PoolTimeout("All connections are in use.")
        connecting = asyncio.create_task(self._made(key, seconds))
        self._connecting.add(connecting)
        connecting.add_done_callback(self._connecting.discard)
        try:
            # A socket is lost, and stays open, if asyncio is cancelled while it chooses among
            # the addresses of a host.
            return await asyncio.shield(connecting)
        except asyncio.CancelledError:
            connecting.add_done_callback(_unwanted)
            raise

    async def _made(self, key: Key, seconds: float | None) -> Connection:
        """A new connection. Raises ConnectTimeout, ConnectError."""
        scheme, host, port = key
        secured = scheme == "https"
        if secured and self._context is None:
            self._context = await asyncio.to_thread(httpx2.create_ssl_context)
            self._context.set_alpn_protocols(["http/1.1"])
        try:
            async with asyncio.timeout(seconds):
                _, connection = await asyncio.get_running_loop().create_connection(
                    Connection,
                    host,
                    port,
                    ssl=self._context if secured else None,
                    happy_eyeballs_delay=0.25,
                )
        except TimeoutError as error:
            raise httpx2.ConnectTimeout("No connection in time.") from error
        except (OSError, UnicodeError) as error:
            raise httpx2.ConnectError("No connection.") from error
        if not connection.lost:
            self._open.add(connection)
            connection.when_lost = self._forget
        return connection


def _unwanted(connecting: asyncio.Task[Connection]) -> None:
    """Close a connection that came after nobody waited for it any more."""
    if not connecting.cancelled() and connecting.exception() is None:
        connecting.result().transport.abort()


def _key(request: httpx2.Request) -> Key:
    """Where a request goes. Raises UnsupportedProtocol."""
    url = request.url
    if url.scheme not in {"http", "https"} or not url.host:
        raise httpx2.UnsupportedProtocol("An address begins with http:// or https://.")
    port = url.port or (443 if url.scheme == "https" else 80)
    return url.scheme, url.raw_host.decode("ascii"), port


def _parts(request: httpx2.Request) -> AsyncIterator[bytes]:
    assert isinstance(request.stream, httpx2.AsyncByteStream)
    return aiter(request.stream)


def _message(request: httpx2.Request, body: bytes) -> bytes:
    """A request as it is sent. Raises LocalProtocolError for headers that would break it."""
    lines = [b"%b %b HTTP/1.1\r\n" % (request.method.encode("ascii"), request.url.raw_path)]
    for name, value in request.headers.raw:
        if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
            raise httpx2.LocalProtocolError("A header holds characters that cannot be sent.")
        lines.append(b"%b: %b\r\n" % (name, value))
    return b"".join([*lines, b"\r\n", body])


async def _head(connection: Connection) -> tuple[int, Headers]:
    """Status and headers of the answer. Raises RemoteProtocolError for what is none."""
    for _ in range(MAX_INTERIM + 1):
        while (found := re.search(rb"\r?\n\r?\n", connection.buffer)) is None:
            if len(connection.buffer) > MAX_HEAD or not await connection.more():
                raise httpx2.RemoteProtocolError("The server did not answer in HTTP.")
        status_line, *lines = re.split(rb"\r?\n", bytes(connection.buffer[: found.start()]))
        del connection.buffer[: found.end()]
        status = _STATUS.match(status_line)
        if status is None:
            raise httpx2.RemoteProtocolError("The server did not answer in HTTP.")
        # 100 Continue and its like come before the answer.
        if status[1][0] != ord("1"):
            return int(status[1]), [_header(line) for line in lines]
    raise httpx2.RemoteProtocolError("The server only announced an answer.")


def _header(line: bytes) -> tuple[bytes, bytes]:
    name, _, value = line.partition(b":")
    value = value.strip(b" \t")
    if not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
        raise httpx2.RemoteProtocolError("The server sent a header that is none.")
    return name, value


class _Body(httpx2.AsyncByteStream):
    """The body of one answer. Read to its end, its connection serves the next request."""

    def __init__(
        self,
        connection: Connection,
        method: str,
        status: int,
        headers: Headers,
        release: Callable[[Connection], None],
    ) -> None:
        named: defaultdict[bytes, list[bytes]] = defaultdict(list)
        for name, value in headers:
            named[name.lower()].append(value)
        self._connection = connection
        self._release = release
        self._keep = not any(b"close" in value.lower() for value in named[b"connection"])
        self._ended = False
        self._chunked = bool(named[b"transfer-encoding"])
        self._left: int | None = None
        # Bytes of a body of known length that are still to come.
        if self._chunked and [value.lower() for value in named[b"transfer-encoding"]] != [
            b"chunked"
        ]:
            raise httpx2.RemoteProtocolError("The body is encoded in an unknown way.")
        if method == "HEAD" or status in {204, 304}:
            self._chunked, self._left = False, 0
        elif named[b"content-length"] and not self._chunked:
            lengths = set(named[b"content-length"])
            if len(lengths) > 1 or not _LENGTH.fullmatch(next(iter(lengths))):
                raise httpx2.RemoteProtocolError("The body's length is not a number.")
            self._left = int(next(iter(lengths)))

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pieces = self._chunks() if self._chunked else self._plain()
        async for piece in pieces:
            yield piece
        self._ended = True

    async def aclose(self) -> None:
        """Keep the connection if the body was read whole, else close it."""
        connection = self._connection
        if self._ended and self._keep and not connection.lost and not connection.buffer:
            self._release(connection)
        else:
            connection.transport.abort()

    async def _plain(self) -> AsyncIterator[bytes]:
        buffer = self._connection.buffer
        while self._left is None or self._left:
            if not buffer and not await self._connection.more():
                if self._left:
                    raise httpx2.RemoteProtocolError("The body was cut.")
                self._keep = False
                return
            piece = bytes(buffer if self._left is None else buffer[: self._left])
            del buffer[: len(piece)]
            if self._left is not None:
                self._left -= len(piece)
            yield piece

    async def _chunks(self) -> AsyncIterator[bytes]:
        decoder = ChunkDecoder()
        while True:
            # All that has come, as one piece; more may have come while that was looked at.
            if piece := decoder.take(self._connection.buffer):
                yield piece
            elif decoder.done:
                return
            elif not await self._connection.more():
                raise httpx2.RemoteProtocolError("The body was cut.")


class ChunkDecoder:
    """A body in chunks, RFC 9112 section 7.1. ``done`` once its last line has come."""

    def __init__(self) -> None:
        self.done = False
        self._left = 0
        # Bytes of the chunk that are still to come.
        self._trailer = 0
        # Bytes of the lines after the last chunk.
        self._part = "size"
        # What comes next: size, data, end (the line end after data), trailer.

    def take(self, buffer: bytearray) -> bytes:
        """Remove what can be decoded from ``buffer``; the bytes of the body in it.

        Raises RemoteProtocolError.
        """
        pieces: list[bytes] = []
        position = 0
        while not self.done:
            if self._part == "data":
                piece = bytes(buffer[position : position + self._left])
                if not piece:
                    break
                pieces.append(piece)
                position += len(piece)
                self._left -= len(piece)
                if not self._left:
                    self._part = "end"
                continue
            end = buffer.find(b"\n", position, position + MAX_LINE)
            if end < 0:
                if len(buffer) - position >= MAX_LINE:
                    raise httpx2.RemoteProtocolError("A line of a chunk is too long.")
                break
            self._take_line(bytes(buffer[position:end]).removesuffix(b"\r"))
            position = end + 1
        del buffer[:position]
        return b"".join(pieces)

    def _take_line(self, line: bytes) -> None:
        if self._part == "trailer":
            self.done = not line
            self._trailer += len(line) + 1
            if self._trailer > MAX_HEAD:
                raise httpx2.RemoteProtocolError("The body's end is too long.")
        elif self._part == "end":
            if line:
                raise httpx2.RemoteProtocolError("A chunk is longer than it said.")
            self._part = "size"
        else:
            size = line.partition(b";")[0].strip(b" \t")
            if not _SIZE.fullmatch(size):
                raise httpx2.RemoteProtocolError("A chunk's size is not a number.")
            self._left = int(size, 16)
            self._part = "data" if self._left else "trailer"
