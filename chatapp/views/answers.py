"""The answers of all views (page, htmx fragment, JSON), and the check of who may ask."""

from __future__ import annotations

import itertools
import json
import logging
import re
from collections.abc import Callable, Coroutine, Mapping
from functools import wraps
from typing import Any, Concatenate, ParamSpec

from django.contrib.auth import REDIRECT_FIELD_NAME
from django.contrib.auth.models import AnonymousUser
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import RequestDataTooBig
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseRedirect,
    JsonResponse,
    QueryDict,
)
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse

from chatapp import forms
from chatapp.conversations import drafts, ownership
from chatapp.conversations.people import aperson
from chatapp.deployment.refusal_log import UNREADABLE
from chatapp.errors import (
    BadRequest,
    Forbidden,
    InternalError,
    InvalidInput,
    MethodNotAllowed,
    RequestTooLarge,
    SignedOut,
    StorageUnavailable,
)
from chatapp.text.safety import REPLACEMENT
from compression.database import AWAY
from compression.exceptions import UserFacingError
from compression.fair_threads import on_behalf_of

logger = logging.getLogger(__name__)

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], Coroutine[Any, Any, HttpResponseBase]]


# Whoever is not signed in, in the queues for threads.
STRANGERS = "strangers"
# Limits of a JSON command: strings, names of fields included, and bytes outside of strings.
MOST_STRINGS, MOST_BESIDE_STRINGS = 2_000, 64 * 1024
# Without backtracking: invalid JSON must not take longer than valid JSON.
_JSON_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\Z)', re.DOTALL)
# U+FFFD in UTF-8, any of its bytes percent-encoded.
_SENT_REPLACEMENT = re.compile(rb"(?i:%ef|\xef)(?i:%bf|\xbf)(?i:%bd|\xbd)")


def wants_json(request: HttpRequest) -> bool:
    """Whether the answer should be JSON."""
    return "application/json" in request.headers.get("Accept", "")


def wants_fragment(request: HttpRequest) -> bool:
    """Whether htmx asks for a part of a page."""
    return bool(getattr(request, "htmx", False))


def failure(request: HttpRequest, error: UserFacingError) -> HttpResponse:
    """An error in the requested form, with its own status."""
    if isinstance(error, SignedOut) and not wants_json(request) and not wants_fragment(request):
        return redirect_to_login(_page_behind(request), reverse("login"), REDIRECT_FIELD_NAME)
    response: HttpResponse
    if wants_json(request):
        response = JsonResponse({"error": error.as_dict()}, status=error.status)
    else:
        name = "partials/error.html" if wants_fragment(request) else "errors/error.html"
        if error.status == 404 and not wants_fragment(request):
            name = "errors/404.html"
        shown: dict[str, Any] = {"error": error.as_dict()}
        # Text that another site may have sent is not shown as the person's own.
        if request.method == "POST" and not isinstance(error, Forbidden):
            shown |= {"text": _submitted_text(request), "back": _page_behind(request)}
        response = render(request, name, shown, status=error.status)
    if error.retry_after is not None:
        response.headers["Retry-After"] = str(max(1, round(error.retry_after)))
    return response


def _page_behind(request: HttpRequest) -> str:
    """The path of the requested page, or of the page that a command was sent from."""
    match = request.resolver_match
    if request.method in ("GET", "HEAD") or match is None:
        return request.get_full_path()
    if "code" in match.kwargs:
        return page_of(match.kwargs["code"])
    if "slug" in match.kwargs:
        return reverse("project", args=[match.kwargs["slug"]])
    if match.url_name == "conversation-create":
        return f"{reverse('home')}?new"
    return request.path


def _submitted_text(request: HttpRequest) -> str:
    """The text of a refused form, so that the person need not write it again."""
    try:
        return request.POST.get("text", "")
    except UNREADABLE:
        return ""


def accepted(
    request: HttpRequest,
    command: str,
    result: Mapping[str, Any],
    *,
    to: str,
    status: int = 200,
) -> HttpResponseBase:
    """The answer to a successful command: JSON, a fragment, or a redirect to ``to``."""
    if wants_json(request):
        return JsonResponse(dict(result), status=status)
    if wants_fragment(request):
        context = {"command": command, "result": result}
        return render(request, "partials/accepted.html", context, status=status)
    return HttpResponseRedirect(to)


def page_of(code: str) -> str:
    """The address of a conversation."""
    return reverse("conversation", args=[code])


def unreadable(error: Exception) -> UserFacingError:
    """One of the errors in ``UNREADABLE`` as an error of the tree."""
    return RequestTooLarge() if isinstance(error, RequestDataTooBig) else BadRequest()


