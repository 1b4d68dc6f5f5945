"""The activity page: the model calls for a conversation."""

from __future__ import annotations

import asyncio

from django.conf import settings
from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase

from chatapp.conversations import ownership
from chatapp.conversations.summaries.versions import aversions
from chatapp.llm import activity_log as log
from chatapp.views.answers import endpoint, user_id, wants_json
from chatapp.views.pages import page_context, rendered


@endpoint("GET")
async def activity(request: HttpRequest, code: str) -> HttpResponseBase:
    """The conversation's latest model calls and its compressions."""
    person = user_id(request)
    row = await ownership.aowned(person, code)
    found = await asyncio.to_thread(log.calls_of, settings.ACTIVITY_LOG_DIR, row.pk)
    versions = [
        {name: value for name, value in one.items() if name not in {"text", "audit"}}
        for one in await aversions(person, code)
    ]
    if wants_json(request):
        return JsonResponse(
            {"calls": found.calls, "complete": found.complete, "compressions": versions}
        )
    values = {"found": found, "versions": versions, "code": code, "title": row.title}
    return await rendered(request, "activity.html", {**await page_context(request), **values})
