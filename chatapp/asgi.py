"""The ASGI application: pages, static files, websockets, startup and shutdown of the process."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, MutableMapping
from typing import IO, Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "chatapp.settings")

from django.core.asgi import get_asgi_application

django_application: Any = get_asgi_application()

# These import models, so Django must be set up first.
from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import WebsocketDenier
from django.conf import settings
from django.urls import path, re_path
from whitenoise import WhiteNoise

from chatapp import wiring
from chatapp.consumers import ConversationConsumer
from chatapp.deployment import body_limits
from chatapp.deployment.disconnects import disconnected
from chatapp.middleware import call_hooks_inline
from compression.fair_threads import on_behalf_of

call_hooks_inline(django_application)
django_application.request_class = body_limits.MeasuredRequest
django_application.listen_for_disconnect = disconnected
http_application = body_limits.bounded(django_application)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

_HASHED = re.compile(r"\.[0-9a-f]{12}\.\w+$")


_STATIC_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; style-src 'self'",
    "Referrer-Policy": "same-origin",
}
_NO_SUCH_FILE = {
    **_STATIC_HEADERS,
    "Content-Type": "text/plain; charset=utf-8",
    "Cache-Control": "no-store",
}


def _static_headers(headers: Any, path: str, url: str) -> None:
    for name, value in _STATIC_HEADERS.items():
        headers[name] = value


_files = WhiteNoise(
    None,
    # If nothing is collected, as in most tests, there is nothing to serve.
    root=str(settings.STATIC_ROOT) if settings.STATIC_ROOT.is_dir() else None,
    prefix=settings.STATIC_URL,
    immutable_file_test=lambda path, url: bool(_HASHED.search(url)),
    add_headers_function=_static_headers,
)


async def static_application(scope: Scope, receive: Receive, send: Send) -> None:
    """Static files, hashed and compressed, with ranges and conditional requests.

    WhiteNoise answers as it does in Django's middleware. asgiref's adapter for WSGI cannot be used:
    it leaves its executor in the context of Daphne's connection, and the next request on that
    connection fails.
    """
    found = _files.files.get(scope["path"])
    if found is None or scope["method"] not in {"GET", "HEAD"}:
        headers = [(name.encode(), value.encode()) for name, value in _NO_SUCH_FILE.items()]
        await send({"type": "http.response.start", "status": 404, "headers": headers})
        await send({"type": "http.response.body", "body": b"There is no such file."})
        return
    environment = {
        "HTTP_" + name.decode("latin-1").upper().replace("-", "_"): value.decode("latin-1")
        for name, value in scope["headers"]
    }
    response = found.get_response(scope["method"], environment)
    body = b"" if response.file is None else await asyncio.to_thread(_read, response.file)
    headers = [(name.encode(), value.encode("latin-1")) for name, value in response.headers]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _read(file: IO[bytes]) -> bytes:
    with file:
        return file.read()


def same_origin(application: Application, allowed: list[str]) -> Application:
    """Refuse with 403 every handshake whose Origin is not exactly one of ``allowed``.

    Comparing whole origins covers scheme, host and port, and parses nothing that an attacker
    wrote.
    """
    known = {origin.rstrip("/").lower().encode() for origin in allowed}
    denier = WebsocketDenier.as_asgi()

    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        origins = [value for name, value in scope["headers"] if name.lower() == b"origin"]
        if len(origins) == 1 and origins[0].lower() in known:
            await application(scope, receive, send)
        else:
            await denier(scope, receive, send)

    return checked


async def _http(scope: Scope, receive: Receive, send: Send) -> None:
    # Until the session's person is known.
    on_behalf_of.set(tuple(value for name, value in scope["headers"] if name == b"cookie"))
    if scope["path"].startswith(settings.STATIC_URL):
        await static_application(scope, receive, send)
    else:
        await http_application(scope, receive, send)


async def _lifespan(scope: Scope, receive: Receive, send: Send) -> None:
    """Startup and shutdown for servers with the lifespan protocol; Daphne uses its reactor."""
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await wiring.start()
            await send({"type": "lifespan.startup.complete"})
        elif message["type"] == "lifespan.shutdown":
            await wiring.shutdown()
            await send({"type": "lifespan.shutdown.complete"})
            return


# An address that names nothing is answered like an unknown code, not by an exception.
_sockets = URLRouter(
    [
        path("ws/c/<str:code>/", ConversationConsumer.as_asgi()),
        re_path("", ConversationConsumer.as_asgi(), {"code": ""}),
    ]
)

application = ProtocolTypeRouter(
    {
        "http": _http,
        "websocket": same_origin(AuthMiddlewareStack(_sockets), settings.ALLOWED_ORIGINS),
        "lifespan": _lifespan,
    }
)
