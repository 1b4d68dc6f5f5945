"""The export of the log: the lines of a person's calls, as far as they are on this server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from chatapp.activity.files import LogFiles
from chatapp.activity.lines import encoded
from chatapp.activity.reading import line_at
from chatapp.conversations.model_calls.listing import CallFilter, Line, alines

#: Lines that are read together; one of a large request has several megabytes.
PORTION = 50


async def exported(person: int, wanted: CallFilter, files: LogFiles | None) -> AsyncIterator[bytes]:
    """The lines, newest first. One that is elsewhere has the figures of the index, and no texts."""
    before = ""
    while True:
        places, before = await alines(person, wanted, before, PORTION)
        for place in places:
            yield await asyncio.to_thread(_line, files, place)
        if not before:
            return


def _line(files: LogFiles | None, place: Line) -> bytes:
    line = line_at(files, place)
    return encoded(line if line is not None else _from_index(place))


def _from_index(place: Line) -> dict[str, object]:
    """A line as the index knows it."""
    one = place.view
    counted = one.input_tokens is not None and one.output_tokens is not None
    usage = {
        "input_tokens": one.input_tokens,
        "output_tokens": one.output_tokens,
        "total_tokens": (one.input_tokens or 0) + (one.output_tokens or 0),
        "cached_tokens": one.cached_tokens,
    }
    return {
        "call": one.call,
        "timestamp": one.at.isoformat(timespec="milliseconds"),
        "project": one.project,
        "conversation": one.conversation or None,
        "turn": one.turn,
        "kind": one.kind,
        "model": one.model,
        "request": None,
        "response": None,
        "usage": usage if counted else None,
        "cost": one.cost,
        "duration": one.duration,
        "first_token": one.first_token,
        "error": {"code": one.error, "message": ""} if one.error else None,
    }
