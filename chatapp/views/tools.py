"""The tools of a conversation, and the approval of calls."""

from __future__ import annotations

from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase
from django.urls import reverse

from chatapp import forms
from chatapp.actions import tools
from chatapp.errors import InvalidInput
from chatapp.views.answers import accepted, endpoint, fields_for, page_of, user_id, wants_json
from chatapp.views.pages import page_context, rendered


@endpoint("GET")
async def conversation_tools(request: HttpRequest, code: str) -> HttpResponseBase:
    """The servers that a conversation can use."""
    shown = await tools.tools_page(user_id(request), code)
    if wants_json(request):
        return JsonResponse(shown.as_json())
    values = {"tools": shown, "code": code, "current": code}
    return await rendered(request, "tools.html", {**await page_context(request), **values})


@endpoint("POST")
async def change(request: HttpRequest, code: str) -> HttpResponseBase:
    """Change one thing about them."""
    await _change(user_id(request), code, await fields_for(request, code))
    back = reverse("conversation-tools", args=[code])
    return accepted(request, "tools-change", {"done": True}, to=back)


async def _change(person: int, code: str, fields: dict[str, str]) -> None:
    """``ask_again``: a tool; or with ``server``: ``on``, a ``key``, or ``remove_key``."""
    if tool := fields.get("ask_again"):
        await tools.ask_again(person, code, tool)
    elif fields.get("remove_key") == "true":
        await tools.remove_key(person, fields.get("server", ""))
    elif "key" in fields:
        await tools.keep_key(person, fields.get("server", ""), forms.tool_key(fields))
    elif fields.get("on") in {"true", "false"}:
        await tools.switch(person, code, fields.get("server", ""), on=fields["on"] == "true")
    else:
        raise InvalidInput.of("on", "Say true or false.")


@endpoint("POST")
async def decide(request: HttpRequest, code: str, call_id: str) -> HttpResponseBase:
    """Allow a call once or always here, or refuse it."""
    fields = await fields_for(request, code)
    decision = forms.tool_decision(fields)
    await tools.decide(user_id(request), code, call_id, fields.get("fingerprint", ""), decision)
    return accepted(
        request, "call-decide", {"call_id": call_id, "decision": decision}, to=page_of(code)
    )
