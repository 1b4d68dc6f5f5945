"""A summary line by line, and previews of the next one: pages, fragments and commands."""

from __future__ import annotations

import re
from collections.abc import Mapping

from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase
from django.urls import reverse

from chatapp import forms, wiring
from chatapp.actions import previews
from chatapp.conversations.summaries.lines import asummary_lines, awaiting_preview
from chatapp.errors import InvalidInput
from chatapp.views.answers import (
    accepted,
    endpoint,
    fields_for,
    user_id,
    wants_fragment,
    wants_json,
)
from chatapp.views.pages import rendered
from compression.ledger.lines import Act, LineChange
from compression.types import Section

LINE_LENGTH = 20_000
# A field that takes a line out of a preview or pins it: strike-e12, pin-n0.
_MARKED = re.compile(r"(strike|pin)-([en]\d{1,18})")


@endpoint("GET")
async def lines(request: HttpRequest, code: str) -> HttpResponseBase:
    """The active summary as lines; ``?place=`` keeps the ids of two such fragments apart."""
    found = await asummary_lines(user_id(request), code)
    if wants_json(request):
        return JsonResponse(found.as_json())
    place = "card" if request.GET.get("place") == "card" else ""
    template = "partials/summary/lines.html" if wants_fragment(request) else "lines.html"
    return await rendered(request, template, {"lines": found, "place": place})


@endpoint("POST")
async def change_line(request: HttpRequest, code: str) -> HttpResponseBase:
    """Change a line of the version that the person has read."""
    fields = await fields_for(request, code)
    try:
        # A button of a form sends both in one value.
        name, _, key = fields.get("act", "").partition(" ")
        act = Act(name)
    except ValueError:
        raise InvalidInput.of("act", f"Choose one of {', '.join(Act)}.") from None
    change = LineChange(
        act=act,
        key=key or fields.get("line", ""),
        text=_line_text(fields, "text"),
        section=_section(fields),
    )
    expected = forms.required_number(fields, "version")
    version = await previews.change_line(user_id(request), code, change, expected)
    to = reverse("summary-versions", args=[code])
    return accepted(request, "summary-line", {"version": version}, to=to)


def _section(fields: Mapping[str, str]) -> Section | None:
    name = fields.get("section", "")
    try:
        return Section(name) if name else None
    except ValueError:
        raise InvalidInput.of("section", f"Choose one of {', '.join(Section)}.") from None


def _line_text(fields: Mapping[str, str], name: str) -> str:
    text = fields.get(name, "").replace("\r\n", "\n").strip()
    return forms.storable(name, text, longest=LINE_LENGTH)


@endpoint("GET")
async def preview(request: HttpRequest, code: str) -> HttpResponseBase:
    """The preview that waits, and the form for a new one, from and to the messages given."""
    person = user_id(request)
    page = await wiring.services().apage(person, code)
    held = await awaiting_preview(person, code)
    if wants_json(request):
        return JsonResponse({"preview": held.as_json() if held else None})
    template = "partials/preview.html" if wants_fragment(request) else "preview.html"
    values = {
        "page": page,
        "preview": held,
        "from_seq": forms.number(request.GET, "from"),
        "through_seq": forms.number(request.GET, "through"),
    }
    return await rendered(request, template, values)


@endpoint("POST")
async def make(request: HttpRequest, code: str) -> HttpResponseBase:
    """Write a preview of the next summary."""
    fields = await fields_for(request, code)
    focus = forms.storable("focus", fields.get("focus", "").strip(), longest=forms.FOCUS_LENGTH)
    state = await previews.make(
        user_id(request),
        code,
        focus=focus,
        from_seq=forms.number(fields, "from_seq") or None,
        through_seq=forms.number(fields, "through_seq") or None,
    )
    return accepted(request, "preview-make", {"state": state}, to=_page(code), status=202)


@endpoint("POST")
async def apply(request: HttpRequest, code: str) -> HttpResponseBase:
    """Apply the preview, without the lines that were struck and with a rule that was added."""
    fields = await fields_for(request, code)
    preview_id = forms.required_number(fields, "preview")
    changes = _changes(fields)
    version = await previews.apply(user_id(request), code, preview_id, changes)
    to = reverse("summary-versions", args=[code])
    return accepted(request, "preview-apply", {"version": version}, to=to)


def _changes(fields: Mapping[str, str]) -> list[LineChange]:
    """The changes that the fields of a form stand for."""
    found = []
    for name, value in fields.items():
        marked = _MARKED.fullmatch(name)
        if marked is not None and value not in {"", "false", "0"}:
            found.append(LineChange(act=Act(marked[1]), key=marked[2]))
    struck = {one.key for one in found if one.act is Act.STRIKE}
    # A line that is taken out cannot be pinned as well.
    changes = [one for one in found if one.act is Act.STRIKE or one.key not in struck]
    rule = _line_text(fields, "rule")
    if rule:
        changes.append(LineChange(act=Act.ADD, text=rule, section=Section.CONSTRAINTS))
    return changes


@endpoint("POST")
async def discard(request: HttpRequest, code: str) -> HttpResponseBase:
    """Discard the preview."""
    preview_id = forms.required_number(await fields_for(request, code), "preview")
    await previews.discard(user_id(request), code, preview_id)
    return accepted(request, "preview-discard", {"state": "discarded"}, to=_page(code))


def _page(code: str) -> str:
    """The address of the preview."""
    return reverse("preview", args=[code])
