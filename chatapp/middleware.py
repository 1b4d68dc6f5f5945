"""Headers for all dynamic responses, and Django's middleware called without threads.

Under ASGI, Django runs each hook of its synchronous middleware in a thread: sixteen hops for one
request, and more at its beginning and end. These hooks only compute, so they are called in the
event loop here; whatever reads or writes the database still runs in a thread. A request that needs
none has no thread, which would be started and ended while the event loop waits.
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
    """Keep pages out of every cache, so that Back shows nothing after signing out."""
    if iscoroutinefunction(get_response):

        async def asynchronous(request: HttpRequest) -> HttpResponseBase:
            return _mark(await get_response(request))

        return asynchronous

    def synchronous(request: HttpRequest) -> HttpResponseBase:
        return _mark(get_response(request))

    return synchronous


#: Bytes of a body that is searched for its CSRF token in the event loop; larger ones in a thread.
SMALL_BODY = 64 * 1024


def call_hooks_inline(application: Any) -> None:
    """Make Django's ``application`` call middleware hooks and close responses in the event loop.

    Call it once on the ASGI application. The settings keep the names of Django's classes, since
    its deployment checks look for them.
    """
    # A request's thread is new and has no old connection; compression.database looks after the
    # threads that stay.
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
    """Close a response in its request's thread, if it has one, and with it its connections."""

    @wraps(close)
    async def closing() -> None:
        context = SyncToAsync.thread_sensitive_context.get(None)
        if context in SyncToAsync.context_to_thread_executor:
            await sync_to_async(close)()
        else:
            close()

    return closing


def _before_view(hook: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """A hook called before the view, such as the search for the CSRF token in a form."""
    if not isinstance(hook, SyncToAsync):
        return hook

    @wraps(hook)
    async def looking(request: HttpRequest, *view: Any) -> Any:
        if int(request.META.get("CONTENT_LENGTH") or 0) <= SMALL_BODY:
            return hook.func(request, *view)
        return await hook(request, *view)

    return looking


async def _inline(middleware: Any, request: HttpRequest) -> HttpResponseBase:
    """The work of MiddlewareMixin, without a thread for each hook."""
    # Django's types allow only some of the responses that it passes on.
    response: Any = None
    if hasattr(middleware, "process_request"):
        response = middleware.process_request(request)
    if response is None:
        response = await middleware.get_response(request)
    if hasattr(middleware, "process_response"):
        if isinstance(middleware, SessionMiddleware) and request.session.modified:
            # The only hook that writes to the database.
            response = await sync_to_async(middleware.process_response)(request, response)
        else:
            response = middleware.process_response(request, response)
    assert isinstance(response, HttpResponseBase)
    return response
