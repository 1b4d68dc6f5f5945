"""What a reader of foreign files makes of a conversation: values, without a database."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from compression.store import Version
from compression.types import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignMessage:
    """One message of a foreign file that has a place in a conversation."""

    role: Role
    text: str = ""
    reasoning: str = ""
    tool_calls: tuple[dict[str, Any], ...] = ()
    """OpenAI-style calls of an assistant message."""
    tool_call_id: str = ""
    """For a tool message: the call it answers."""
    tool_name: str = ""
    created_at: datetime | None = None
    """In UTC; None when the file does not say, or says something that is no time."""
    partial: bool = False
    """A reply that was stopped or cut off."""
    superseded: bool = False
    """Another text or reply stands in its place."""
    pinned: bool = False
    masked: bool = False
    added_context: str = ""
    """What this program itself had added to the message."""
    turn: int | None = None
    """Our own export's number of the turn; None where a file knows no turns."""
    turn_status: str = ""
    model: str = ""
    """Of that turn: how it ended, and who answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnState:
    """What only our own export says of a conversation."""

    system_prompt: str = ""
    model: str = ""
    threshold: float | None = None
    keep_turns: int | None = None
    compression_off: bool | None = None
    pinned: bool = False
    archived: bool = False
    truncated_through: int = 0
    versions: tuple[Version, ...] = ()
    """Of the summary, oldest first."""
    active: int = 0
    """The number of the version that is in force; 0 for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What tells a conversation from every other."""

    content: str
    """SHA-256, hexadecimal, over everything that was said, times apart."""
    whole: str
    """The same over that, the source's own id and all times; where neither is given,
    ``content``."""
    source: str
    """Over the source and its own id, which stay when the conversation grows; empty without an
    id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignConversation:
    """A conversation as it was read, and what of the file has no place in it."""

    messages: Sequence[ForeignMessage]
    system_prompt: str = ""
    """The system messages before the first other message, joined by blank lines."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """What was not taken over -> how often."""
    orphan_results: int = 0
    """Tool messages, kept, whose call is nowhere before them."""
    orphan_calls: int = 0
    """Calls, kept, that no tool message after them answers."""
    title: str = ""
    """As the file gives it; empty when it does not."""
    source: str = ""
    source_id: str = ""
    """Whose export it is, and what the conversation is called there."""
    created_at: datetime | None = None
    updated_at: datetime | None = None
    """In UTC; None when the file does not say."""
    own: OwnState | None = None
    """For our own exports."""

    @property
    def identity(self) -> Identity:
        """What tells it from every other; reads every message."""
        system = self.own.system_prompt if self.own else self.system_prompt
        content = hashlib.sha256(_canonical(["system", system]))
        times = hashlib.sha256()
        timed = self.created_at is not None
        for one in self.messages:
            parts: list[Any] = [one.role, one.text, one.reasoning, one.tool_calls]
            parts += [one.tool_call_id, one.tool_name]
            if one.superseded:
                # The second stood for what the program had added, which says nothing new.
                parts += [True, ""]
            content.update(_canonical(parts))
            timed = timed or one.created_at is not None
            times.update(_canonical([_moment(one.created_at)]))
        said = content.hexdigest()
        named = [self.source, self.source_id] if self.source_id else []
        if not named and not timed:
            return Identity(content=said, whole=said, source="")
        times.update(_canonical([*named, _moment(self.created_at), said]))
        return Identity(
            content=said,
            whole=times.hexdigest(),
            source=hashlib.sha256(_canonical(named)).hexdigest() if named else "",
        )


def _moment(value: datetime | None) -> str:
    return value.isoformat() if value else ""


def _canonical(value: list[Any]) -> bytes:
    """JSON arrays one after another can be told apart, so no separator is needed."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return text.encode()
