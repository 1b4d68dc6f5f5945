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
from chatapp.actions.connections.offered import choice
from chatapp.conversations import listing, ownership, people
from chatapp.conversations.connections.stored import rights
from chatapp.conversations.messages.reading import alast_turn, amessage, aturn
from chatapp.conversations.projects import rows
from chatapp.conversations.summaries.lines import asummary_lines
from chatapp.conversations.summaries.versions import acarried, aversions
from chatapp.conversations.turns.replacing import areplaced
from chatapp.forms import model_name, number
from chatapp.live.project_views import ProjectLink
from chatapp.live.view_models import ConversationLink
from chatapp.rendering.articles import bodies_of
from chatapp.views.answers import endpoint, page_of, user_id, wants_fragment, wants_json
from compression.database import in_database_thread
from compression.exceptions import UserFacingError


async def page_context(request: HttpRequest, *, new_project: str = "") -> dict[str, Any]:
    """The context that all chat pages share.

    ``new_project`` is the slug of the project that a new conversation would belong to; one that the
    person does not have counts as none.
    """
    person = user_id(request)
    shared = await _ashared_context(person, new_project)
    (chosen, links, projects, wished, connects) = shared
    models = await choice(person)
    services = wiring.services()
    new_model = models.first_there(wished, chosen["default_model"]) or models.default
    return {
        "page": None,
        "conversations": links,
        "projects": projects,
        "new_project": new_project,
        "models": models.names,
        "new_model": new_model,
        "demo": services.by_demo(new_model),
        "connects": connects,
        "message_max_length": settings.MESSAGE_MAX_LENGTH,
        "client_msg_id": str(uuid.uuid4()),
        "theme": chosen["theme"],
        "chosen": chosen,
        "current": "",
    }


def _shared_context(
    user_id: int, new_project: str
) -> tuple[dict[str, Any], list[ConversationLink], list[ProjectLink], str, bool]:
    return (
        people.chosen(user_id),
        listing.links(user_id),
        rows.links(user_id),
        rows.default_model(user_id, new_project) if new_project else "",
        rights(user_id).any,
    )


_ashared_context = in_database_thread(_shared_context)


@endpoint("GET")
async def home(request: HttpRequest) -> HttpResponseBase:
    """The newest conversation, or the empty state with ``?new``.

    As JSON, the list of conversations; for htmx, the list as a fragment with the conversation of
    ``?current=<code>`` marked. With ``?archived``, the archived ones, also as a page; with
    ``?project=<slug>``, those of that project.
    """
    person, archived = user_id(request), "archived" in request.GET
    if wants_json(request) or wants_fragment(request) or archived:
        project = request.GET.get("project", "")
        links = await listing.alinks(person, archived=archived, project=project)
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
    context = await page_context(request, new_project=request.GET.get("project", ""))
    return await rendered(request, "conversation.html", context)


@endpoint("GET")
async def conversation(request: HttpRequest, code: str) -> HttpResponseBase:
    """The page of a conversation, opened at a message with ``?around=<seq>``.

    ``?q=`` holds search terms, which are marked in that message. For htmx, only the messages as a
    fragment; with ``?before=<seq>`` and ``?after=<seq>`` those to add to what is shown; with
    ``?settings`` the form for the conversation's settings.
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
                "part": page.part.as_json(),
            }
        )
    if wants_fragment(request) and "settings" in request.GET:
        context = {**await page_context(request), "page": page}
        return await rendered(request, "partials/settings/form.html", context)
    bodies = bodies_of(page.messages, page.turn)
    await wiring.rendering_pool().ahead(user_id(request), bodies)
    if wants_fragment(request):
        added = {"before": "partials/older.html", "after": "partials/newer.html"}
        name = added.get(given[0] if given else "", "partials/feed.html")
        return await rendered(request, name, {"page": page})
    context = {
        **await page_context(request),
        "page": page,
        "demo": wiring.services().by_demo(page.context.model),
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
    context = await page_context(request, new_project=fields.get("project", ""))
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
        values = {"turn": found, "code": code, "source": request.path}
        return await rendered(request, "partials/manifest.html", values)
    return JsonResponse(found)


async def last_reply(request: HttpRequest, code: str) -> HttpResponseBase:
    """The same of the reply that ended last, if there is one; also as a page."""
    found = await alast_turn(user_id(request), code)
    if wants_json(request):
        return JsonResponse({"turn": found})
    template = "partials/manifest.html" if wants_fragment(request) else "reply.html"
    values = {"turn": found, "code": code, "source": f"{request.path}?reply"}
    return await rendered(request, template, values)


@endpoint("GET")
async def context(request: HttpRequest, code: str) -> HttpResponseBase:
    """The next request as the model will see it: parts, tokens, exact messages.

    With ``?left-out``, the messages that would be left out if no summary could be written.
    With ``?masked``, the masked ones as the model sees them. With ``?reply``, what the last reply's
    model saw. With ``?model=``, only the figures for another model, as JSON.
    """
    person = user_id(request)
    if "reply" in request.GET:
        return await last_reply(request, code)
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
    carried = await acarried(person, code)
    values = {"context": page.context, "parts": parts.groups, "page": page, "carried": carried}
    return await rendered(request, template, values)


@endpoint("GET")
async def summaries(request: HttpRequest, code: str) -> HttpResponseBase:
    """The active summary and what it leaves out; with ``?versions``, its versions.

    As JSON, both.
    """
    person = user_id(request)
    page = await wiring.services().apage(person, code)
    versions = await aversions(person, code)
    if wants_json(request):
        compression = page.compression.as_json()
        return JsonResponse({"compression": compression, "versions": versions})
    only = "versions" in request.GET
    part = "partials/versions.html" if only else "partials/summary.html"
    template = part if wants_fragment(request) else "summaries.html"
    lines = await asummary_lines(person, code)
    values = {"page": page, "versions": versions, "lines": lines, "only_versions": only}
    return await rendered(request, template, values)


@endpoint("GET")
async def models(request: HttpRequest) -> HttpResponseBase:
    """The models to choose from, as JSON."""
    catalogue = wiring.services().catalogue
    # The windows come with the server's list, even for models never used.
    await catalogue.ask()
    # Another process may have connected a server.
    await catalogue.others.recall()
    offered = await choice(user_id(request))
    names = offered.names
    profiles = [catalogue.known_profile(name) for name in names]
    return JsonResponse(
        {
            "models": [
                {"name": one.name, "window": one.window, "max_output_tokens": one.reserve}
                for one in profiles
            ],
            "default": offered.default,
        }
    )
