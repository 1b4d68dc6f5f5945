"""A person's shared links: lists, and the commands that make and revoke one."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponseRedirect, JsonResponse
from django.http.response import HttpResponseBase
from django.urls import reverse

from chatapp import forms
from chatapp.conversations.sharing.links import arevoke, ashare, ashares, ashares_of
from chatapp.views.answers import endpoint, fields_for, user_id, wants_json
from chatapp.views.pages import page_context, rendered

ON = {"true", "on", "1"}


@endpoint("GET")
async def mine(request: HttpRequest) -> HttpResponseBase:
    """All of the person's links."""
    found = await ashares(user_id(request))
    if wants_json(request):
        return JsonResponse({"shares": [one.as_json() for one in found]})
    values = {
        "working": [one for one in found if one.working],
        "ended": [one for one in found if not one.working],
    }
    return await rendered(request, "shares.html", {**await page_context(request), **values})


@endpoint("GET")
async def of_conversation(request: HttpRequest, code: str) -> HttpResponseBase:
    """The links to one conversation, and the form that makes one."""
    found = await ashares_of(user_id(request), code)
    if wants_json(request):
        return JsonResponse({"shares": [one.as_json() for one in found]})
    values = {"shares": found, "code": code, "current": code}
    context = {**await page_context(request), **values}
    return await rendered(request, "conversation_shares.html", context)


@endpoint("POST")
async def make(request: HttpRequest, code: str) -> HttpResponseBase:
    """Make a link. Its address is in this answer only: what is stored does not tell it."""
    fields = await fields_for(request, code)
    person = user_id(request)
    made, token = await ashare(
        person,
        code,
        summaries=fields.get("summaries") in ON,
        tools=fields.get("tools") in ON,
        days=forms.share_days(fields),
    )
    url = request.build_absolute_uri(reverse("shared", args=[token]))
    if wants_json(request):
        return JsonResponse({**made.as_json(), "token": token, "url": url}, status=201)
    values: dict[str, Any] = {"shares": await ashares_of(person, code), "code": code}
    values |= {"made": made, "url": url, "current": code}
    context = {**await page_context(request), **values}
    return await rendered(request, "conversation_shares.html", context, status=201)


@endpoint("POST")
async def revoke(request: HttpRequest, code: str, share: int) -> HttpResponseBase:
    """End a link. A plain form goes back to the list that it was on."""
    fields = await fields_for(request, code)
    await arevoke(user_id(request), code, share)
    if wants_json(request):
        return JsonResponse({"state": "revoked"})
    everywhere = fields.get("from") == "all"
    to = reverse("shares") if everywhere else reverse("conversation-shares", args=[code])
    return HttpResponseRedirect(to)
