"""Commands on the summary: compress, cancel, edit, undo, redo, restore, clear."""

from __future__ import annotations

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from chatapp import forms
from chatapp.actions import summaries
from chatapp.errors import InvalidInput
from chatapp.rendering.words.headings import in_stored_words
from chatapp.views.answers import accepted, endpoint, fields_for, keep_written, page_of, user_id

SUMMARY_LENGTH = 200_000


@endpoint("POST")
async def compact(request: HttpRequest, code: str) -> HttpResponseBase:
    """Compress now."""
    fields = await fields_for(request, code)
    focus = forms.storable("focus", fields.get("focus", "").strip(), longest=forms.FOCUS_LENGTH)
    through = forms.number(fields, "through_seq")
    state = await summaries.compact(user_id(request), code, focus=focus, through_seq=through)
    await keep_written(request, code)
    return accepted(request, "compact", {"state": state}, to=page_of(code), status=202)


@endpoint("POST")
async def cancel(request: HttpRequest, code: str) -> HttpResponseBase:
    """End a running compression."""
    cancelled = await summaries.cancel_compression(user_id(request), code)
    state = {"state": "cancelled" if cancelled else "idle"}
    return accepted(request, "compact-cancel", state, to=page_of(code))


@endpoint("POST")
async def edit(request: HttpRequest, code: str) -> HttpResponseBase:
    """Replace the version that the person has read by their text."""
    fields = await fields_for(request, code)
    text = fields.get("text", "").replace("\r\n", "\n")
    text = forms.storable("text", text, longest=SUMMARY_LENGTH)
    if not text.strip():
        raise InvalidInput.of(
            "text", "The summary is empty. To go on without one, clear or undo it instead."
        )
    version = await summaries.edit_summary(
        user_id(request), code, in_stored_words(text), forms.required_number(fields, "version")
    )
    return accepted(request, "summary-edit", {"version": version}, to=page_of(code))


@endpoint("POST")
async def restore(request: HttpRequest, code: str) -> HttpResponseBase:
    """Make an older version active; 0 means no summary."""
    wanted = forms.required_number(await fields_for(request, code), "version")
    version = await summaries.restore(user_id(request), code, wanted)
    return accepted(request, "summary-restore", {"version": version}, to=page_of(code))


@endpoint("POST")
async def undo(request: HttpRequest, code: str) -> HttpResponseBase:
    """Undo the last change of the summary: that of ``version``, if the person names one."""
    seen = forms.number(await fields_for(request, code), "version")
    version = await summaries.undo(user_id(request), code, seen)
    return accepted(request, "summary-undo", {"version": version}, to=page_of(code))


@endpoint("POST")
async def redo(request: HttpRequest, code: str) -> HttpResponseBase:
    """Redo what was undone last."""
    version = await summaries.redo(user_id(request), code)
    return accepted(request, "summary-redo", {"version": version}, to=page_of(code))


@endpoint("POST")
async def clear(request: HttpRequest, code: str) -> HttpResponseBase:
    """Clear the context: move the boundary to the end, with no summary."""
    version = await summaries.clear(user_id(request), code)
    return accepted(request, "clear", {"version": version}, to=page_of(code))
