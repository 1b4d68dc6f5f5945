"""The event loop of a process that serves: uvloop's, below Twisted's reactor."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from types import ModuleType

# What Twisted and Autobahn import and nothing here uses: TLS, which a proxy in front speaks; a
# terminal's colours; WAMP, another protocol over websockets. That is 16 MB. A module is replaced by
# one with these classes, which is all that others ask of it as they are imported; None: by none, as
# if it was not installed.
_UNUSED: dict[str, Sequence[str] | None] = {
    "OpenSSL": None,
    "click": None,
    "autobahn.twisted.wamp": ["ApplicationSession"],
    "autobahn.wamp.auth": [],
    "autobahn.wamp.message": ["Message", "Welcome"],
    "autobahn.wamp.websocket": [
        "WampWebSocketClientFactory",
        "WampWebSocketClientProtocol",
        "WampWebSocketServerFactory",
        "WampWebSocketServerProtocol",
    ],
}


def install() -> None:
    """Install the reactor, and load Daphne on it. Call it before anything else imports Twisted."""
    with ExitStack() as absent:
        for name, needed in _UNUSED.items():
            absent.enter_context(_without(name, needed))
        from twisted.internet import asyncioreactor

        # There is none for Windows; Daphne installs a reactor on asyncio's own loop then.
        if sys.platform != "win32":
            import uvloop

            asyncioreactor.install(uvloop.new_event_loop())  # type: ignore[no-untyped-call]
        import daphne.server  # noqa: F401


@contextmanager
def _without(name: str, needed: Sequence[str] | None) -> Iterator[None]:
    """Meanwhile, have a module with these classes alone imported in place of ``name``."""
    if name in sys.modules:
        yield
        return
    module = None if needed is None else ModuleType(name)
    for one in needed or ():
        setattr(module, one, type(one, (), {}))
    sys.modules[name] = module  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[name]
