"""The event loop of a process that serves: uvloop's, below Twisted's reactor."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType


def install() -> None:
    """Install the reactor, and load Daphne on it. Call it before anything else imports Twisted."""
    with _without("OpenSSL", None), _without("autobahn.wamp.auth", ModuleType("auth")):
        from twisted.internet import asyncioreactor

        # There is none for Windows; Daphne installs a reactor on asyncio's own loop then.
        if sys.platform != "win32":
            import uvloop

            asyncioreactor.install(uvloop.new_event_loop())  # type: ignore[no-untyped-call]
        import daphne.server  # noqa: F401


@contextmanager
def _without(name: str, found: ModuleType | None) -> Iterator[None]:
    """Have ``found`` imported in place of a module; None: as if it was not installed.

    Twisted would load TLS, which a proxy in front speaks, never this process; and Autobahn how
    one signs in to a router of WAMP, another protocol over websockets. That is 13 MB.
    """
    if name in sys.modules:
        yield
        return
    sys.modules[name] = found  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[name]
