"""The answers to requests that reach no view."""

from __future__ import annotations

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

from chatapp.deployment.body_limits import refusal_of
from chatapp.errors import Forbidden, InternalError, NotFound
from chatapp.views.answers import failure, unreadable


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponseBase:
    """403: the form's token is missing or old, or the request comes from another site."""
    return failure(
        request,
        Forbidden(
            "This page is out of date, or the request came from another site. Reload the page."
        ),
    )


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """400, or 413 for a body that is too large."""
    return failure(request, unreadable(exception))


def not_found(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    """404, the same as for a conversation that does not exist."""
    return failure(request, NotFound())


def server_error(request: HttpRequest) -> HttpResponseBase:
    """500; the log has the reason."""
    return failure(request, InternalError())


@sync_and_async_middleware
def refusals(get_response):  # type: ignore[no-untyped-def]
    """Answer a request whose body :mod:`chatapp.deployment.body_limits` refused."""
    if iscoroutinefunction(get_response):

        async def asynchronous(request: HttpRequest) -> HttpResponseBase:
            if error := refusal_of(request):
                return failure(request, error)
            response: HttpResponseBase = await get_response(request)
            return response

        return asynchronous

    def synchronous(request: HttpRequest) -> HttpResponseBase:
        if error := refusal_of(request):
            return failure(request, error)
        response: HttpResponseBase = get_response(request)
        return response

    return synchronous
