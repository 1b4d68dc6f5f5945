"""A call for a page: its line from the file, and its request and reply in parts. Synchronous."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from chatapp.activity.changes import Changes, compared, messages_of, text_of
from chatapp.activity.files import LogFiles, Position
from chatapp.activity.lines import decoded
from chatapp.conversations.model_calls.listing import Line, OneCall

#: Messages of a request that a page shows, at its beginning and at its end.
FIRST_SHOWN: Final = 40
LAST_SHOWN: Final = 360
#: Characters of one text on a page. The file has all of it.
LONGEST_SHOWN: Final = 20_000
#: Lines of a changed text on a page.
MOST_LINES: Final = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownText:
    """A text as far as a page shows it."""

    text: str
    left_out: int
    """Characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownMessage:
    """A message of a request; with ``skipped``, so many messages that are not shown."""

    number: int = 0
    role: str = ""
    said: ShownText | None = None
    skipped: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownCall:
    """The parts of a call."""

    line: Mapping[str, Any] | None
    """None if the line is not on this server, or was removed."""
    messages: tuple[ShownMessage, ...] = ()
    options: str = ""
    """The rest of the request, as JSON."""
    texts: tuple[tuple[str, ShownText], ...] = ()
    """The parts of the reply that there are: ``reasoning``, ``text``, ``tool_calls``."""
    changes: Changes | None = None
    """Since the former request; None if that is not known."""


def line_at(files: LogFiles | None, at: Line) -> dict[str, Any] | None:
    """The line of a call; None if it is not here, or is another's."""
    try:
        if files is None or files.place() != at.place:
            return None
    except OSError:
        return None
    raw = files.read(Position(file=at.file, offset=at.offset, length=at.length))
    line = decoded(raw) if raw is not None else None
    return line if line is not None and line["call"] == at.view.call else None


def shown_call(files: LogFiles | None, one: OneCall) -> ShownCall:
    """A call in the parts that a page shows."""
    line = line_at(files, one.line)
    if line is None:
        return ShownCall(line=None)
    request, response = _mapping(line.get("request")), _mapping(line.get("response"))
    former = line_at(files, one.former) if one.former is not None and request else None
    before = _mapping(former.get("request")) if former else {}
    options = {name: value for name, value in request.items() if name != "messages"}
    return ShownCall(
        line=line,
        messages=_messages(messages_of(request)),
        options=_shown(_pretty(options)).text if options else "",
        texts=tuple(_texts(response)),
        changes=_bounded(compared(before, request)) if before else None,
    )


def _texts(response: Mapping[str, Any]) -> list[tuple[str, ShownText]]:
    texts = []
    for name in ("reasoning", "text", "tool_calls"):
        value = response.get(name)
        if value:
            text = value if isinstance(value, str) else _pretty(value)
            texts.append((name, _shown(text)))
    return texts


def _messages(messages: Sequence[Mapping[str, Any]]) -> tuple[ShownMessage, ...]:
    shown = [
        ShownMessage(number=n, role=str(one.get("role") or ""), said=_shown(text_of(one)))
        for n, one in enumerate(messages, start=1)
        if n <= FIRST_SHOWN or n > len(messages) - LAST_SHOWN
    ]
    skipped = len(messages) - len(shown)
    if skipped:
        shown.insert(FIRST_SHOWN, ShownMessage(skipped=skipped))
    return tuple(shown)


def _bounded(changes: Changes) -> Changes:
    """The changes as far as a page shows them."""
    steps = (
        replace(step, text=step.text[:LONGEST_SHOWN], lines=step.lines[:MOST_LINES])
        for step in changes.steps[:LAST_SHOWN]
    )
    return Changes(steps=tuple(steps), options=changes.options)


def _shown(text: str) -> ShownText:
    return ShownText(text=text[:LONGEST_SHOWN], left_out=max(0, len(text) - LONGEST_SHOWN))


def _pretty(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
