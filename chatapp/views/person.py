"""A person's own settings."""

from __future__ import annotations

from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase
from django.urls import reverse

from chatapp import forms
from chatapp.actions import preferences
from chatapp.actions.connections.offered import choice
from chatapp.conversations import people
from chatapp.errors import InvalidInput
from chatapp.text.lengths import INSTRUCTIONS_LENGTH
from chatapp.views.answers import accepted, endpoint, fields_of, user_id, wants_json
from chatapp.views.pages import page_context, rendered

CHOICES = {
    "theme": ("system", "light", "dark"),
    "send_key": ("enter", "modifier-enter"),
}
SWITCHES = ("shortcuts", "notify")
ON = {"true", "on", "1"}


@endpoint("GET", "POST")
async def settings(request: HttpRequest) -> HttpResponseBase:
    """GET shows the settings; POST changes those that are given."""
    person = user_id(request)
    if request.method == "POST":
        changes = _changes(fields_of(request))
        await people.achange(person, changes)
        return accepted(request, "user-settings", changes, to=reverse("user-settings"))
    chosen = await people.achosen(person)
    if wants_json(request):
        return JsonResponse(chosen)
    context = await page_context(request)
    values = {
        "chosen": chosen,
        "default": (await choice(person)).default,
        "instructions_tokens": await preferences.instructions_tokens(chosen["instructions"]),
        "instructions_length": INSTRUCTIONS_LENGTH,
        "section": "settings",
    }
    return await rendered(request, "settings.html", {**context, **values})


def _changes(fields: dict[str, str]) -> dict[str, str | bool]:
    """The given fields, checked. Raises InvalidInput."""
    changes: dict[str, str | bool] = {}
    for name, allowed in CHOICES.items():
        if name in fields:
            if fields[name] not in allowed:
                raise InvalidInput.of(name, f"Choose one of: {', '.join(allowed)}.")
            changes[name] = fields[name]
    for name in SWITCHES:
        if name in fields:
            changes[name] = fields[name] in ON
    if "default_model" in fields:
        changes["default_model"] = forms.model_name({"model": fields["default_model"]})
    if "instructions" in fields:
        changes["instructions"] = forms.own_instructions(fields)
    return changes
