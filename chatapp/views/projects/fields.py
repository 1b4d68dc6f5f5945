"""Checks of what people type about projects; each raises InvalidInput."""

from __future__ import annotations

from collections.abc import Mapping

from chatapp import forms
from chatapp.errors import InvalidInput
from chatapp.live.project_views import COLOURS
from chatapp.text.lengths import INSTRUCTIONS_LENGTH, LINE_LENGTH, PROJECT_NAME_LENGTH
from chatapp.text.safety import without_hidden
from compression.types import Section


def name(fields: Mapping[str, str]) -> str:
    """A project's name on one line, not blank."""
    text = " ".join(fields.get("name", "").split())
    if not without_hidden(text).strip():
        raise InvalidInput.of("name", "Give the project a name.")
    return forms.storable("name", text, longest=PROJECT_NAME_LENGTH)


def colour(fields: Mapping[str, str]) -> str:
    """One of the colours; empty for none."""
    value = fields.get("colour", "")
    if value and value not in COLOURS:
        raise InvalidInput.of("colour", f"Choose one of: {', '.join(COLOURS)}.")
    return value


def instructions(fields: Mapping[str, str]) -> str:
    """What is asked of the model in all conversations of the project."""
    text = fields.get("instructions", "").replace("\r\n", "\n").strip()
    return forms.storable("instructions", text, longest=INSTRUCTIONS_LENGTH)


def line_text(fields: Mapping[str, str]) -> str:
    """The text of a line; blank ones are refused where lines are changed."""
    text = fields.get("text", "").replace("\r\n", "\n").strip()
    return forms.storable("text", text, longest=LINE_LENGTH)


def section(fields: Mapping[str, str]) -> Section:
    """The heading of a line; context without one."""
    try:
        return Section(fields.get("section") or Section.CONTEXT)
    except ValueError:
        raise InvalidInput.of("section", f"Choose one of: {', '.join(Section)}.") from None
