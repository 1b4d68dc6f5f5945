"""The HTTP/1.1 server: bodies are passed on as they arrive, and every wait is limited.

An application that sends its answer in pieces waits for a peer that does not read, so that no
answer piles up in memory.

By itself, Twisted stores a whole body, parses forms in the event loop, and only then calls Daphne,
which copies the body into memory: 20 MB of ``a=b&`` from anybody blocked everybody for 8 s. Here
the application is called once the headers have arrived. It reads the body in pieces while the
network waits, and can refuse it before it is read.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from daphne.http_protocol import HTTPFactory, WebRequest
from daphne.server import Server
from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure
from twisted.web.http import HTTPChannel

logger = logging.getLogger(__name__)

# Some of its methods have types and some have none, which mypy refuses to call.
_TwistedChannel: Any = HTTPChannel

#: Bytes of a body that may wait for the application before reading from the network pauses.
BUFFER_MAX = 256 * 1024
#: Bytes that a refused sender may still send before the connection is reset. A sender with fewer
#: bytes on the way can read the refusal; for others the reset may come first.
LINGER_MAX = 4 * 1024 * 1024
#: Key of an ASGI scope's extensions.
_BODY = "palimpsest.body"


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """The time limits of a connection, in seconds."""

    headers: float = 20.0
    """From the connection, or the first byte of a further request, to the end of the headers; the
    same as Apache's mod_reqtimeout allows."""
    idle: float = 60.0
    """Between two requests. A proxy in front must close idle connections sooner."""
    window: float = 20.0
    """Within this time a body must end or bring ``window * rate`` bytes."""
    rate: int = 4096
    """Bytes per second: a modem's speed, at which 200 MB take fourteen hours."""
    linger: float = 2.0
    """For reading and dropping the rest of a refused body."""


#: The limits that :func:`chatapp.deployment.daphne.serve` sets.
PATIENCE = Patience()


class Body:
    """A request's body on its way from the network to the application.

    ``whole`` is set once its last byte has arrived. ``network`` is Twisted's transport, which is
    paused when too much waits. ``invite`` sends 100 Continue, once, if the client waits for it.
    """

    def __init__(self, network: Any, invite: Callable[[], None]) -> None:
        self.whole = False
        self._network = network
        self._invite = invite
        self._buffer = bytearray()
        self._came = 0
        self._paused = self._held_up = False
        self._lost = self._told = False
        self._news = asyncio.Event()

    def add(self, data: bytes) -> None:
        """Add bytes that have arrived."""
        if self._lost:
            return
        self._came += len(data)
        self._buffer += data
        if len(self._buffer) >= BUFFER_MAX:
            self._paused = self._held_up = True
            self._network.pauseProducing()
        self._news.set()

    def end(self) -> None:
        """Note that the body is complete."""
        self.whole = True
        self._news.set()

    def lose(self) -> None:
        """Note that no more bytes come, or that nobody wants them."""
        self._lost = True
        self._buffer.clear()
        self._news.set()

    def kept_up(self, least: int) -> bool:
        """Whether ``least`` bytes came since the last call, or the peer was not to blame."""
        good = self._held_up or self._came >= least
        self._came, self._held_up = 0, self._paused
        return good

    async def receive(self, after: Callable[[], Any]) -> dict[str, Any]:
        """The next ASGI message of the body; ``after`` the last one, Daphne's own messages."""
        if self._told:
            return cast(dict[str, Any], await after())
        self._invite()
        while not (self._buffer or self.whole or self._lost):
            self._news.clear()
            await self._news.wait()
        if self._lost:
            return {"type": "http.disconnect"}
        data = bytes(self._buffer)
        self._buffer.clear()
        self._told = self.whole
        if self._paused:
            self._paused = False
            self._network.resumeProducing()
        return {"type": "http.request", "body": data, "more_body": not self._told}


