"""Pages and other reads: the conversation, its turns, what the model sees, versions."""

from __future__ import annotations

import uuid
from functools import partial
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponseRedirect, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render

from chatapp import wiring
from chatapp.actions import inspection
from chatapp.conversations import listing, ownership, people
from chatapp.conversations.messages.reading import amessage, aturn
from chatapp.conversations.summaries.versions import acarried, aversions
from chatapp.conversations.turns.replacing import areplaced
from chatapp.forms import model_name, number
from chatapp.live.view_models import ConversationLink
from chatapp.rendering.articles import bodies_of
from chatapp.views.answers import endpoint, page_of, user_id, wants_fragment, wants_json
from compression.database import in_database_thread
from compression.exceptions import UserFacingError


async def page_context(request: HttpRequest) -> dict[str, Any]:
    """The context that all chat pages share."""
    chosen, links = await _ashared_context(user_id(request))
    services = wiring.services()
    return {
        "page": None,
        "conversations": links,
        "models": await services.catalogue.names(),
        "new_model": chosen["default_model"] or services.catalogue.known_name(),
        "demo": services.demo,
        "message_max_length": settings.MESSAGE_MAX_LENGTH,
        "client_msg_id": str(uuid.uuid4()),
        "theme": chosen["theme"],
        "chosen": chosen,
        "current": "",
    }


def _shared_context(user_id: int) -> tuple[dict[str, Any], list[ConversationLink]]:
    return people.chosen(user_id), listing.links(user_id)


_ashared_context = in_database_thread(_shared_context)


@endpoint("GET")
async def home(request: HttpRequest) -> HttpResponseBase:
    """The newest conversation, or the empty state with ``?new``.

    As JSON, the list of conversations; for htmx, the list as a fragment with the conversation of
    ``?current=<code>`` marked. With ``?archived``, the archived ones, also as a page.
    """
    person, archived = user_id(request), "archived" in request.GET
    if wants_json(request) or wants_fragment(request) or archived:
        links = await listing.alinks(person, archived=archived)
        if wants_json(request):
            return JsonResponse({"conversations": [link.as_json() for link in links]})
        values = {"conversations": links, "current": request.GET.get("current", "")}
        if wants_fragment(request):
            return await rendered(request, "partials/links.html", values)
        values = {"archived": links, "section": "archive"}
        return await rendered(request, "archived.html", {**await page_context(request), **values})
    if "new" not in request.GET:
        code = await listing.anewest(person)
        if code is not None:
            return HttpResponseRedirect(page_of(code))
    return await rendered(request, "conversation.html", await page_context(request))


@endpoint("GET")
async def conversation(request: HttpRequest, code: str) -> HttpResponseBase:
    """The page of a conversation, opened at a message with ``?around=<seq>``.

    ``?q=`` holds search terms, which are marked in that message. ``?before=<seq>`` and
    ``?after=<seq>`` return the messages there as a fragment for htmx.
    """
    given = [name for name in ("before", "after", "around") if name in request.GET]
    if given:
        # NotFound before the number is checked: a stranger learns nothing from it.
        await ownership.aowned(user_id(request), code)
    place = {name: number(request.GET, name) for name in given[:1]}
    page = await wiring.services().apage(user_id(request), code, **place)
    if wants_json(request):
        return JsonResponse(
            {
                "conversation": page.conversation.as_json(),
                "event_no": page.conversation.event_no,
                "messages": [message.as_json() for message in page.messages],
                "has_older": page.has_older,
                "has_newer": page.has_newer,
                "turn": page.turn.as_json() if page.turn else None,
                "turns": [turn.as_json() for turn in page.turns],
                "compression": page.compression.as_json(),
                "context": page.context.as_json(),
                "origin": page.origin.as_json() if page.origin else None,
            }
        )
    bodies = bodies_of(page.messages, page.turn)
    await wiring.rendering_pool().ahead(user_id(request), bodies)
    if wants_fragment(request) and given and given[0] != "around":
        name = "partials/older.html" if given[0] == "before" else "partials/newer.html"
        return await rendered(request, name, {"page": page})
    context = {
        **await page_context(request),
        "page": page,
        "current": page.conversation.code,
        "sought": place.get("around"),
        "words": request.GET.get("q", ""),
    }
    return await rendered(request, "conversation.html", context)


async def unsent(
    request: HttpRequest, fields: dict[str, str], error: UserFacingError
) -> HttpResponseBase:
    """The page that begins a conversation, with the refused text and choices and the error.

    For browsers without JavaScript; with it, the page stays and shows the same.
    """
    context = await page_context(request)
    model = fields.get("model", "")
    written = {**fields, "model": model if model in context["models"] else ""}
    context |= {"written": written, "error": error.as_dict()}
    return await rendered(request, "conversation.html", context, status=error.status)


