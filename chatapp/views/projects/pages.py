"""The list of projects, and the page of one."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.http.response import HttpResponseBase
from django.urls import reverse

from chatapp import wiring
from chatapp.actions import preferences
from chatapp.actions.projects import settings
from chatapp.conversations import listing
from chatapp.conversations.projects import line_versions, rows, suggestions
from chatapp.live.project_views import COLOURS
from chatapp.live.view_models import as_json
from chatapp.text.lengths import INSTRUCTIONS_LENGTH, LINE_LENGTH, PROJECT_NAME_LENGTH
from chatapp.views.answers import endpoint, fields_of, user_id, wants_fragment, wants_json
from chatapp.views.pages import page_context, rendered
from chatapp.views.projects import fields as checks


@endpoint("GET", "POST")
async def projects(request: HttpRequest) -> HttpResponseBase:
    """GET lists the projects; POST makes one."""
    if request.method == "POST":
        slug = await rows.acreate(user_id(request), checks.name(fields_of(request)))
        address = reverse("project", args=[slug])
        if wants_json(request):
            return JsonResponse({"slug": slug}, status=201)
        if wants_fragment(request):
            return HttpResponse(headers={"HX-Redirect": address})
        return HttpResponseRedirect(address)
    if wants_json(request):
        links = await rows.alinks(user_id(request))
        return JsonResponse({"projects": [one.as_json() for one in links]})
    values = {"name_length": PROJECT_NAME_LENGTH, "section": "projects"}
    context = {**await page_context(request), **values}
    return await rendered(request, "projects/list.html", context)


@endpoint("GET")
async def project(request: HttpRequest, slug: str) -> HttpResponseBase:
    """A project: its settings, its conversations, the lines that it keeps, and what it costs."""
    person = user_id(request)
    found = await rows.aview(person, slug)
    lines = await line_versions.aview(person, slug)
    # Of the model that answers in a new conversation; that of the settings may be gone.
    model = await preferences.default_model(person, project=slug)
    model = model or wiring.services().catalogue.known_name()
    values = {
        "project": found,
        "lines": lines,
        "suggestions": await suggestions.asuggestions(person, slug),
        "cost": await settings.cost(person, slug, model),
    }
    inside = await listing.alinks(person, project=slug)
    if wants_json(request):
        told = {name: as_json(value) for name, value in values.items()}
        return JsonResponse({**told, "conversations": [one.as_json() for one in inside]})
    shown = {
        **values,
        "inside": inside,
        "colours": COLOURS,
        "lengths": {
            "name": PROJECT_NAME_LENGTH,
            "line": LINE_LENGTH,
            "instructions": INSTRUCTIONS_LENGTH,
        },
    }
    context = {**await page_context(request), **shown}
    return await rendered(request, "projects/project.html", context)
