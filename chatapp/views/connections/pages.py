"""The page where an owner connects model servers, and the commands on it."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase
from django.urls import reverse

from chatapp.actions.connections import managing
from chatapp.conversations.connections.stored import Rights, aconnections
from chatapp.models import Connection
from chatapp.text.safety import visible
from chatapp.views.answers import (
    accepted,
    endpoint,
    fields_of,
    user_id,
    wants_fragment,
    wants_json,
)
from chatapp.views.connections import fields as checked
from chatapp.views.pages import page_context, rendered
from compression.exceptions import UserFacingError


@endpoint("GET", "POST")
async def connections(request: HttpRequest) -> HttpResponseBase:
    """The connections with their models; POST adds one if its server answers."""
    person = user_id(request)
    rights = await managing.rights_of(person)
    if request.method == "GET" or request.method == "HEAD":
        return await _page(request, rights)
    fields = fields_of(request)
    try:
        number = await _connect(person, fields)
    except UserFacingError as error:
        if wants_json(request) or wants_fragment(request):
            raise
        # All but the key, which no page ever shows.
        written = {name: text for name, text in fields.items() if name != "key"}
        return await _page(request, rights, error=error, written=written)
    to = f"{reverse('connections')}#connection-{number}"
    return accepted(request, "connections", {"id": number}, to=to, status=201)


async def _connect(person: int, fields: dict[str, str]) -> int:
    row = Connection(
        name=checked.name(fields),
        address=checked.address(fields),
        private_addresses=checked.ticked(fields, "private_addresses"),
    )
    return await managing.connect(person, row, checked.key(fields))


async def _page(
    request: HttpRequest,
    rights: Rights,
    *,
    error: UserFacingError | None = None,
    written: dict[str, str] | None = None,
) -> HttpResponseBase:
    rows = await aconnections()
    if wants_json(request):
        return JsonResponse({"connections": [_as_json(row) for row in rows]})
    values: dict[str, Any] = {
        "connected": rows,
        "rights": rights,
        "error": error.as_dict() if error else None,
        "written": written or {},
        "done": request.GET.get("done", "") if error is None else "",
        "section": "settings",
    }
    context = {**await page_context(request), **values}
    status = error.status if error else 200
    return await rendered(request, "connections.html", context, status=status)


def _as_json(row: Connection) -> dict[str, Any]:
    """A connection for programs; never its key."""
    return {
        "id": row.pk,
        "name": row.name,
        "address": row.address,
        "private_addresses": row.private_addresses,
        "has_key": bool(row.sealed_key),
        "enabled": row.enabled,
        "everyone": row.everyone,
        "problem": row.problem,
        "models": [
            {**model, "offered": model["name"] in row.offered} for model in row.models_listed
        ],
    }


def _done(request: HttpRequest, command: str, number: int, **result: Any) -> HttpResponseBase:
    # The page of a plain form says what was done.
    to = f"{reverse('connections')}?done={command}#connection-{number}"
    return accepted(request, command, {"done": True, **result}, to=to)


@endpoint("POST")
async def change(request: HttpRequest, number: int) -> HttpResponseBase:
    """Say which models are offered (``offered``, one on each line), and whether to everyone."""
    await managing.rights_of(user_id(request))
    fields = fields_of(request)
    # A form has one box for each model.
    names = fields["offered"].splitlines() if "offered" in fields else _boxes(request)
    await managing.offer(
        user_id(request),
        number,
        offered=[name for name in names if name],
        everyone=checked.ticked(fields, "everyone"),
        enabled=checked.ticked(fields, "enabled"),
    )
    return _done(request, "connection-change", number)


def _boxes(request: HttpRequest) -> list[str]:
    return [str(name) for name in request.POST.getlist("model")]


@endpoint("POST")
async def look(request: HttpRequest, number: int) -> HttpResponseBase:
    """Ask the server for its models again."""
    problem = await managing.look_again(user_id(request), number)
    return _done(request, "connection-look", number, problem=visible(problem))


@endpoint("POST")
async def key(request: HttpRequest, number: int) -> HttpResponseBase:
    """Store another key, or with ``remove_key`` none."""
    await managing.rights_of(user_id(request))
    fields = fields_of(request)
    given = "" if checked.ticked(fields, "remove_key") else checked.key(fields)
    problem = await managing.keep_key(user_id(request), number, given)
    return _done(request, "connection-key", number, problem=visible(problem))


@endpoint("POST")
async def delete(request: HttpRequest, number: int) -> HttpResponseBase:
    """Delete the connection with its key."""
    await managing.disconnect(user_id(request), number)
    to = f"{reverse('connections')}?done=connection-delete"
    return accepted(request, "connection-delete", {"done": True}, to=to)