def endpoint(*methods: str, public: bool = False) -> Callable[[View[P]], View[P]]:
    """A decorator for views: signed-in and active people only, these methods only.

    ``public``: for anybody, without a session; all of them together count as one person in the
    queues for threads. HEAD is allowed with GET. ``request.user`` is loaded when the view runs. An
    error of the tree is answered with its own status; any other is logged and answered as an
    internal error.
    """

    def decorate(view: View[P]) -> View[P]:
        allowed = (*methods, "HEAD") if "GET" in methods else methods

        @wraps(view)
        async def guarded(
            request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs
        ) -> HttpResponseBase:
            if request.method not in allowed:
                refused = failure(request, MethodNotAllowed())
                refused.headers["Allow"] = ", ".join(allowed)
                return refused
            try:
                if public:
                    request.user = AnonymousUser()
                    on_behalf_of.set(STRANGERS)
                else:
                    request.user = await aperson(request)
                    if not request.user.is_authenticated or not request.user.is_active:
                        raise SignedOut
                    on_behalf_of.set(request.user.pk)
                return await view(request, *args, **kwargs)
            except UserFacingError as error:
                return failure(request, error)
            except UNREADABLE as error:
                return failure(request, unreadable(error))
            except AWAY as error:
                logger.error("%s %s: the database: %s", request.method, view.__name__, error)
                return failure(request, StorageUnavailable())
            except Exception:
                # Nothing above handles it: the person gets a card or JSON, the log the reason.
                logger.exception("%s %s failed.", request.method, view.__name__)
                return failure(request, InternalError())

        return guarded

    return decorate


def user_id(request: HttpRequest) -> int:
    """The signed-in person's id."""
    key = request.user.pk
    assert isinstance(key, int)
    return key


async def keep_written(request: HttpRequest, code: str) -> None:
    """Store as the draft the text that a plain form sent along, before its page is reloaded.

    Raises NotFound, and InvalidInput for a text that cannot be stored.
    """
    if wants_json(request) or wants_fragment(request):
        return
    fields = fields_of(request)
    if "text" in fields:
        await drafts.asave_draft(user_id(request), code, forms.draft(fields))


async def fields_for(request: HttpRequest, code: str) -> dict[str, str]:
    """The fields of a command on one's own conversation.

    Raises NotFound before the body is checked, so that a stranger learns nothing from it.
    """
    await ownership.aowned(user_id(request), code)
    return fields_of(request)


def fields_of(request: HttpRequest) -> dict[str, str]:
    """The fields of a command, from a form or a JSON object; numbers as text.

    Raises InvalidInput for any other body.
    """
    if request.content_type != "application/json":
        fields = {name: str(value) for name, value in request.POST.items()}
        if request.content_type == "application/x-www-form-urlencoded":
            _refuse_broken_text(request.body, request.POST)
        return fields
    if not _is_flat(request.body):
        raise InvalidInput("The request has too many fields.")
    try:
        body = json.loads(request.body or b"{}")
    except (ValueError, RecursionError):
        raise InvalidInput("The request's body is not JSON.") from None
    if not isinstance(body, dict):
        raise InvalidInput("The request's body must be a JSON object.")
    return {str(name): "" if value is None else _text(value) for name, value in body.items()}


def _is_flat(body: bytes) -> bool:
    """Whether a JSON text has few strings and little besides them.

    Millions of lists or fields fit into 8 MB. The decoder takes seconds for them, and lets no other
    thread run meanwhile.
    """
    beside = len(body)
    for number, string in enumerate(_JSON_STRING.finditer(body)):
        beside -= string.end() - string.start()
        if number == MOST_STRINGS:
            return False
    return beside <= MOST_BESIDE_STRINGS


def _refuse_broken_text(body: bytes, fields: QueryDict) -> None:
    """Raise InvalidInput for a form whose bytes are not UTF-8.

    Django reads such a form as Latin-1, or replaces what it cannot read by U+FFFD. A text is stored
    as it was sent or not at all. So the U+FFFD in the result are compared with those in the body;
    decoding a form a second time would take a second for 8 MB.
    """
    words = itertools.chain(fields, *(values for _, values in fields.lists()))
    seen = sum(word.count(REPLACEMENT) for word in words)
    try:
        body.decode()
    except UnicodeDecodeError:
        seen = -1
    if seen and seen != sum(1 for _ in _SENT_REPLACEMENT.finditer(body)):
        raise InvalidInput("The form contains bytes that are not UTF-8 text.")


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    raise InvalidInput("Each field of the request must be a text or a number.")
