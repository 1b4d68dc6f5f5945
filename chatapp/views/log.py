"""The pages of the activity log: the list with its sums, one call, and the export."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import date, timedelta
from functools import partial
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, JsonResponse, QueryDict, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone

from chatapp import wiring
from chatapp.activity.exporting import exported
from chatapp.activity.plot import plotted
from chatapp.activity.reading import line_at, shown_call
from chatapp.conversations.model_calls.listing import CallFilter, acall, acalls
from chatapp.conversations.model_calls.totals import atotals
from chatapp.errors import InvalidInput
from chatapp.forms import storable
from chatapp.text.lengths import NAME_LENGTH
from chatapp.views.answers import endpoint, user_id, wants_json
from chatapp.views.pages import page_context, rendered

#: Days of the sums if nobody asks for others.
DAYS = 30
MEASURES = ("tokens", "cost", "calls")


@endpoint("GET")
async def log(request: HttpRequest) -> HttpResponseBase:
    """The person's calls, newest first, and the sums of their days."""
    person, wanted = user_id(request), call_filter(request.GET)
    # What this process has just recorded is part of the list.
    await wiring.activity_log().settled(1.0)
    page = await acalls(person, wanted, request.GET.get("before", ""))
    summed = _with_days(wanted)
    totals, facets = await atotals(person, summed)
    if wants_json(request):
        return JsonResponse(
            {
                "calls": [one.as_json() for one in page.calls],
                "older": page.older,
                "totals": {
                    "first": summed.first,
                    "last": summed.last,
                    "all": totals.all,
                    "days": totals.days,
                    "models": totals.models,
                    "kinds": totals.kinds,
                },
            }
        )
    asked = {name: value for name, value in request.GET.items() if value and name != "before"}
    measure = request.GET.get("measure") or "tokens"
    assert summed.first is not None
    assert summed.last is not None
    measure = measure if measure in MEASURES else "tokens"
    values = {
        "section": "log",
        "wanted": wanted,
        "shown": page,
        "totals": totals if wanted.by_facets and not request.GET.get("before") else None,
        "facets": facets,
        "plot": plotted(totals.days, first=summed.first, last=summed.last, measure=measure),
        "measure": measure,
        "older": urlencode({**asked, "before": page.older}) if page.older else "",
        "query": urlencode(asked),
        "without_measure": urlencode({k: v for k, v in asked.items() if k != "measure"}),
        "asked": bool(asked.keys() - {"measure"}),
    }
    return await rendered(request, "log.html", {**await page_context(request), **values})


@endpoint("GET")
async def log_call(request: HttpRequest, call: str) -> HttpResponseBase:
    """One call with its request, its reply, and what changed since the former request.

    As JSON, its line; without the texts if that is not on this server.
    """
    await wiring.activity_log().settled(1.0)
    one = await acall(user_id(request), call)
    files = wiring.activity_log().files
    if wants_json(request):
        line = await asyncio.to_thread(line_at, files, one.line)
        return JsonResponse({"call": one.line.view.as_json(), "line": line})
    shown = await asyncio.to_thread(shown_call, files, one)
    values = {"section": "log", "one": one.line.view, "former": one.former, "shown": shown}
    return await rendered(request, "log_call.html", {**await page_context(request), **values})


@endpoint("GET")
async def log_export(request: HttpRequest) -> HttpResponseBase:
    """The lines of the calls that the same filters show, newest first, as a file of JSON lines."""
    person, wanted = user_id(request), call_filter(request.GET)
    # Raises NotFound before the first piece.
    await acalls(person, wanted)
    pieces: AsyncIterator[bytes] = exported(person, wanted, wiring.activity_log().files)
    response = StreamingHttpResponse(pieces, content_type="application/x-ndjson")
    response.headers["Content-Disposition"] = 'attachment; filename="log.jsonl"'
    return response


def call_filter(query: QueryDict) -> CallFilter:
    """The filter in an address. Raises InvalidInput."""
    text = partial(_text, query)
    return CallFilter(
        words=text("q"),
        project=text("project"),
        kind=text("kind"),
        model=text("model"),
        conversation=text("conversation"),
        failed=bool(query.get("failed")),
        first=_day(query, "first"),
        last=_day(query, "last"),
    )


def _text(query: QueryDict, name: str) -> str:
    return storable(name, query.get(name, "").strip(), longest=NAME_LENGTH)


def _day(query: QueryDict, name: str) -> date | None:
    value = query.get(name, "").strip()
    if not value:
        return None
    try:
        day = date.fromisoformat(value)
    except ValueError:
        raise InvalidInput.of(name, "This must be a date, as in 2026-11-24.") from None
    # At the ends of the calendar no time zone can be added.
    return min(max(day, date(1971, 1, 1)), date(2200, 1, 1))


def _with_days(wanted: CallFilter) -> CallFilter:
    """The same with the last days where none are given."""
    last = wanted.last or timezone.localdate()
    first = min(wanted.first or last - timedelta(days=DAYS - 1), last)
    values: dict[str, Any] = {"project": wanted.project, "kind": wanted.kind, "model": wanted.model}
    return CallFilter(**values, first=first, last=last)