async def rendered(
    request: HttpRequest, template: str, context: dict[str, Any], *, status: int = 200
) -> HttpResponseBase:
    """A page, rendered in a thread: thirty messages take too long for the event loop.

    If the client goes away, work that has not begun is cancelled.
    """
    work = partial(render, request, template, context, status=status)
    return await wiring.rendering_pool().run(user_id(request), work)


@endpoint("GET")
async def message(request: HttpRequest, code: str, seq: int) -> HttpResponseBase:
    """One message as JSON, with its text as written, which Copy puts on the clipboard."""
    found = await amessage(user_id(request), code, seq)
    return JsonResponse(found.as_json())


@endpoint("GET")
async def replaced(request: HttpRequest, code: str, seq: int) -> HttpResponseBase:
    """The messages that message ``seq`` replaced, in pages from ``?after=``."""
    after = number(request.GET, "after") or 0
    messages, more = await areplaced(user_id(request), code, seq, after=after)
    if wants_json(request):
        found = [one.as_json() for one in messages]
        return JsonResponse({"messages": found, "has_newer": more})
    await wiring.rendering_pool().ahead(user_id(request), bodies_of(messages, None))
    template = "partials/replaced.html" if wants_fragment(request) else "replaced.html"
    following = messages[-1].seq if more else None
    values = {"messages": messages, "following": following, "code": code, "seq": seq}
    return await rendered(request, template, values)


@endpoint("GET")
async def turn(request: HttpRequest, code: str, turn: int) -> HttpResponseBase:
    """One turn with its manifest as JSON; for htmx, what the reply's model saw, as a fragment."""
    found = await aturn(user_id(request), code, turn)
    if wants_fragment(request):
        return await rendered(request, "partials/manifest.html", {"turn": found, "code": code})
    return JsonResponse(found)


@endpoint("GET")
async def context(request: HttpRequest, code: str) -> HttpResponseBase:
    """The next request as the model will see it: parts, tokens, exact messages.

    With ``?left-out``, the messages that would be left out if no summary could be written.
    With ``?masked``, the masked ones as the model sees them. With ``?model=``, only the figures for
    another model, as JSON.
    """
    person = user_id(request)
    if "model" in request.GET:
        figures = await inspection.figures_with(person, code, model_name(request.GET))
        return JsonResponse({"context": figures.as_json()})
    if "left-out" in request.GET:
        messages = await inspection.left_out(person, code)
        if wants_json(request):
            return JsonResponse({"messages": messages})
        name = "partials/left_out.html" if wants_fragment(request) else "left_out.html"
        return await rendered(request, name, {"messages": messages, "code": code})
    if "masked" in request.GET:
        messages = await inspection.masked(person, code)
        if wants_json(request):
            return JsonResponse({"messages": messages})
        name = "partials/masked_messages.html" if wants_fragment(request) else "masked.html"
        return await rendered(request, name, {"messages": messages, "code": code})
    page = await wiring.services().apage(person, code)
    parts = await inspection.context_parts(person, code)
    if wants_json(request):
        return JsonResponse({"context": page.context.as_json(), **parts.as_json()})
    template = "partials/context.html" if wants_fragment(request) else "context.html"
    values = {"context": page.context, "parts": parts.groups, "page": page}
    return await rendered(request, template, values)


@endpoint("GET")
async def summaries(request: HttpRequest, code: str) -> HttpResponseBase:
    """The active summary and all its versions."""
    person = user_id(request)
    page = await wiring.services().apage(person, code)
    versions = await aversions(person, code)
    if wants_json(request):
        compression = page.compression.as_json()
        return JsonResponse({"compression": compression, "versions": versions})
    template = "partials/summary.html" if wants_fragment(request) else "summaries.html"
    carried = await acarried(person, code)
    values = {"page": page, "versions": versions, "carried": carried}
    return await rendered(request, template, values)


@endpoint("GET")
async def models(request: HttpRequest) -> HttpResponseBase:
    """The models to choose from, as JSON."""
    catalogue = wiring.services().catalogue
    # The windows come with the server's list, even for models never used.
    await catalogue.ask()
    names = await catalogue.names()
    profiles = [catalogue.known_profile(name) for name in names]
    return JsonResponse(
        {
            "models": [
                {"name": one.name, "window": one.window, "max_output_tokens": one.reserve}
                for one in profiles
            ],
            "default": catalogue.known_name(),
        }
    )
