"""Headers that every dynamic response carries, and Django's own parts without threads.

Under ASGI Django runs each hook of its synchronous middleware in a thread of the request, sixteen
hops for one request, and what is to be done at a request's beginning and end. These only compute,
so here they are called where they are; what reads or writes the database still goes to a thread.
A request that needs none has no thread of its own, which would be started and ended for it while
the event loop waits for both.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

from asgiref.sync import SyncToAsync, iscoroutinefunction, sync_to_async
from csp.middleware import CSPMiddleware
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.messages.middleware import MessageMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.core.handlers import asgi
from django.core.signals import request_started
from django.db import close_old_connections, reset_queries
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


#: Bytes of a body that is read for its CSRF token in the event loop; larger forms in a thread.
SMALL_BODY = 64 * 1024


def call_hooks_inline(application: Any) -> None:
    """Have Django's ``application`` call its middleware's hooks, and end responses, in the loop.

    For the ASGI application, once. The settings keep the names of Django's own classes, since its
    deployment checks look for them.
    """
    # A request's thread is new: it has no connection yet that could be too old. Those of the
    # threads that stay are looked after in compression.database.
    for receiver in (reset_queries, close_old_connections):
        request_started.disconnect(receiver)
    setattr(asgi, "sync_to_async", _in_its_thread)  # noqa: B010 - an import, which mypy guards
    application._view_middleware = [_before_view(hook) for hook in application._view_middleware]
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


def _in_its_thread(close: Callable[[], None]) -> Callable[[], Awaitable[None]]:
    """Close a response in its request's thread, whose connections end with it, if it has one."""

    @wraps(close)
    async def closing() -> None:
        context = SyncToAsync.thread_sensitive_context.get(None)
        if context in SyncToAsync.context_to_thread_executor:
            await sync_to_async(close)()
        else:
            close()

    return closing


def _before_view(hook: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """A hook that is called before the view, such as the look for the CSRF token in a form."""
    if not isinstance(hook, SyncToAsync):
        return hook

    @wraps(hook)
    async def looking(request: HttpRequest, *view: Any) -> Any:
        if int(request.META.get("CONTENT_LENGTH") or 0) <= SMALL_BODY:
            return hook.func(request, *view)
        return await hook(request, *view)

    return looking


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
