"""A strict reader of requests: what the pickiest server would refuse in a list of messages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any


def faults(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """What is wrong with a request; empty when nothing is.

    One system message, then the user's; every call is followed at once by exactly one result, every
    result has its call; ids are unique in a message; arguments are one JSON object, without NaN.
    """
    roles = [str(one["role"]) for one in messages]
    found = []
    if roles[:2] != ["system", "user"] or roles.count("system") != 1:
        found.append(f"it begins with {roles[:2]}")
    waiting: list[str] = []
    for number, one in enumerate(messages):
        role = roles[number]
        if role == "tool":
            identity = str(one["tool_call_id"])
            if identity not in waiting:
                found.append(f"message {number}: a result without its call, or a second one")
            else:
                waiting.remove(identity)
            continue
        if waiting:
            found.append(f"message {number}: a call before it has no result")
        calls = one.get("tool_calls") or ()
        waiting = [str(call["id"]) for call in calls]
        if len(set(waiting)) < len(waiting) or (calls and role != "assistant"):
            found.append(f"message {number}: calls of one id, or of the {role}")
        found += [f"message {number}: {fault}" for call in calls if (fault := _fault_of(call))]
        if not calls and not str(one.get("content") or "").strip():
            found.append(f"message {number}: nothing is said")
    return [*found, *(["the last call has no result"] if waiting else [])]


def _fault_of(call: Mapping[str, Any]) -> str:
    arguments = call["function"]["arguments"]
    try:
        values = json.loads(arguments, parse_constant=_refuse)
        str(arguments).encode()
    except ValueError as error:
        return f"arguments are no JSON: {error}"
    return "" if isinstance(values, dict) else "arguments are no object"


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
