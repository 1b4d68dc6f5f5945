"""What a reader of foreign files makes of a conversation: values, without a database."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from compression.types import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignMessage:
    """One message of a foreign file that has a place in a conversation."""

    role: Role
    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[dict[str, Any], ...] = ()
    #: OpenAI-style calls of an assistant message.
    tool_call_id: str = ""
    #: For a tool message: the call it answers.
    tool_name: str = ""
    created_at: datetime | None = None
    #: In UTC; None when the file does not say, or says something that is no time.
    partial: bool = False
    #: A reply that was stopped or cut off.
    superseded: bool = False
    #: Another text or reply stands in its place.
    pinned: bool = False
    added_context: str = ""
    #: What this program itself had added to the message.


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignConversation:
    """A conversation as it was read, and what of the file has no place in it."""

    messages: tuple[ForeignMessage, ...]
    system_prompt: str = ""
    #: The system messages before the first other message, joined by blank lines.
    left_out: Mapping[str, int] = field(default_factory=dict)
    #: What was not taken over -> how often.
    orphan_results: int = 0
    #: Tool messages, kept, whose call is nowhere before them.
    orphan_calls: int = 0
    #: Calls, kept, that no tool message after them answers.
    title: str = ""
    #: As the file gives it; empty when it does not.

    @property
    def fingerprint(self) -> str:
        """SHA-256, hexadecimal, over everything that was said, times apart."""
        digest = hashlib.sha256(_canonical(["system", self.system_prompt]))
        for one in self.messages:
            parts: list[Any] = [one.role, one.text, one.reasoning, one.tool_calls]
            parts += [one.tool_call_id, one.tool_name]
            if one.superseded or one.added_context:
                parts += [one.superseded, one.added_context]
            digest.update(_canonical(parts))
        return digest.hexdigest()


def _canonical(value: list[Any]) -> bytes:
    """JSON arrays one after another can be told apart, so no separator is needed."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return text.encode()
