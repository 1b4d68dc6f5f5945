"""Commands on a conversation as a whole."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from chatapp import forms
from chatapp.actions import conversations
from chatapp.conversations import lifecycle, listing
from chatapp.errors import InvalidInput
from chatapp.models import TitleSource
from chatapp.views.answers import accepted, endpoint, fields_for, page_of, user_id
from compression.planning import defaults

Handler = Callable[..., Coroutine[Any, Any, HttpResponseBase]]


@endpoint("POST")
async def settings(request: HttpRequest, code: str) -> HttpResponseBase:
    """Change title, model, system prompt or compression policy; other fields stay."""
    fields = await fields_for(request, code)
    changes: dict[str, Any] = {}
    if "title" in fields:
        changes |= {"title": forms.title(fields), "title_source": TitleSource.PERSON}
    if "model" in fields:
        changes["model"] = forms.model_name(fields)
    if "system_prompt" in fields:
        changes["system_prompt"] = forms.system_prompt(fields)
    if "threshold" in fields:
        changes["threshold"] = forms.threshold(fields)
    if "keep_turns" in fields:
        changes["keep_turns"] = _keep_turns(fields)
    if "compression_off" in fields:
        changes["compression_off"] = fields["compression_off"] in {"true", "on", "1"}
    if "project" in fields:
        changes["project_id"] = await lifecycle.aproject_id(user_id(request), forms.project(fields))
    if changes:
        await conversations.change(user_id(request), code, changes)
    result = {name: value for name, value in changes.items() if name != "title_source"}
    return accepted(request, "conversation-settings", result, to=page_of(code))


@endpoint("POST")
async def seen(request: HttpRequest, code: str) -> HttpResponseBase:
    """Note that the conversation's page has shown the events up to ``event_no``."""
    event_no = forms.required_number(await fields_for(request, code), "event_no")
    await listing.amark_seen(user_id(request), code, event_no)
    return accepted(request, "conversation-seen", {"done": True}, to=page_of(code))


def _keep_turns(fields: dict[str, str]) -> int | None:
    turns = forms.number(fields, "keep_turns")
    most = defaults.MOST_KEEP_TURNS
    if turns is not None and not 1 <= turns <= most:
        raise InvalidInput.of("keep_turns", f"This must be a whole number from 1 to {most:,}.")
    return turns


def flag(command: str, field: str, *, on: bool) -> Handler:
    """The view that sets or clears one of the conversation's timestamps."""

    @endpoint("POST")
    async def view(request: HttpRequest, code: str) -> HttpResponseBase:
        await conversations.set_flag(user_id(request), code, field, on=on)
        gone = field == "deleted_at" and on
        return accepted(request, command, {"done": True}, to="/" if gone else page_of(code))

    return view
