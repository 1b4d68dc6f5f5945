"""The commands on a project and on the lines that it keeps."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse

from chatapp import forms
from chatapp.actions.projects import keeping
from chatapp.actions.projects import settings as actions
from chatapp.conversations.projects import rows
from chatapp.errors import InvalidInput
from chatapp.views.answers import accepted, endpoint, fields_for, fields_of, user_id
from chatapp.views.projects import fields as checks
from compression.ledger.lines import Act, LineChange

Handler = Callable[..., Coroutine[Any, Any, HttpResponseBase]]

# The stored fields by the names of the form's.
_SETTINGS: Mapping[str, tuple[str, Callable[[Mapping[str, str]], str]]] = {
    "name": ("name", checks.name),
    "colour": ("colour", checks.colour),
    "instructions": ("instructions", checks.instructions),
    "model": ("default_model", forms.model_name),
}
_ACTS = (Act.STRIKE, Act.REWRITE, Act.ADD)


async def _fields(request: HttpRequest, slug: str) -> dict[str, str]:
    """The fields of a command; NotFound comes first, so that a stranger learns nothing."""
    await rows.aview(user_id(request), slug)
    return fields_of(request)


@endpoint("POST")
async def settings(request: HttpRequest, slug: str) -> HttpResponseBase:
    """Change name, colour, instructions or model; other fields stay."""
    fields = await _fields(request, slug)
    result = {name: check(fields) for name, (_, check) in _SETTINGS.items() if name in fields}
    changes = {_SETTINGS[name][0]: value for name, value in result.items()}
    await actions.change(user_id(request), slug, changes)
    return accepted(request, "project-settings", result, to=_page(slug))


def archived(command: str, *, on: bool) -> Handler:
    """The view that archives a project or takes it out of the archive."""

    @endpoint("POST")
    async def view(request: HttpRequest, slug: str) -> HttpResponseBase:
        await rows.aset_archived(user_id(request), slug, on=on)
        return accepted(request, command, {"done": True}, to=_page(slug))

    return view


@endpoint("POST")
async def delete(request: HttpRequest, slug: str) -> HttpResponseBase:
    """Delete the project and its lines; its conversations stay."""
    await actions.remove(user_id(request), slug)
    return accepted(request, "project-delete", {"done": True}, to=reverse("projects"))


@endpoint("POST")
async def change_line(request: HttpRequest, slug: str) -> HttpResponseBase:
    """Change a line of the version that the person has seen.

    ``act`` says how; with the line's key after a blank, ``line`` is not needed.
    """
    fields = await _fields(request, slug)
    act, _, key = fields.get("act", "").partition(" ")
    if act not in _ACTS:
        raise InvalidInput.of("act", f"Choose one of: {', '.join(_ACTS)}.")
    change = LineChange(
        act=Act(act),
        key=key or fields.get("line", ""),
        text=checks.line_text(fields),
        section=checks.section(fields),
    )
    version = 0 if change.act is Act.ADD else forms.required_number(fields, "version")
    done = await keeping.change_line(user_id(request), slug, change, version)
    return _changed(request, "project-line-change", done)


@endpoint("POST")
async def suggestion(request: HttpRequest, slug: str) -> HttpResponseBase:
    """Keep a suggested line, or have it never suggested again."""
    fields = await _fields(request, slug)
    section, text = checks.section(fields), checks.line_text(fields)
    act = fields.get("act", "")
    if act == "keep":
        code = fields.get("code", "")
        done = await keeping.accept(user_id(request), slug, section, text, code)
    elif act == "refuse":
        done = await keeping.refuse(user_id(request), slug, section, text)
    else:
        raise InvalidInput.of("act", "Choose keep or refuse.")
    return _changed(request, "project-suggestion", done)


@endpoint("POST")
async def undo(request: HttpRequest, slug: str) -> HttpResponseBase:
    """Take back the change that made ``version``."""
    version = forms.required_number(await _fields(request, slug), "version")
    done = await keeping.undo(user_id(request), slug, version)
    return _changed(request, "project-undo", done)


@endpoint("POST")
async def redo(request: HttpRequest, slug: str) -> HttpResponseBase:
    """Bring back what the Undo that made ``version`` took away."""
    version = forms.required_number(await _fields(request, slug), "version")
    done = await keeping.redo(user_id(request), slug, version)
    return _changed(request, "project-redo", done)


@endpoint("POST")
async def keep(request: HttpRequest, code: str) -> HttpResponseBase:
    """Keep a line of a conversation's summary for its project."""
    fields = await fields_for(request, code)
    version = forms.number(fields, "version")
    done = await keeping.keep(user_id(request), code, fields.get("line", ""), version)
    return _changed(request, "summary-keep", done)


def _changed(request: HttpRequest, command: str, done: keeping.Done) -> HttpResponseBase:
    """The answer after a change. A page goes on at the line: a browser focuses it there."""
    result = {"project": done.slug, "version": done.version, "line": done.key}
    place = f"line-{done.key}" if done.key else "kept"
    return accepted(request, command, result, to=f"{_page(done.slug)}#{place}")


def _page(slug: str) -> str:
    """The address of a project."""
    return reverse("project", args=[slug])
