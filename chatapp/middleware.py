"""Headers that every dynamic response carries, and Django's own middleware without threads.

Under ASGI Django runs each hook of its synchronous middleware in a thread of the request, sixteen
hops for one request. These hooks only compute, so here they are called where they are; what reads
or writes the database still goes to a thread.
"""

from __future__ import annotations

from typing import Any

from asgiref.sync import iscoroutinefunction, sync_to_async
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
