"""The map of a conversation: its outline, and where words stand in it."""

from __future__ import annotations

from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponseRedirect, JsonResponse
from django.http.response import HttpResponseBase
from django.urls import reverse

from chatapp.conversations import ownership
from chatapp.conversations.messages.finding import afind_inside
from chatapp.conversations.messages.outline import aoutline
from chatapp.forms import number
from chatapp.views.answers import endpoint, user_id, wants_fragment, wants_json
from chatapp.views.pages import rendered
from chatapp.views.searching import may_search, query_of


@endpoint("GET")
async def outline(request: HttpRequest, code: str) -> HttpResponseBase:
    """A page of the outline: the newest, or ``?before=``, ``?after=`` or ``?around=`` a message.

    With ``?since=<event_no>``, what has changed in it after that event.
    """
    person = user_id(request)
    given = [name for name in ("before", "after", "around", "since") if name in request.GET]
    if given:
        # NotFound before the number is checked: a stranger learns nothing from it.
        await ownership.aowned(person, code)
    place = {name: number(request.GET, name) for name in given[:1]}
    found = await aoutline(person, code, **place)
    if wants_json(request):
        return JsonResponse(found.as_json())
    template = "partials/outline.html" if wants_fragment(request) else "outline.html"
    return await rendered(request, template, {"outline": found, "code": code})


@endpoint("GET")
async def find(request: HttpRequest, code: str) -> HttpResponseBase:
    """The messages with the words of ``?q=``, as JSON; otherwise its search page."""
    person = user_id(request)
    await ownership.aowned(person, code)
    query = query_of(request)
    if not wants_json(request):
        return HttpResponseRedirect(f"{reverse('search')}?{urlencode({'in': code, 'q': query})}")
    may_search(person)
    found = await afind_inside(person, code, query)
    return JsonResponse(found.as_json())
