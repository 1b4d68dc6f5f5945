"""HTTP/1.1 as it comes in: bodies handed on while they arrive, and no patience without end.

Answers go out as fast as they are read: an application that sends piece by piece waits for whoever
does not read them, and no answer gathers in memory.

By itself Twisted keeps a whole body, takes the forms in it apart in the event loop, and only then
calls Daphne, which copies all of it into memory at once: 20 MB of ``a=b&`` from anybody froze
everybody for 8 s. Here the application is called as soon as the headers have come. It takes the
body piece by piece while the network waits for it, and refuses what it does not want before that
has been read.
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

# Half of its methods have types, and the others cannot be called from where all have.
_TwistedChannel: Any = HTTPChannel

#: Bytes of a body that may wait for the application before the network is made to wait.
BUFFER_MAX = 256 * 1024
#: Bytes that a refused sender may still send before the connection is reset. Who has sent less
#: than that beyond the refusal reads it; a reset may overtake it.
LINGER_MAX = 4 * 1024 * 1024
#: Key of an ASGI scope's extensions.
_BODY = "palimpsest.body"


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long a connection may wait for its peer. Times in seconds."""

    headers: float = 20.0
    """From the connection, or the first byte of a further request, to the end of the headers: what
    Apache's mod_reqtimeout gives, too."""
    idle: float = 60.0
    """Between two requests. A proxy in front must let go of a connection sooner."""
    window: float = 20.0
    """In which a body must either end, or bring ``window * rate`` bytes."""
    rate: int = 4096
    """Bytes a second. A modem's; 200 MB may take fourteen hours at it, and get through."""
    linger: float = 2.0
    """For reading and dropping what was on its way when a body was refused."""


#: What :func:`chatapp.deployment.daphne.serve` gives the connections.
PATIENCE = Patience()


class Body:
    """A request's body between the network and the application.

    ``whole`` once its last byte has come. ``network`` is Twisted's transport, which is told to
    pause when too much waits; ``invite`` sends 100 Continue, once, if the client waits for it.
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
        """More has come."""
        if self._lost:
            return
        self._came += len(data)
        self._buffer += data
        if len(self._buffer) >= BUFFER_MAX:
            self._paused = self._held_up = True
            self._network.pauseProducing()
        self._news.set()

    def end(self) -> None:
        """All has come."""
        self.whole = True
        self._news.set()

    def lose(self) -> None:
        """Nothing more comes, or nobody wants it."""
        self._lost = True
        self._buffer.clear()
        self._news.set()

    def kept_up(self, least: int) -> bool:
        """Whether ``least`` bytes came since this was last asked, or it was not for the peer."""
        good = self._held_up or self._came >= least
        self._came, self._held_up = 0, self._paused
        return good

    async def receive(self, after: Callable[[], Any]) -> dict[str, Any]:
        """The next ASGI message of the body; ``after`` it is whole, those of Daphne."""
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


class _Elsewhere:
    """In place of the file of a body that is not kept in one. Daphne reads nothing of it."""

    closed = True

    def seek(self, *where: int) -> None:
        """There is nowhere to go."""

    def close(self) -> None:
        """It never was open."""


class Request(WebRequest):  # type: ignore[misc]
    """A request whose application is called when its headers have come."""

    body: Body | None = None
    """None where none comes: that is Daphne's own way."""
    awaits_invitation = False

    def gotLength(self, length: int | None) -> None:
        """The headers are whole; ``length`` is what they say of the body, None for chunks."""
        if length == 0:
            super().gotLength(length)
            return
        # A server may ignore the wish for another protocol (RFC 9110, section 7.8). A websocket
        # begins with no body.
        self.requestHeaders.removeHeader(b"Upgrade")
        channel = self.channel
        self.method, self.uri = channel._command, channel._path
        self.clientproto = channel._version
        self.path = self.uri.partition(b"?")[0]
        self.content = _Elsewhere()
        self.body = Body(channel._networkProducer, self._invite)
        self.process()

    def _invite(self) -> None:
        if self.awaits_invitation and not self._response_started and not self._disconnected:
            self.channel.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        self.awaits_invitation = False

    def handleContentChunk(self, data: bytes) -> None:
        """A piece of the body has come."""
        if self.body is not None:
            # The time to answer is counted from here.
            self.request_start = time.time()
            self.body.add(data)

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:
        """The whole request has come."""
        if self.body is None:
            super().requestReceived(command, path, version)
        else:
            self.body.end()

    @property
    def is_half_read(self) -> bool:
        """Whether some of the body is still to come."""
        return self.body is not None and not self.body.whole

    def handle_reply(self, message: dict[str, Any]) -> None:
        """An ASGI message of the application; an answer before the body's end is the last one."""
        starts = message.get("type") == "http.response.start"
        if starts and not self.finished and self.channel is not None and self.is_half_read:
            message["headers"] = [*message.get("headers", ()), (b"Connection", b"close")]
            self.channel.persistent = False
        super().handle_reply(message)

    async def until_writable(self) -> None:
        """Return when the peer has taken most of what was sent, or is gone."""
        channel = self.channel
        while channel is not None and not self.finished and not channel.writable.is_set():
            await channel.writable.wait()
            # The time to answer is counted from here: the peer took its own until now.
            self.request_start = time.time()

    def check_timeouts(self) -> None:
        """Cut an answer that stands still: ended in order, half of it would pass for all."""
        late = self.duration() > self.server.http_timeout
        if late and self._response_started and not self.finished and self.channel is not None:
            logger.warning("An answer is cut off: it made no progress for %g s.", self.duration())
            self.channel.forceAbortClient()
        else:
            super().check_timeouts()

    def finish(self) -> None:
        """The answer is complete."""
        if self.body is not None:
            self.body.lose()
        super().finish()

    def connectionLost(self, reason: Failure) -> None:
        """The peer is gone."""
        if self.body is not None:
            self.body.lose()
        super().connectionLost(reason)


