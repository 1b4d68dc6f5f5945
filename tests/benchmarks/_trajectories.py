"""Conversations with tools: those under ``DATA``, one after another, or the project's own."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.benchmarks._models import prose

Message = dict[str, Any]
#: Turns of the project's own conversation, and calls in each.
TURNS, ROUNDS = 40, 6
ROLES = ("user", "assistant", "tool")
#: Messages of a list that is a conversation.
SHORTEST = 4


def trajectories() -> Iterator[list[Message]]:
    """Lists of OpenAI-style messages; every call has its result.

    ``DATA`` names a folder with JSON files that hold such lists, or coding trajectories: steps with
    an ``action`` and an ``observation``.
    """
    folder = os.environ.get("DATA", "")
    if not folder:
        yield _own()
        return
    for path in sorted(Path(folder).rglob("*")):
        if path.suffix not in {".json", ".traj"}:
            continue
        try:
            value = json.loads(path.read_text("utf-8"))
        except ValueError:
            continue
        yield from _found(value)


def _found(value: Any) -> Iterator[list[Message]]:
    if isinstance(value, dict):
        steps, said = value.get("trajectory"), value.get("history")
        if isinstance(steps, list) and isinstance(said, list):
            spoken = [one for one in said if isinstance(one, dict) and "role" in one]
            uses_roles = any(one["role"] == "tool" for one in spoken)
            yield _cleaned(spoken) if uses_roles else _stepped(spoken, steps)
            return
        for inner in value.values():
            yield from _found(inner)
    elif isinstance(value, list):
        said = [one for one in value if isinstance(one, dict) and one.get("role") in ROLES]
        if len(said) >= SHORTEST:
            yield _cleaned(said)
            return
        for inner in value:
            yield from _found(inner)


def _cleaned(messages: list[Message]) -> list[Message]:
    """The same without system messages, with ids that are unique, and with texts only."""
    kept: list[Message] = []
    known: dict[str, str] = {}
    for one in messages:
        role = one["role"]
        if role not in ROLES:
            continue
        message: Message = {"role": role, "text": _text(one.get("content"))}
        calls = [dict(call) for call in one.get("tool_calls") or ()]
        for call in calls:
            known[str(call["id"])] = call["id"] = f"call_{len(kept)}_{len(known)}"
        if calls:
            message["tool_calls"] = tuple(calls)
        if role == "tool":
            ids = one.get("tool_call_ids") or [one.get("tool_call_id")]
            message["tool_call_id"] = known.get(str(ids[0]), "")
            message["tool_name"] = str(one.get("name") or "tool")
        kept.append(message)
    return kept


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return str(content or "")


def _stepped(said: list[Message], steps: list[Message]) -> list[Message]:
    """A coding trajectory: the task, then each action as a call, and what it showed."""
    task = next((_text(one.get("content")) for one in said if one["role"] == "user"), "Go on.")
    messages: list[Message] = [{"role": "user", "text": task}]
    for number, step in enumerate(steps):
        arguments = json.dumps({"command": str(step.get("action", ""))})
        messages += _round(
            str(step.get("thought", "")),
            "shell",
            arguments,
            str(step.get("observation", "")),
            number,
        )
    return messages


def _round(text: str, name: str, arguments: str, result: str, number: int) -> list[Message]:
    identity = f"call_{number}"
    call = {
        "id": identity,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }
    return [
        {"role": "assistant", "text": text, "tool_calls": (call,)},
        {"role": "tool", "text": result, "tool_call_id": identity, "tool_name": name},
    ]


def _own() -> list[Message]:
    """Files that are read, written and tried, of several sizes."""
    chance = random.Random(7)
    messages: list[Message] = []
    for turn in range(TURNS):
        messages.append({"role": "user", "text": f"Task {turn}. {prose(40, chance)}"})
        for number in range(ROUNDS):
            path = f"src/part{turn}/file{number}.py"
            name, arguments, result = chance.choice(
                [
                    ("read_file", {"path": path}, prose(chance.randrange(100, 900), chance)),
                    ("shell", {"command": f"pytest {path}"}, "passed\n" * 30 + "exit code 0"),
                    ("write_file", {"path": path, "content": prose(300, chance)}, "written"),
                ]
            )
            messages += _round("", name, json.dumps(arguments), result, turn * ROUNDS + number)
        messages.append({"role": "assistant", "text": prose(80, chance)})
    return messages
