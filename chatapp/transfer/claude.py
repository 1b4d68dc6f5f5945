"""Reader of Claude's export: each conversation has a list of messages with parts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from chatapp.errors import ImportInvalid
from chatapp.transfer import fields
from chatapp.transfer.chatgpt import CYCLE, OTHER_BRANCH
from chatapp.transfer.values import ForeignConversation, ForeignMessage
from compression.types import Role

SENDERS: Mapping[str, Role] = {"human": "user", "assistant": "assistant"}


def is_conversation(value: Mapping[str, Any]) -> bool:
    """Whether an object looks like one of Claude's conversations."""
    return isinstance(value.get("chat_messages"), list)


def read(value: Mapping[str, Any]) -> ForeignConversation:
    """One conversation. Raises ImportInvalid if no message of it is left."""
    left_out: Counter[str] = Counter()
    every = [fields.mapping(one) for one in fields.listing(value.get("chat_messages"))]
    path = _path(every, value.get("current_leaf_message_uuid"), left_out)
    messages = [made for one in path if (made := _message(one, left_out)) is not None]
    if not messages:
        raise ImportInvalid("This conversation holds no messages. It was not imported.")
    return ForeignConversation(
        messages=tuple(messages),
        title=fields.title(value.get("name")),
        source="claude",
        source_id=fields.name(value.get("uuid")),
        created_at=fields.time(value.get("created_at"), left_out),
        updated_at=fields.time(value.get("updated_at"), left_out),
        left_out=dict(left_out),
    )


def _path(
    every: Sequence[Mapping[str, Any]], leaf: Any, left_out: Counter[str]
) -> Sequence[Mapping[str, Any]]:
    """The messages up to the current one; all, in the file's order, if that is unknown."""
    by_id = {one["uuid"]: one for one in every if isinstance(one.get("uuid"), str)}
    linked = any(isinstance(one.get("parent_message_uuid"), str) for one in every)
    if not linked or not isinstance(leaf, str) or leaf not in by_id:
        return every
    path: list[Mapping[str, Any]] = []
    seen: set[str] = set()
    current: Any = leaf
    while isinstance(current, str) and current in by_id:
        if current in seen:
            left_out[CYCLE] += 1
            break
        seen.add(current)
        path.append(by_id[current])
        current = by_id[current].get("parent_message_uuid")
    if len(every) > len(path):
        left_out[OTHER_BRANCH] += len(every) - len(path)
    return path[::-1]


def _message(value: Mapping[str, Any], left_out: Counter[str]) -> ForeignMessage | None:
    sender = value.get("sender")
    role = SENDERS.get(sender) if isinstance(sender, str) else None
    if role is None:
        left_out["message without a known role"] += 1
        return None
    thoughts: list[str] = []
    parts = [_part(one, thoughts, left_out) for one in _content(value)]
    attached = [_attachment(fields.mapping(one), left_out) for one in _attachments(value)]
    spoken = (
        parts if any(part.strip() for part in parts) else [fields.text(value.get("text"), left_out)]
    )
    text = fields.joined((*attached, *spoken), left_out)
    reasoning = fields.joined(thoughts, left_out) if role == "assistant" else ""
    # A reply that was stopped while the model was reasoning has nothing else.
    if not text.strip() and not reasoning:
        left_out["empty message"] += 1
        return None
    return ForeignMessage(
        role=role,
        text=text,
        reasoning=reasoning,
        created_at=fields.time(value.get("created_at"), left_out),
    )


def _content(value: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The parts of a message; older exports have a text, which becomes one part."""
    content = value.get("content")
    parts = [content] if isinstance(content, str) else fields.listing(content)
    return [
        {"type": "text", "text": one} if isinstance(one, str) else fields.mapping(one)
        for one in parts
    ]


def _attachments(value: Mapping[str, Any]) -> list[Any]:
    return [*fields.listing(value.get("attachments")), *fields.listing(value.get("files"))]


def _part(part: Mapping[str, Any], thoughts: list[str], left_out: Counter[str]) -> str:
    """One part as text: calls and results as fenced blocks, others as a line that says so."""
    kind = part.get("type")
    if kind == "text":
        return fields.text(part.get("text"), left_out)
    if kind == "thinking":
        thought = fields.text(part.get("thinking"), left_out) or _summarised(part, left_out)
        if thought.strip():
            thoughts.append(thought)
        return ""
    if kind == "tool_use":
        return _call(part, left_out)
    if kind == "tool_result":
        inner = part.get("content")
        texts = (
            [inner]
            if isinstance(inner, str)
            else [fields.mapping(one).get("text") for one in fields.listing(inner)]
        )
        joined = "\n".join(fields.text(one, left_out) for one in texts)
        return f"Result of {fields.name(part.get('name')) or 'a tool'}:\n\n{fields.fenced(joined)}"
    if isinstance(part.get("text"), str):
        return fields.text(part["text"], left_out)
    shown, title = fields.name(kind) or "unknown", fields.title(part.get("title"))
    left_out[f"part of type {shown}"] += 1
    return f"[{shown}{f' ({title})' if title else ''}: left out at import]"


def _summarised(part: Mapping[str, Any], left_out: Counter[str]) -> str:
    """The summary of reasoning that is not in the file itself."""
    summaries = (
        fields.mapping(one).get("summary") for one in fields.listing(part.get("summaries"))
    )
    return "\n".join(text for one in summaries if (text := fields.text(one, left_out)).strip())


def _call(part: Mapping[str, Any], left_out: Counter[str]) -> str:
    """A tool's arguments; of a call that wrote a document, the document's text."""
    called = fields.mapping(part.get("input"))
    name = fields.name(part.get("name")) or "a tool"
    content = called.get("content")
    if isinstance(content, str):
        title = fields.title(called.get("title"))
        language = called.get("language")
        block = fields.fenced(
            fields.text(content, left_out), language if isinstance(language, str) else ""
        )
        return f"Called {name}{f' ({title})' if title else ''}:\n\n{block}"
    arguments = json.dumps(called, ensure_ascii=False, indent=1)
    return f"Called {name}:\n\n{fields.fenced(fields.text(arguments, left_out), 'json')}"


def _attachment(value: Mapping[str, Any], left_out: Counter[str]) -> str:
    name = fields.title(value.get("file_name")) or "file"
    content = fields.text(value.get("extracted_content"), left_out)
    if content.strip():
        return f"{name}:\n\n{fields.fenced(content)}"
    left_out["attached file"] += 1
    return f"[{name}: left out at import]"
