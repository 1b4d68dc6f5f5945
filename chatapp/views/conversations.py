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
    """Change title, model, prompt, replies or compression policy; other fields stay."""
    fields = await fields_for(request, code)
    changes: dict[str, Any] = {}
    if "title" in fields:
        changes |= {"title": forms.title(fields), "title_source": TitleSource.PERSON}
    if "compression" in fields:
        changes |= forms.compression_preset(fields)
    # Figures that are given with a preset have priority over its own.
    changes |= {name: check(fields) for name, check in _checks().items() if name in fields}
    if "threshold_percent" in fields:
        changes["threshold"] = forms.threshold_percent(fields)
    if "project" in fields:
        slug = forms.project(fields)
        changes["project_id"] = await lifecycle.aproject_id(user_id(request), slug)
    if changes:
        await conversations.change(user_id(request), code, changes)
    unnamed = {"title_source", "project_id"}
    result = {name: value for name, value in changes.items() if name not in unnamed}
    if "project" in fields:
        result["project"] = slug
    return accepted(request, "conversation-settings", result, to=page_of(code))


@endpoint("POST")
async def seen(request: HttpRequest, code: str) -> HttpResponseBase:
    """Note that the conversation's page has shown the events up to ``event_no``."""
    event_no = forms.required_number(await fields_for(request, code), "event_no")
    await listing.amark_seen(user_id(request), code, event_no)
    return accepted(request, "conversation-seen", {"done": True}, to=page_of(code))


def _checks() -> dict[str, Callable[[dict[str, str]], Any]]:
    """The settings that are stored as they are given, and the check of each."""
    return {
        "model": forms.model_name,
        "system_prompt": forms.system_prompt,
        "threshold": forms.threshold,
        "keep_turns": _keep_turns,
        "compression_off": lambda fields: fields["compression_off"] in {"true", "on", "1"},
        "preview_first": lambda fields: fields["preview_first"] in {"true", "on", "1"},
        "temperature": forms.temperature,
        "reasoning_effort": forms.reasoning_effort,
        "answer_tokens": forms.answer_tokens,
    }


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
