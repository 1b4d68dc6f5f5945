"""The activity page: the model calls for a conversation."""

from __future__ import annotations

from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase

from chatapp import wiring
from chatapp.conversations import ownership
from chatapp.conversations.model_calls.listing import CallFilter, acalls
from chatapp.conversations.summaries.versions import aversions
from chatapp.views.answers import endpoint, user_id, wants_json
from chatapp.views.pages import page_context, rendered


@endpoint("GET")
async def activity(request: HttpRequest, code: str) -> HttpResponseBase:
    """The conversation's latest model calls and its compressions."""
    person = user_id(request)
    row = await ownership.aowned(person, code)
    await wiring.activity_log().settled(1.0)
    found = await acalls(person, CallFilter(conversation=code))
    versions = [
        {name: value for name, value in one.items() if name not in {"text", "audit"}}
        for one in await aversions(person, code)
    ]
    if wants_json(request):
        calls = [one.as_json() for one in found.calls]
        return JsonResponse({"calls": calls, "complete": not found.older, "compressions": versions})
    values = {"found": found, "versions": versions, "code": code, "title": row.title}
    values["current"] = code
    return await rendered(request, "activity.html", {**await page_context(request), **values})
