"""The form of answer requested from a summary model, and the reading of it. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from compression.exceptions import DraftRejected
from compression.judging.audit import check_delta
from compression.ledger.editing import delta_from_markdown
from compression.ledger.ledger import Delta, parse_delta
from compression.types import Section

KEYS = frozenset({"narrative", "add", "resolve", "supersede", "lift"})


def _shape(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(properties),
        "properties": dict(properties),
    }


def _list_of(items: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": dict(items)}


_INTEGER = {"type": "integer"}
_TEXT = {"type": "string"}
SCHEMA: Mapping[str, Any] = {
    "type": "json_schema",
    "json_schema": {
        "name": "compression",
        "strict": True,
        "schema": _shape(
            {
                "narrative": _TEXT,
                "add": _list_of(
                    _shape(
                        {
                            "section": {"type": "string", "enum": [one.value for one in Section]},
                            "text": _TEXT,
                            "sources": _list_of(_INTEGER),
                        }
                    )
                ),
                "resolve": _list_of(_INTEGER),
                "supersede": _list_of(
                    _shape({"id": _INTEGER, "text": _TEXT, "sources": _list_of(_INTEGER)})
                ),
                "lift": _list_of(_shape({"id": _INTEGER, "source": _INTEGER})),
            }
        ),
    },
}
"""The requested answer, in the shape of OpenAI's ``response_format``."""


def read_delta(text: str) -> Delta:
    """The delta in a model's answer: one JSON object anywhere in it, or the known headings.

    Raises :class:`DraftRejected` with the first mistake.
    """
    found = _find_object(text)
    delta = parse_delta(found) if found is not None else delta_from_markdown(text)
    check_delta(delta)
    return delta


def _find_object(text: str) -> object | None:
    """The first JSON object with one of our keys, else the first object of any kind."""
    decoder = json.JSONDecoder()
    first: object | None = None
    position, attempts = text.find("{"), 0
    while position >= 0 and attempts < 50:
        attempts += 1
        try:
            value, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            end = position + 1
        else:
            if isinstance(value, dict) and KEYS & value.keys():
                return value
            first = value if first is None else first
        position = text.find("{", end)
    looks_like_json = text.lstrip("` \njson").startswith("{")
    if first is None and looks_like_json:
        raise DraftRejected("The model's summary is not a whole JSON object.")
    return first if looks_like_json else None
