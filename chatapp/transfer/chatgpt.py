"""Reader of ChatGPT's export, in which a conversation is one path through a tree of messages.

The path is followed from ``current_node`` up by ``parent``, each node once, so that cycles, missing
nodes and chains of any length come to an end. Messages of other branches are counted as left out,
and so are system messages: a file must not instruct a model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from chatapp.errors import ImportInvalid
from chatapp.transfer import fields
from chatapp.transfer.openai_messages import SYSTEM_LEFT_OUT, SYSTEM_ROLES
from chatapp.transfer.values import ForeignConversation, ForeignMessage
from compression.types import Role

ROLES: Mapping[str, Role] = {"user": "user", "assistant": "assistant", "tool": "tool"}
OTHER_BRANCH = "message of another branch"
CYCLE = "cycle in the tree of messages"


def is_conversation(value: Mapping[str, Any]) -> bool:
    """Whether an object looks like one of ChatGPT's conversations."""
    return isinstance(value.get("mapping"), dict)


def read(value: Mapping[str, Any]) -> ForeignConversation:
    """One conversation. Raises ImportInvalid if no message of it is left."""
    left_out: Counter[str] = Counter()
    nodes = fields.mapping(value.get("mapping"))
    path = _path(nodes, value.get("current_node"), left_out)
    messages: list[ForeignMessage] = []
    thoughts = Thoughts()
    for node_id in path:
        message = fields.mapping(fields.mapping(nodes[node_id]).get("message"))
        if message:
            _take(message, messages, thoughts, left_out)
    messages += thoughts.without_a_reply(left_out)
    others = nodes.keys() - set(path)
    spoken = sum(1 for one in others if _speaks(fields.mapping(nodes[one])))
    if spoken:
        left_out[OTHER_BRANCH] += spoken
    if not messages:
        raise ImportInvalid("This conversation holds no messages. It was not imported.")
    return ForeignConversation(
        messages=tuple(messages),
        title=fields.title(value.get("title")),
        source="chatgpt",
        source_id=fields.name(value.get("conversation_id") or value.get("id")),
        created_at=fields.time(value.get("create_time"), left_out),
        updated_at=fields.time(value.get("update_time"), left_out),
        left_out=dict(left_out),
        orphan_results=sum(one.role == "tool" for one in messages),
    )


@dataclass(slots=True)
class Thoughts:
    """The reasoning since the last message, for the reply that follows."""

    texts: list[str] = field(default_factory=list)
    at: datetime | None = None

    def taken(self, left_out: Counter[str]) -> str:
        """Return all of it and forget it."""
        joined = fields.joined(self.texts, left_out)
        self.texts = []
        return joined

    def without_a_reply(self, left_out: Counter[str]) -> list[ForeignMessage]:
        """A message of reasoning alone, for a reply that was stopped before its first word."""
        if not self.texts:
            return []
        return [
            ForeignMessage(role="assistant", reasoning=self.taken(left_out), created_at=self.at)
        ]


def _speaks(node: Mapping[str, Any]) -> bool:
    author = fields.mapping(fields.mapping(node.get("message")).get("author"))
    return _name_of(author) in ROLES


def _name_of(author: Mapping[str, Any]) -> str:
    """The role that an author is given; empty if it is no text."""
    return fields.name(author.get("role"))


def _path(nodes: Mapping[str, Any], current: Any, left_out: Counter[str]) -> list[str]:
    """The ids from the root to the current node, or to the newest leaf if that is missing."""
    if not isinstance(current, str) or current not in nodes:
        current = _newest_leaf(nodes)
    path: list[str] = []
    seen: set[str] = set()
    while isinstance(current, str) and current in nodes:
        if current in seen:
            left_out[CYCLE] += 1
            break
        seen.add(current)
        path.append(current)
        current = fields.mapping(nodes[current]).get("parent")
    return path[::-1]


def _newest_leaf(nodes: Mapping[str, Any]) -> str | None:
    """The last node, in the file's order, that is no other node's parent."""
    parents = {
        parent
        for node in nodes.values()
        if isinstance(parent := fields.mapping(node).get("parent"), str)
    }
    leaves = [one for one in nodes if one not in parents]
    return leaves[-1] if leaves else next(reversed(list(nodes)), None)


def _take(
    message: Mapping[str, Any],
    messages: list[ForeignMessage],
    thoughts: Thoughts,
    left_out: Counter[str],
) -> None:
    """Add the content of a node: a message, or reasoning for the reply that follows."""
    author = fields.mapping(message.get("author"))
    name = _name_of(author)
    if name in SYSTEM_ROLES:
        left_out[SYSTEM_LEFT_OUT] += 1
        return
    role = ROLES.get(name)
    if role is None:
        left_out["message without a known role"] += 1
        return
    if fields.mapping(message.get("metadata")).get("is_visually_hidden_from_conversation"):
        left_out["hidden message"] += 1
        return
    content = fields.mapping(message.get("content"))
    if content.get("content_type") == "thoughts":
        thoughts.texts += _thoughts(content, left_out)
        thoughts.at = fields.time(message.get("create_time"), left_out)
        return
    if content.get("content_type") == "reasoning_recap":
        left_out["note on how long was thought"] += 1
        return
    text = _text(content, left_out)
    if not text.strip():
        left_out["empty message"] += 1
        return
    if role == "user":
        messages += thoughts.without_a_reply(left_out)
    messages.append(
        ForeignMessage(
            role=role,
            text=text,
            reasoning=thoughts.taken(left_out) if role == "assistant" else "",
            tool_name=fields.name(author.get("name")) if role == "tool" else "",
            created_at=fields.time(message.get("create_time"), left_out),
        )
    )


def _thoughts(content: Mapping[str, Any], left_out: Counter[str]) -> list[str]:
    found = []
    for one in fields.listing(content.get("thoughts")):
        thought = fields.mapping(one)
        parts = (fields.text(thought.get(key), left_out) for key in ("summary", "content"))
        joined = "\n".join(part for part in parts if part.strip())
        if joined:
            found.append(joined)
    return found


def _text(content: Mapping[str, Any], left_out: Counter[str]) -> str:
    """The text of a message's content; a picture or file becomes a line that says so."""
    kind = content.get("content_type")
    if kind == "code":
        code = fields.text(content.get("text"), left_out)
        language = content.get("language")
        known = isinstance(language, str) and language != "unknown"
        return fields.fenced(code, str(language) if known else "") if code.strip() else ""
    if kind == "execution_output":
        return fields.text(content.get("text"), left_out)
    if "parts" not in content:
        return fields.text(content.get("text") or content.get("result"), left_out)
    parts = [_part(part, left_out) for part in fields.listing(content.get("parts"))]
    return fields.joined(parts, left_out)


def _part(part: Any, left_out: Counter[str]) -> str:
    if isinstance(part, str):
        return fields.text(part, left_out)
    value = fields.mapping(part)
    if isinstance(value.get("text"), str):
        return fields.text(value["text"], left_out)
    kind = fields.name(value.get("content_type")) or "unknown"
    left_out[f"part of type {kind}"] += 1
    return f"[{kind}: left out at import]"