class _UnusedFile:
    """A stand-in for the file that Daphne would read a body from, and does not here."""

    closed = True

    def seek(self, *where: int) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class Request(WebRequest):  # type: ignore[misc]
    """A request whose application is called once its headers have arrived."""

    body: Body | None = None
    """None if there is no body; then Daphne handles the request as usual."""
    awaits_invitation = False

    def gotLength(self, length: int | None) -> None:
        """Handle the end of the headers; ``length`` is the body's, None for chunks."""
        if length == 0:
            super().gotLength(length)
            return
        # A server may ignore a request to change the protocol (RFC 9110, section 7.8); that for a
        # websocket has no body.
        self.requestHeaders.removeHeader(b"Upgrade")
        channel = self.channel
        self.method, self.uri = channel._command, channel._path
        self.clientproto = channel._version
        self.path = self.uri.partition(b"?")[0]
        self.content = _UnusedFile()
        self.body = Body(channel._networkProducer, self._invite)
        self.process()

    def _invite(self) -> None:
        if self.awaits_invitation and not self._response_started and not self._disconnected:
            self.channel.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self.awaits_invitation = False

    def handleContentChunk(self, data: bytes) -> None:
        """Handle a piece of the body."""
        if self.body is not None:
            # The time to answer counts from the last piece.
            self.request_start = time.time()
            self.body.add(data)

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:
        """Handle the end of the request."""
        if self.body is None:
            super().requestReceived(command, path, version)
        else:
            self.body.end()

    @property
    def is_half_read(self) -> bool:
        """Whether a part of the body is still to come."""
        return self.body is not None and not self.body.whole

    def handle_reply(self, message: dict[str, Any]) -> None:
        """Send an ASGI message; an answer before the end of the body closes the connection."""
        starts = message.get("type") == "http.response.start"
        if starts and not self.finished and self.channel is not None and self.is_half_read:
            message["headers"] = [*message.get("headers", ()), (b"Connection", b"close")]
            self.channel.persistent = False
        super().handle_reply(message)

    async def until_writable(self) -> None:
        """Wait until the peer has read most of what was sent, or is gone."""
        channel = self.channel
        while channel is not None and not self.finished and not channel.writable.is_set():
            await channel.writable.wait()
            # The time to answer counts from here; before, the peer was to blame.
            self.request_start = time.time()

    def check_timeouts(self) -> None:
        """Abort an answer that stands still; ending it in order would make it look complete."""
        late = self.duration() > self.server.http_timeout
        if late and self._response_started and not self.finished and self.channel is not None:
            logger.warning("An answer is cut off: it made no progress for %g s.", self.duration())
            self.channel.forceAbortClient()
        else:
            super().check_timeouts()

    def finish(self) -> None:
        """Handle the end of the answer."""
        if self.body is not None:
            self.body.lose()
        super().finish()

    def connectionLost(self, reason: Failure) -> None:
        """Handle the loss of the connection."""
        if self.body is not None:
            self.body.lose()
        super().connectionLost(reason)


