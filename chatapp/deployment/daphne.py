"""Daphne in this process, with limits and an orderly shutdown."""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import socket
from collections.abc import Callable

from channels.routing import get_default_application
from daphne import server as daphne_server  # first of Twisted: it chooses the asyncio reactor
from daphne.ws_protocol import WebSocketFactory, WebSocketProtocol
from twisted.internet import defer, reactor

from chatapp import wiring
from chatapp.deployment import entrance
from chatapp.deployment.proxies import behind

logger = logging.getLogger(__name__)

#: Bytes of one websocket message and of one frame. Commands use HTTP, so a larger one is a mistake
#: or an attack.
WEBSOCKET_MAX_SIZE = 1024 * 1024
#: Seconds from the last byte of an HTTP request to the last of its answer.
HTTP_TIMEOUT = 120
#: Seconds between pings, and until an unanswered ping closes the socket.
PING_INTERVAL = 20
PING_TIMEOUT = 30
#: Seconds for running turns to store their text. Then the process ends, and their leases expire as
#: after a crash.
SHUTDOWN_TIMEOUT = 10
#: Unsent bytes, apart from one message, at which a viewer who does not read is disconnected. The
#: page reconnects and gets the state.
UNSENT_MAX = 1024 * 1024


class PortInUse(Exception):
    """Another process listens on the address already."""


class ViewerProtocol(WebSocketProtocol):  # type: ignore[misc]
    """A socket with a bounded backlog, which may be closed with the codes reserved for servers.

    Autobahn allows applications only 1000 and 3000 to 4999, and raises for 1008, 1011 and 1012, of
    which the last two make the page reconnect. And without a bound, Twisted keeps in memory
    whatever a peer does not read, since no consumer waits for it.
    """

    def serverSend(self, content: str | bytes, binary: bool = False) -> None:
        """Send, or disconnect a peer with too large a backlog."""
        if self.state != self.STATE_OPEN:
            # Closed while the message was made, which is no error; Autobahn would raise.
            return
        if self._unsent() <= UNSENT_MAX:
            super().serverSend(content, binary)
            return
        if not self.transport.disconnecting:
            logger.info("A viewer who does not read is disconnected.")
        # Without a close frame, which would have to wait for the backlog.
        self.transport.abortConnection()

    def _unsent(self) -> int:
        """Unsent bytes that Twisted holds."""
        transport = self.transport
        return len(transport.dataBuffer) - int(transport.offset) + int(transport._tempDataLen)

    def serverClose(self, code: int | None = None) -> None:
        """Close the socket; a second call does nothing."""
        self.sendCloseFrame(code=1000 if code is None else code, isReply=False)


def listen(host: str, port: int) -> socket.socket:
    """A listening IPv4 socket; port 0 takes a free one. Raises PortInUse, or another OSError."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise PortInUse from error
            raise
        listener.listen(1024)
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    return listener


def serve(listener: socket.socket, *, ready: Callable[[], None], proxies: int = 0) -> None:
    """Serve on ``listener`` until SIGTERM or SIGINT; ``ready`` is called once, just before.

    ``proxies``: number of proxies in front, each of which appends to X-Forwarded-For.
    """

    # Held here, since the event loop holds tasks only weakly.
    beginning: list[asyncio.Future[None]] = []

    def announce() -> None:
        # What is loaded now stays, so the garbage collector need not look at it.
        gc.freeze()
        gc.enable()
        beginning.append(asyncio.ensure_future(wiring.start()))
        ready()

    WebSocketFactory.protocol = ViewerProtocol
    daphne_server.HTTPFactory = entrance.Factory
    server = entrance.StreamingServer(
        # Not Daphne's own reading of the header, which trusts the sender's first entry.
        behind(get_default_application(), proxies),
        # Daphne closes the descriptor that it is given.
        endpoints=[f"fd:fileno={listener.detach()}"],
        http_timeout=HTTP_TIMEOUT,
        # Daphne would close a socket with a code after which the page does not reconnect.
        websocket_timeout=-1,
        websocket_max_message_size=WEBSOCKET_MAX_SIZE,
        websocket_max_frame_size=WEBSOCKET_MAX_SIZE,
        ping_interval=PING_INTERVAL,
        ping_timeout=PING_TIMEOUT,
        action_logger=None,
        server_name="palimpsest",
    )
    # Not Daphne's ready_callable, which runs before the signal handlers are installed.
    reactor.callWhenRunning(announce)
    # Twisted's interfaces omit ``self``, so that every argument looks shifted by one.
    reactor.addSystemEventTrigger("before", "shutdown", _shut_down)  # type: ignore[arg-type]
    server.run()


def _shut_down() -> defer.Deferred[None]:
    """Make Twisted wait for the runner; otherwise tasks end without their ``finally``."""
    return defer.Deferred.fromFuture(asyncio.ensure_future(_flush()))


async def _flush() -> None:
    try:
        await asyncio.wait_for(wiring.shutdown(), SHUTDOWN_TIMEOUT)
    except TimeoutError:
        logger.warning("Some turns were still running after %s seconds.", SHUTDOWN_TIMEOUT)
    except Exception:
        # The process ends anyway; without this, nobody would learn why a text is missing.
        logger.exception("The running turns could not be stored.")
