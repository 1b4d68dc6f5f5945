"""The page that a shared link opens, for anybody, without a session."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial, wraps
from typing import Any

from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render

from chatapp import wiring
from chatapp.accounts.visitors import readers
from chatapp.conversations.sharing.reading import ashared_page
from chatapp.errors import NotFound
from chatapp.forms import number
from chatapp.rendering.shared import bodies_of
from chatapp.views.answers import STRANGERS, endpoint, wants_json

Answer = Coroutine[Any, Any, HttpResponseBase]


def _unlisted(view: Callable[[HttpRequest, str], Answer]) -> Callable[[HttpRequest, str], Answer]:
    """Keep every answer out of search engines, and its address out of other sites' logs."""

    @wraps(view)
    async def answered(request: HttpRequest, token: str) -> HttpResponseBase:
        response = await view(request, token)
        response.headers["X-Robots-Tag"] = "noindex, nofollow, noarchive"
        response.headers["Referrer-Policy"] = "no-referrer"
        return response

    return answered


@_unlisted
@endpoint("GET", public=True)
async def shared(request: HttpRequest, token: str) -> HttpResponseBase:
    """A page of a shared conversation; the next one with ``?after=`` what this one says follows."""
    with readers.visit(str(request.META.get("REMOTE_ADDR", ""))):
        try:
            page = await ashared_page(token, after=number(request.GET, "after") or 0)
        except NotFound as error:
            if wants_json(request):
                raise
            gone = {"sentence": error.message}
            return render(request, "shared_gone.html", gone, status=error.status)
        if wants_json(request):
            return JsonResponse(page.as_json())
        pool = wiring.rendering_pool()
        await pool.ahead(STRANGERS, bodies_of(page.messages))
        work = partial(render, request, "shared.html", {"page": page})
        return await pool.run(STRANGERS, work)