class Channel(_TwistedChannel):  # type: ignore[misc]
    """One connection, which ends when its peer takes too long."""

    patience = Patience()
    _deadline: Any = None
    _idle = False
    _dropped: int | None = None
    """Bytes read after a body was refused; None before."""

    def __init__(self) -> None:
        super().__init__()
        self.writable = asyncio.Event()
        # While the network takes what is written; Twisted has said otherwise at 64 kB unsent.
        self.writable.set()

    def pauseProducing(self) -> None:
        """The network takes no more for now."""
        self.writable.clear()
        super().pauseProducing()

    def resumeProducing(self) -> None:
        """It has taken what there was."""
        super().resumeProducing()
        self.writable.set()

    def connectionMade(self) -> None:
        """Nothing has come yet, and it must not take long."""
        super().connectionMade()
        self._within(self.patience.headers, self.timeoutConnection)

    def dataReceived(self, data: bytes) -> None:
        """Bytes, of a request or of what was refused."""
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
        """What follows is a body, or nothing."""
        self._within(self.patience.window, self._look_at_body)
        super().allHeadersReceived()

    def allContentReceived(self) -> None:
        """The peer waits for us now."""
        self._stop_waiting()
        super().allContentReceived()

    def requestDone(self, request: Request) -> None:
        """An answer is complete: go on with the next request, or end."""
        if request.is_half_read:
            self._linger()
            return
        self._idle = True
        self._within(self.patience.idle, self._look_at_idle)
        super().requestDone(request)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """The connection is gone."""
        self._stop_waiting()
        self.writable.set()
        super().connectionLost(reason)

    def _send100Continue(self) -> None:
        """Called when a client asks whether to send its body: the application knows."""
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
        """End a connection that is not used. Who still reads an answer uses it."""
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
        """Send what was answered, and drop what comes meanwhile.

        A socket that is closed with unread bytes is reset, and a reset overtakes the answer.
        """
        self.requests.clear()
        self._dropped = 0
        self._networkProducer.unregisterProducer()
        self.transport.loseWriteConnection()
        self._networkProducer.resumeProducing()
        self._within(self.patience.linger, self.forceAbortClient)


def _unsent(transport: Any) -> int:
    """Bytes that Twisted holds because the kernel takes no more."""
    return len(transport.dataBuffer) - int(transport.offset) + int(transport._tempDataLen)


class Factory(HTTPFactory):  # type: ignore[misc]
    """Makes the connections of a server."""

    protocol = Channel

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        # Twisted's own deadline begins anew with each byte, a dripping one too.
        self.timeOut = None

    def buildProtocol(self, addr: Any) -> Channel | None:
        """A new connection."""
        channel: Channel | None = super().buildProtocol(addr)
        if channel is not None:
            channel.requestFactory = Request
            channel.patience = PATIENCE
        return channel


class StreamingServer(Server):  # type: ignore[misc]
    """Daphne, whose applications read a body while it comes."""

    def __init__(self, application: Callable[..., Any], **options: Any) -> None:
        super().__init__(_reading(application), **options)

    def create_application(self, protocol: Any, scope: dict[str, Any]) -> Any:
        """Called for each request and each socket."""
        if isinstance(protocol, Request) and protocol.body is not None:
            scope["extensions"] = {_BODY: protocol.body}
        return super().create_application(protocol, scope)

    async def handle_reply(self, protocol: Any, message: dict[str, Any]) -> None:
        """Called with each ASGI message of an application, which waits for its return."""
        await super().handle_reply(protocol, message)
        if isinstance(protocol, Request) and message.get("more_body"):
            await protocol.until_writable()


def _reading(application: Callable[..., Any]) -> Callable[..., Any]:
    """The application with its ``receive`` reading from the request's body, where there is one."""

    async def called(scope: dict[str, Any], receive: Any, send: Any) -> None:
        body = scope.get("extensions", {}).pop(_BODY, None)

        async def from_body() -> dict[str, Any]:
            assert isinstance(body, Body)
            return await body.receive(receive)

        await application(scope, receive if body is None else from_body, send)

    return called
