"""Arguments of calls: what a model wrote, read as JSON, and the JSON that is sent back. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn

from compression.tools.texts import mended

#: The key under which text that is no JSON object goes back to the model, as servers refuse others.
INVALID = "invalid_arguments"


class InvalidArguments(ValueError):
    """The arguments are not one JSON object. The message is for the model."""


def read(text: str) -> dict[str, Any]:
    """The object that the arguments are. Raises InvalidArguments."""
    try:
        value = mended(json.loads(text, parse_constant=_refuse))
    except InvalidArguments:
        raise
    except RecursionError:
        raise InvalidArguments("The arguments are nested too deeply.") from None
    except json.JSONDecodeError as error:
        where = f"{error.msg} at character {error.pos + 1}"
        raise InvalidArguments(f"The arguments are not valid JSON: {where}.") from None
    except ValueError as error:
        raise InvalidArguments(f"The arguments are not valid JSON: {error}.") from None
    if not isinstance(value, dict):
        raise InvalidArguments("The arguments are not a JSON object.")
    return value


def _refuse(constant: str) -> NoReturn:
    raise InvalidArguments(f"The arguments are not valid JSON: {constant} is no number.")


def as_object(text: str) -> dict[str, Any]:
    """The object that the arguments are; if they are none, one that holds their text."""
    try:
        return read(text)
    except InvalidArguments:
        return {INVALID: mended(text)}


def as_json(text: str) -> str:
    """The arguments as a server takes them: unchanged if possible, else :func:`as_object` as JSON.

    The same text always gives the same JSON, so that a request stays the same.
    """
    try:
        value = read(text)
    except InvalidArguments:
        return json.dumps({INVALID: mended(text)}, ensure_ascii=False)
    # An escaped half of a surrogate pair is read by Python, and refused by others.
    if "\\u" in text and value != json.loads(text):
        return json.dumps(value, ensure_ascii=False)
    return text


def wire_call(call: Mapping[str, Any]) -> dict[str, Any]:
    """A stored call as it is sent: its arguments are valid JSON, its other fields unchanged."""
    function = call.get("function")
    if not isinstance(function, Mapping):
        return dict(call)
    text = function.get("arguments")
    return {
        **call,
        "function": {**function, "arguments": as_json(text if isinstance(text, str) else "")},
    }
