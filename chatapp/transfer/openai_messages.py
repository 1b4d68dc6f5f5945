"""A JSON list of OpenAI-style chat messages, as scripts and logs store them.

Messages with the roles ``system`` and ``developer`` have no effect, since a foreign file must not
give orders to a model. Those at the head of the file become ``system_prompt``, which a person may
accept; others are left out and counted.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, BinaryIO, cast

from chatapp.errors import ImportInvalid
from chatapp.llm.openai_compatible.pieces import detailed_reasoning
from chatapp.text.lengths import NAME_LENGTH
from chatapp.text.safety import problems, without_hidden
from chatapp.transfer.json_stream import Place, objects
from chatapp.transfer.spooled import SpooledMessages
from chatapp.transfer.values import ForeignConversation, ForeignMessage
from compression.types import Role

#: Enough for hundreds of books; a larger file is more likely the wrong one.
MAX_BYTES = 200 * 1024 * 1024

SYSTEM_ROLES = frozenset({"system", "developer"})
ROLES = frozenset({"user", "assistant", "tool"})
TEXT_PARTS = frozenset({"text", "input_text", "output_text"})
TIMES = ("created_at", "timestamp", "created", "create_time")
SYSTEM_LEFT_OUT = "system message"
TIME_LEFT_OUT = "time that is no time"
HIDDEN_LEFT_OUT = "text with hidden characters, which were taken out"
SHORTENED = "text of a message beyond its first million characters"
#: Characters of one text that are imported: five times what a person may send. Storing, indexing
#: and showing that many takes a tenth of a second, for which others wait.
MOST_CHARACTERS = 1_000_000
_REST_LEFT_OUT = "\n\n[The rest of this was left out at import.]"
#: Larger numbers are milliseconds: as seconds they would be after the year 5000.
_MILLISECONDS = 1e11


def read(stream: BinaryIO, *, max_bytes: int = MAX_BYTES) -> ForeignConversation:
    """Read a whole list. Raises ImportInvalid, with the message's number and line, for anything
    else, for text that cannot be stored, and for more than ``max_bytes`` bytes."""
    return collect(objects(stream, max_bytes=max_bytes))


def collect(listed: Iterable[tuple[Place, dict[str, Any]]]) -> ForeignConversation:
    """The conversation made of a list's objects, each with its place; as :func:`read`."""
    messages = SpooledMessages()
    system: list[str] = []
    left_out: Counter[str] = Counter()
    # Id → name of the calls that no result has answered yet.
    calls: dict[str, str] = {}
    known: dict[str, str] = {}
    orphan_results = 0
    for place, value in listed:
        if str(value.get("role")) in SYSTEM_ROLES:
            text = _text(place, value, left_out)
            if messages:
                left_out[SYSTEM_LEFT_OUT] += 1
            else:
                system.append(text)
            continue
        message = _message(place, value, left_out)
        for call in message.tool_calls:
            calls[call["id"]] = known[call["id"]] = call["function"]["name"]
        if message.role == "tool":
            orphan_results += message.tool_call_id not in known
            calls.pop(message.tool_call_id, None)
            message = _named(message, known)
        messages.append(message)
    if not messages:
        raise ImportInvalid("The file holds no messages. Nothing was imported.")
    return ForeignConversation(
        messages=messages,
        system_prompt="\n\n".join(system),
        left_out=dict(left_out),
        orphan_results=orphan_results,
        orphan_calls=len(calls),
    )


def _message(place: Place, value: Mapping[str, Any], left_out: Counter[str]) -> ForeignMessage:
    role = value.get("role")
    if not isinstance(role, str) or role not in ROLES:
        place.refuse("its role is none of user, assistant, tool, system and developer.")
    if value.get("function_call"):
        left_out["function_call of the old form"] += 1
    if role != "tool" and value.get("name"):
        left_out["name of a speaker"] += 1
    calls = _calls(place, value.get("tool_calls"), left_out)
    if calls and role != "assistant":
        place.refuse("only an assistant's message may have tool_calls.")
    reasoning = value.get("reasoning_content") or value.get("reasoning")
    reasoning = reasoning or detailed_reasoning(value.get("reasoning_details"))
    return ForeignMessage(
        role=cast(Role, role),
        text=_text(place, value, left_out),
        reasoning=shown_only(_string(place, "its reasoning", reasoning), left_out)
        if role == "assistant"
        else "",
        tool_calls=calls,
        tool_call_id=_name(place, "tool_call_id", value) if role == "tool" else "",
        tool_name=_name(place, "name", value) if role == "tool" else "",
        created_at=_time(value, left_out),
    )


def _named(message: ForeignMessage, known: Mapping[str, str]) -> ForeignMessage:
    """A tool message with the name of its call, if the file gives only the id."""
    if message.tool_name or message.tool_call_id not in known:
        return message
    return ForeignMessage(
        role=message.role,
        text=message.text,
        tool_call_id=message.tool_call_id,
        tool_name=known[message.tool_call_id],
        created_at=message.created_at,
    )


