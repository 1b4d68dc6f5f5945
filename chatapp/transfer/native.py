"""Our own format: a conversation as JSON, complete and readable again, and as Markdown for people.

``{"format": "palimpsest", "version": 1, "conversation": {…}, "summaries": […], "messages": […]}``
with every message, superseded ones included, under its own ``seq``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, cast

from chatapp.errors import ImportInvalid
from chatapp.text.safety import visible
from chatapp.transfer import fields, own_state
from chatapp.transfer.openai_messages import ROLES
from chatapp.transfer.own_sources import Sources
from chatapp.transfer.spooled import SpooledMessages
from chatapp.transfer.values import ForeignConversation, ForeignMessage
from compression.tools.texts import mended
from compression.types import Role

#: The mark of our exports, and the version of their format.
FORMAT = "palimpsest"
VERSION = 1
# Seconds: no tool takes a day.
_LONGEST = 86_400
_HEADINGS = {"user": "You", "assistant": "Assistant", "tool": "Tool result"}


def is_conversation(value: Mapping[str, Any]) -> bool:
    """Whether an object is one of our own exports."""
    return value.get("format") == FORMAT


def read(value: Mapping[str, Any], messages: Iterable[Any] | None = None) -> ForeignConversation:
    """One conversation with its settings, its system prompt and the versions of its summary.

    ``messages``, if given, replace those in ``value``. Raises ImportInvalid for another version of
    the format, and if there are no messages.
    """
    if value.get("version") != VERSION:
        raise ImportInvalid("This export was made by another version and cannot be read.")
    left_out: Counter[str] = Counter()
    about = fields.mapping(value.get("conversation"))
    listed = fields.listing(value.get("messages")) if messages is None else messages
    found = SpooledMessages()
    sources = Sources(fields.listing(value.get("summaries")))
    renumbered = False
    for raw in listed:
        one = fields.mapping(raw)
        message = _message(one, left_out)
        if message is None:
            renumbered = True
            continue
        found.append(message)
        sources.add(len(found), one, message)
        renumbered = renumbered or one.get("seq") != len(found)
    if not found:
        raise ImportInvalid("This conversation holds no messages. It was not imported.")
    own = own_state.read(value, left_out, sources=sources, messages=0 if renumbered else len(found))
    return ForeignConversation(
        messages=found,
        title=fields.title(about.get("title")),
        source=FORMAT,
        source_id=fields.name(about.get("code")),
        created_at=fields.time(about.get("created_at"), left_out),
        updated_at=fields.time(about.get("updated_at"), left_out),
        left_out=dict(left_out),
        own=own,
    )


def _message(value: Mapping[str, Any], left_out: Counter[str]) -> ForeignMessage | None:
    role = value.get("role")
    if not isinstance(role, str) or role not in ROLES:
        left_out["message without a known role"] += 1
        return None
    turn = value.get("turn")
    return ForeignMessage(
        role=cast(Role, role),
        text=fields.storable(value.get("text"), left_out),
        reasoning=fields.storable(value.get("reasoning"), left_out),
        tool_calls=_calls(value.get("tool_calls"), left_out),
        tool_call_id=fields.name(value.get("tool_call_id")),
        tool_name=fields.name(value.get("tool_name")),
        seconds=_seconds(value.get("seconds")),
        created_at=fields.time(value.get("created_at"), left_out),
        partial=value.get("status") not in (None, "complete"),
        superseded=bool(value.get("superseded")),
        pinned=bool(value.get("pinned")),
        masked=bool(value.get("masked")),
        added_context=fields.storable(value.get("added_context"), left_out),
        turn=turn if isinstance(turn, int) else None,
        turn_status=fields.name(value.get("turn_status")),
        model=fields.name(value.get("model")),
    )


def _seconds(value: Any) -> float | None:
    """A time that a tool may have taken; None for anything else."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _LONGEST:
        return float(value)
    return None


def _calls(value: Any, left_out: Counter[str]) -> tuple[dict[str, Any], ...]:
    calls = []
    for one in fields.listing(value):
        call = fields.mapping(one)
        function = fields.mapping(call.get("function"))
        identifier, name = fields.name(call.get("id")), fields.name(function.get("name"))
        if not identifier or not name:
            left_out["tool call without id or name"] += 1
            continue
        arguments = fields.storable(function.get("arguments"), left_out)
        # The server's own fields go back to it with the call.
        inside = {key: part for key, part in function.items() if key not in {"name", "arguments"}}
        extra = {key: part for key, part in call.items() if key not in {"id", "type", "function"}}
        calls.append(
            {
                **mended(extra),
                "id": identifier,
                "type": "function",
                "function": {**mended(inside), "name": name, "arguments": arguments},
            }
        )
    return tuple(calls)


def markdown_head(conversation: Mapping[str, Any]) -> str:
    """The beginning of the Markdown of a conversation."""
    title = visible(" ".join(str(conversation["title"]).split())) or "Conversation"
    return f"# {title}\n\n{conversation['created_at'][:16].replace('T', ' ')} UTC\n"


def markdown_message(message: Mapping[str, Any]) -> str:
    """One message as Markdown: its text unchanged, calls and results as fenced blocks."""
    marks = [
        word
        for word, on in (
            ("superseded", message["superseded"]),
            ("pinned", message["pinned"]),
            ("not finished", message["status"] != "complete"),
        )
        if on
    ]
    when = str(message["created_at"])[:16].replace("T", " ")
    head = f"\n## {_HEADINGS.get(message['role'], message['role'])}, {when}"
    parts = [f"{head} ({', '.join(marks)})" if marks else head]
    text = message["text"]
    if message["role"] == "tool":
        parts.append(fields.fenced(text))
    elif text:
        parts.append(text)
    for call in message["tool_calls"]:
        function = fields.mapping(call.get("function"))
        arguments = str(function.get("arguments", ""))
        parts.append(f"Called {function.get('name', '')}:\n\n{fields.fenced(arguments, 'json')}")
    return "\n\n".join(parts) + "\n"


def markdown_summary(summary: Mapping[str, Any]) -> str:
    """The active summary, for the end of the Markdown."""
    return (
        f"\n---\n\nWhat the model sees in place of messages 1 to {summary['through_seq']} "
        f"(version {summary['version']}):\n\n{summary['text']}\n"
    )
