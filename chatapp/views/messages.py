"""Commands on messages and turns."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.http.response import HttpResponseBase

from chatapp import forms, wiring
from chatapp.actions import conversations, messages, preferences
from chatapp.actions.example import begin_example
from chatapp.actions.subject import conversation_of
from chatapp.conversations import branching, drafts, lifecycle
from chatapp.conversations.ownership import aowned
from chatapp.conversations.turns import sending
from chatapp.errors import InvalidInput
from chatapp.views.answers import (
    accepted,
    endpoint,
    fields_for,
    fields_of,
    keep_written,
    page_of,
    user_id,
    wants_fragment,
    wants_json,
)
from chatapp.views.pages import unsent
from compression.exceptions import UserFacingError


@endpoint("POST")
async def create(request: HttpRequest) -> HttpResponseBase:
    """Create a conversation; with ``text`` it begins with that message."""
    fields = fields_of(request)
    try:
        return _moved(request, await _made(user_id(request), fields))
    except UserFacingError as error:
        if "text" not in fields or wants_json(request) or wants_fragment(request):
            raise
        return await unsent(request, fields, error)


async def _made(person: int, fields: dict[str, str]) -> str:
    """Create the conversation that the fields describe. Returns its code."""
    values = {
        "title": forms.title(fields),
        "model": forms.model_name(fields)
        or await preferences.default_model(person, project=forms.project(fields)),
        "system_prompt": forms.system_prompt(fields),
        "project": forms.project(fields),
    }
    if "text" not in fields:
        return await lifecycle.acreate(person, **values)
    text, client_msg_id = forms.message_text(fields), forms.client_msg_id(fields)
    return await messages.begin(person, text, client_msg_id, values)


@endpoint("POST")
async def example(request: HttpRequest) -> HttpResponseBase:
    """Begin the demo model's example, a conversation that is about to be compressed."""
    return _moved(request, await begin_example(user_id(request)))


@endpoint("POST")
async def send(request: HttpRequest, code: str) -> HttpResponseBase:
    """Store a message and begin its turn."""
    try:
        fields = fields_of(request)
        text, client_msg_id = forms.message_text(fields), forms.client_msg_id(fields)
        last_seen_seq = forms.number(fields, "last_seen_seq")
    except Exception:
        # NotFound before anything is said of the body, as in fields_for.
        await aowned(user_id(request), code)
        raise
    result = await messages.send(
        user_id(request), code, text, client_msg_id, last_seen_seq=last_seen_seq
    )
    return _begun(request, code, "message-send", result)


def _begun(
    request: HttpRequest, code: str, command: str, result: sending.Accepted | sending.Queued
) -> HttpResponseBase:
    if isinstance(result, sending.Queued):
        return accepted(request, command, {"queued": True}, to=page_of(code), status=202)
    facts = {
        "turn": result.turn,
        "message_seq": result.message_seq,
        "reply_seq": result.reply_seq,
    }
    return accepted(request, command, facts, to=page_of(code), status=202)


@endpoint("POST")
async def stop(request: HttpRequest, code: str) -> HttpResponseBase:
    """End the open turn."""
    await messages.stop(user_id(request), code)
    await keep_written(request, code)
    return accepted(request, "turn-stop", {"state": "stopping"}, to=page_of(code), status=202)


@endpoint("POST")
async def regenerate(request: HttpRequest, code: str) -> HttpResponseBase:
    """Answer a user message again."""
    seq = forms.number(await fields_for(request, code), "seq")
    result = await messages.regenerate(user_id(request), code, seq)
    return _begun(request, code, "turn-regenerate", result)


@endpoint("POST")
async def continue_reply(request: HttpRequest, code: str) -> HttpResponseBase:
    """Have the model continue its last reply."""
    fields = await fields_for(request, code)
    result = await messages.continue_reply(user_id(request), code, forms.optional_id(fields))
    return _begun(request, code, "turn-continue", result)


@endpoint("POST")
async def edit(request: HttpRequest, code: str, seq: int) -> HttpResponseBase:
    """Send another text in place of a user message."""
    text = forms.message_text(await fields_for(request, code))
    result = await messages.edit_message(user_id(request), code, seq, text)
    return _begun(request, code, "message-edit", result)


def pin(command: str, *, on: bool) -> Callable[..., Coroutine[Any, Any, HttpResponseBase]]:
    """The view that pins or unpins a message."""

    @endpoint("POST")
    async def view(request: HttpRequest, code: str, seq: int) -> HttpResponseBase:
        await messages.pin(user_id(request), code, seq, on=on)
        return accepted(request, command, {"seq": seq, "pinned": on}, to=page_of(code))

    return view


@endpoint("POST")
async def unmask(request: HttpRequest, code: str) -> HttpResponseBase:
    """Take a batch of masks off."""
    batch = forms.required_number(await fields_for(request, code), "batch")
    seqs = await messages.unmask(user_id(request), code, batch)
    result = {"batch": batch, "seqs": list(seqs)}
    return accepted(request, "masks-undo", result, to=page_of(code))


@endpoint("POST")
async def branch(request: HttpRequest, code: str) -> HttpResponseBase:
    """Make a conversation with the messages up to ``seq``; with ``text``, send that in it."""
    fields = await fields_for(request, code)
    seq = forms.required_number(fields, "seq")
    if "text" not in fields:
        return _moved(request, await branching.abranch(user_id(request), code, seq))
    text, client_msg_id = forms.message_text(fields), forms.client_msg_id(fields)
    clears_draft = fields.get("clears_draft") == "true"
    made = await messages.begin_branch(
        user_id(request), code, seq, text, client_msg_id, clears_draft=clears_draft
    )
    return _moved(request, made)


@endpoint("POST")
async def continue_in_new(request: HttpRequest, code: str) -> HttpResponseBase:
    """Make the next part: with summary, rules, pins and last turns. A plain form's text is kept."""
    await keep_written(request, code)
    return _moved(request, await conversations.continue_in_new(user_id(request), code))


def _moved(request: HttpRequest, code: str) -> HttpResponseBase:
    """The answer that names a new conversation or redirects to it."""
    if wants_json(request):
        return JsonResponse({"code": code}, status=201)
    if wants_fragment(request):
        return HttpResponse(headers={"HX-Redirect": page_of(code)})
    return HttpResponseRedirect(page_of(code))


@endpoint("POST")
async def draft(request: HttpRequest, code: str) -> HttpResponseBase:
    """Store the draft."""
    text = forms.draft(await fields_for(request, code))
    await drafts.asave_draft(user_id(request), code, text)
    return accepted(request, "draft", {"state": "kept"}, to=page_of(code))


@endpoint("POST")
async def queue(request: HttpRequest, code: str) -> HttpResponseBase:
    """``send_now``, ``edit`` or ``remove`` the queued message."""
    fields = await fields_for(request, code)
    action = fields.get("action", "")
    if action == "send_now":
        await messages.send_now(user_id(request), code)
    elif action == "edit":
        await messages.edit_queued(user_id(request), code, forms.message_text(fields))
    elif action == "remove":
        await sending.achange_queue(user_id(request), code, "remove")
    else:
        raise InvalidInput.of("action", "Choose send_now, edit or remove.")
    await wiring.bus().nudge(await conversation_of(user_id(request), code))
    return accepted(request, "queue", {"state": "done"}, to=page_of(code))