def _string(place: Place, what: str, value: Any) -> str:
    if not isinstance(value, str):
        place.refuse(f"{what} is not text.")
    for sentence in problems(value):
        place.refuse(f"{what} cannot be stored. {sentence}")
    return value


def shortened(text: str, left_out: Counter[str]) -> str:
    """``text`` cut to what is imported, with a line that says so; the cut is counted."""
    if len(text) <= MOST_CHARACTERS:
        return text
    left_out[SHORTENED] += 1
    return text[: MOST_CHARACTERS - len(_REST_LEFT_OUT)] + _REST_LEFT_OUT


def shown_only(text: str, left_out: Counter[str]) -> str:
    """``text`` without hidden characters, which a model would read unseen, and cut if too long.

    Both are counted.
    """
    text = shortened(text, left_out)
    kept = without_hidden(text)
    if kept != text:
        left_out[HIDDEN_LEFT_OUT] += 1
    return kept


def _name(place: Place, key: str, value: Mapping[str, Any]) -> str:
    name = _string(place, f"its {key}", value.get(key) or "")
    if len(name) > NAME_LENGTH:
        place.refuse(f"its {key} is longer than {NAME_LENGTH} characters.")
    return name


def _text(place: Place, value: Mapping[str, Any], left_out: Counter[str]) -> str:
    """The content as text: of a string, a list of parts, or nothing."""
    return shown_only(_whole_text(place, value, left_out), left_out)


def _whole_text(place: Place, value: Mapping[str, Any], left_out: Counter[str]) -> str:
    content = value.get("content")
    if content is None:
        return _string(place, "its refusal", value.get("refusal") or "")
    if isinstance(content, str):
        return _string(place, "its content", content)
    if not isinstance(content, list):
        place.refuse("its content is neither text nor a list of parts.")
    return "\n\n".join(_part(place, part, left_out) for part in content)


def _part(place: Place, part: Any, left_out: Counter[str]) -> str:
    """The text of one part; a picture or file becomes a line that says so."""
    if not isinstance(part, dict):
        place.refuse("a part of its content is not an object.")
    kind = _string(place, "the type of a part of its content", part.get("type"))
    if kind in TEXT_PARTS:
        return _string(place, "a part of its content", part.get("text"))
    if kind == "refusal":
        return _string(place, "a part of its content", part.get("refusal"))
    kind = kind[:NAME_LENGTH]
    left_out[f"part of type {kind}"] += 1
    return f"[{kind}: left out at import]"


def _calls(place: Place, value: Any, left_out: Counter[str]) -> tuple[dict[str, Any], ...]:
    if not value:
        return ()
    if not isinstance(value, list):
        place.refuse("its tool_calls are not a list.")
    return tuple(_call(place, call, left_out) for call in value)


def _call(place: Place, value: Any, left_out: Counter[str]) -> dict[str, Any]:
    """A call in the form that is stored and sent; its arguments are text, valid JSON or not."""
    function = value.get("function") if isinstance(value, dict) else None
    if not isinstance(function, dict):
        place.refuse("one of its tool_calls has no function.")
    identifier, name = _name(place, "id", value), _name(place, "name", function)
    if not identifier or not name:
        place.refuse("one of its tool_calls has no id or no name.")
    arguments = function.get("arguments", "")
    if isinstance(arguments, dict):
        arguments = json.dumps(arguments, ensure_ascii=False)
    text = _string(place, "the arguments of one of its tool_calls", arguments)
    text = shown_only(text, left_out)
    return {
        "id": identifier,
        "type": "function",
        "function": {"name": name, "arguments": text},
    }


def _time(value: Mapping[str, Any], left_out: Counter[str]) -> datetime | None:
    """The message's first time, in UTC; an invalid one is counted, and gives None."""
    raw = next((value[key] for key in TIMES if value.get(key) is not None), None)
    if raw is None:
        return None
    try:
        return moment(raw)
    except (ValueError, OverflowError, OSError):
        left_out[TIME_LEFT_OUT] += 1
        return None


def moment(raw: Any) -> datetime:
    """ISO 8601 (without a zone: UTC) or seconds or milliseconds since 1970. Raises ValueError."""
    if isinstance(raw, bool) or not isinstance(raw, int | float | str):
        raise ValueError("not a time")
    try:
        seconds = float(raw)
    except ValueError:
        found = datetime.fromisoformat(str(raw))
        found = found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    else:
        found = datetime.fromtimestamp(seconds / (1000 if seconds > _MILLISECONDS else 1), UTC)
    if not 1970 <= found.year < 2200:
        raise ValueError("not a likely time")
    return found