class Channel(_TwistedChannel):  # type: ignore[misc]
    """A connection with time limits for its peer."""

    patience = Patience()
    _deadline: Any = None
    _idle = False
    _dropped: int | None = None
    """Bytes read after a body was refused; None before."""

    def __init__(self) -> None:
        super().__init__()
        self.writable = asyncio.Event()
        # Set while the network accepts data; Twisted clears it when 64 kB are unsent.
        self.writable.set()

    def pauseProducing(self) -> None:
        """Pause: the network accepts no more for now."""
        self.writable.clear()
        super().pauseProducing()

    def resumeProducing(self) -> None:
        """Go on: the network accepts data again."""
        super().resumeProducing()
        self.writable.set()

    def connectionMade(self) -> None:
        """Begin to wait for the first headers."""
        super().connectionMade()
        self._within(self.patience.headers, self.timeoutConnection)

    def dataReceived(self, data: bytes) -> None:
        """Handle received bytes, of a request or of a refused body."""
        if self._dropped is not None:
            self._dropped += len(data)
            if self._dropped > LINGER_MAX:
                self.forceAbortClient()
            return
        if self._idle:
            self._idle = False
            self._within(self.patience.headers, self.timeoutConnection)
        super().dataReceived(data)

    def allHeadersReceived(self) -> None:
        """Begin to wait for the body, if there is one."""
        self._within(self.patience.window, self._look_at_body)
        super().allHeadersReceived()

    def allContentReceived(self) -> None:
        """Stop waiting for the peer, which now waits for the answer."""
        self._stop_waiting()
        super().allContentReceived()

    def requestDone(self, request: Request) -> None:
        """Handle the end of an answer: go on with the next request, or close."""
        if request.is_half_read:
            self._linger()
            return
        self._idle = True
        self._within(self.patience.idle, self._look_at_idle)
        super().requestDone(request)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Handle the loss of the connection."""
        self._stop_waiting()
        self.writable.set()
        super().connectionLost(reason)

    def _send100Continue(self) -> None:
        """Leave 100 Continue to the application, which decides whether it wants the body."""
        if self.requests:
            self.requests[-1].awaits_invitation = True

    def _within(self, seconds: float, otherwise: Callable[[], object]) -> None:
        self._stop_waiting()
        self._deadline = self.callLater(seconds, otherwise)

    def _stop_waiting(self) -> None:
        if self._deadline is not None and self._deadline.active():
            self._deadline.cancel()
        self._deadline = None

    def _look_at_body(self) -> None:
        body = self.requests[-1].body if self.requests else None
        if body is not None and body.kept_up(int(self.patience.window * self.patience.rate)):
            self._within(self.patience.window, self._look_at_body)
        else:
            self.timeoutConnection()

    def _look_at_idle(self) -> None:
        """Close an idle connection. One whose peer still reads an answer is not idle."""
        unsent = _unsent(self.transport)
        if not unsent:
            self.timeoutConnection()
            return

        def has_read() -> None:
            if _unsent(self.transport) < unsent:
                self._look_at_idle()
            else:
                self.transport.abortConnection()

        self._within(self.patience.idle, has_read)

    def _linger(self) -> None:
        """Send the answer, and drop what still arrives.

        Closing a socket with unread bytes resets it, and the reset may overtake the answer.
        """
        self.requests.clear()
        self._dropped = 0
        self._networkProducer.unregisterProducer()
        self.transport.loseWriteConnection()
        self._networkProducer.resumeProducing()
        self._within(self.patience.linger, self.forceAbortClient)


def _unsent(transport: Any) -> int:
    """Unsent bytes that Twisted holds."""
    return len(transport.dataBuffer) - int(transport.offset) + int(transport._tempDataLen)


class Factory(HTTPFactory):  # type: ignore[misc]
    """Makes the server's connections."""

    protocol = Channel

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        # Twisted's own limit restarts with each byte, so that a slow drip never ends.
        self.timeOut = None

    def buildProtocol(self, addr: Any) -> Channel | None:
        """A new connection."""
        channel: Channel | None = super().buildProtocol(addr)
        if channel is not None:
            channel.requestFactory = Request
            channel.patience = PATIENCE
        return channel


class StreamingServer(Server):  # type: ignore[misc]
    """Daphne with applications that read a body while it arrives."""

    def __init__(self, application: Callable[..., Any], **options: Any) -> None:
        super().__init__(_reading(application), **options)

    def create_application(self, protocol: Any, scope: dict[str, Any]) -> Any:
        """Called for each request and each socket."""
        if isinstance(protocol, Request) and protocol.body is not None:
            scope["extensions"] = {_BODY: protocol.body}
        return super().create_application(protocol, scope)

    async def handle_reply(self, protocol: Any, message: dict[str, Any]) -> None:
        """Called with each ASGI message of an application, which waits until this returns."""
        await super().handle_reply(protocol, message)
        if isinstance(protocol, Request) and message.get("more_body"):
            await protocol.until_writable()


def _reading(application: Callable[..., Any]) -> Callable[..., Any]:
    """The application with a ``receive`` that reads from the request's body, if there is one."""

    async def called(scope: dict[str, Any], receive: Any, send: Any) -> None:
        body = scope.get("extensions", {}).pop(_BODY, None)

        async def from_body() -> dict[str, Any]:
            assert isinstance(body, Body)
            return await body.receive(receive)

        await application(scope, receive if body is None else from_body, send)

    return called
