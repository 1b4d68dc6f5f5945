"""Headers that every dynamic response carries, and Django's own middleware without threads.

Under ASGI Django runs each hook of its synchronous middleware in a thread of the request, sixteen
hops for one request. These hooks only compute, so here they are called where they are; what reads
or writes the database still goes to a thread.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.sync import async_to_sync, iscoroutinefunction, sync_to_async
from csp.middleware import CSPMiddleware
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.messages.middleware import MessageMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.common import CommonMiddleware
from django.middleware.csrf import CsrfViewMiddleware
from django.middleware.security import SecurityMiddleware
from django.utils.decorators import sync_and_async_middleware

from chatapp.views import health

Handler = Callable[[HttpRequest], HttpResponseBase | Awaitable[HttpResponseBase]]
PROBES = {"/healthz": health.healthz, "/readyz": health.readyz}


def _mark(response: HttpResponseBase) -> HttpResponseBase:
    response.headers.setdefault("Cache-Control", "no-store, private")
    return response


@sync_and_async_middleware
def no_store(get_response):  # type: ignore[no-untyped-def]
    """Keep pages out of every cache: the Back button after signing out shows nothing."""
    if iscoroutinefunction(get_response):

        async def asynchronous(request: HttpRequest) -> HttpResponseBase:
            return _mark(await get_response(request))

        return asynchronous

    def synchronous(request: HttpRequest) -> HttpResponseBase:
        return _mark(get_response(request))

    return synchronous


def _is_probe(request: HttpRequest) -> bool:
    return request.method in {"GET", "HEAD"} and request.path_info in PROBES


@sync_and_async_middleware
def probes(get_response):  # type: ignore[no-untyped-def]
    """Answer who looks whether this process lives, by whatever name or address it came.

    A container's or a balancer's probe sends the address of this machine as Host. What comes after
    this middleware compares it with ALLOWED_HOSTS, and looks for a session that no probe has.
    """
    if iscoroutinefunction(get_response):

        async def asynchronous(request: HttpRequest) -> HttpResponseBase:
            if _is_probe(request):
                return await PROBES[request.path_info](request)
            response: HttpResponseBase = await get_response(request)
            return response

        return asynchronous

    def synchronous(request: HttpRequest) -> HttpResponseBase:
        if _is_probe(request):
            return async_to_sync(PROBES[request.path_info])(request)
        response: HttpResponseBase = get_response(request)
        return response

    return synchronous


def call_hooks_inline() -> None:
    """Have Django's middleware call its hooks where it is, in the event loop.

    For the ASGI application, once. The settings keep the names of Django's own classes, since its
    deployment checks look for them.
    """
    for middleware in (
        SecurityMiddleware,
        CSPMiddleware,
        SessionMiddleware,
        CommonMiddleware,
        CsrfViewMiddleware,
        AuthenticationMiddleware,
        MessageMiddleware,
        XFrameOptionsMiddleware,
    ):
        setattr(middleware, "__acall__", _inline)  # noqa: B010 - a method, which mypy guards


async def _inline(middleware: Any, request: HttpRequest) -> HttpResponseBase:
    """What MiddlewareMixin does, without a thread for each hook."""
    # Django's own types allow only some of the responses that it passes on.
    response: Any = None
    if hasattr(middleware, "process_request"):
        response = middleware.process_request(request)
    if response is None:
        response = await middleware.get_response(request)
    if hasattr(middleware, "process_response"):
        if isinstance(middleware, SessionMiddleware) and request.session.modified:
            # The one hook that writes to the database.
            response = await sync_to_async(middleware.process_response)(request, response)
        else:
            response = middleware.process_response(request, response)
    assert isinstance(response, HttpResponseBase)
    return response
