"""The values that readers of foreign files make of a conversation. No database."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from chatapp.context.reply_options import DEFAULT_OPTIONS, ReplyOptions
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
    seconds: float | None = None
    """For a tool message: the time that the tool took; None if the file does not say."""
    created_at: datetime | None = None
    """In UTC; None if the file has no valid time."""
    partial: bool = False
    """A reply that was stopped or cut off."""
    superseded: bool = False
    """Another text or reply has replaced it."""
    pinned: bool = False
    masked: bool = False
    added_context: str = ""
    """Text that this program itself had added to the message."""
    turn: int | None = None
    """The turn's number in our own export; None for files without turns."""
    turn_status: str = ""
    model: str = ""
    """How the turn ended, and the model that answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnState:
    """The data that only our own export has."""

    system_prompt: str = ""
    model: str = ""
    threshold: float | None = None
    keep_turns: int | None = None
    compression_off: bool | None = None
    options: ReplyOptions = DEFAULT_OPTIONS
    preview_first: bool | None = None
    project: str = ""
    """The name of its project; empty for none."""
    pinned: bool = False
    archived: bool = False
    truncated_through: int = 0
    versions: tuple[Version, ...] = ()
    """Of the summary, oldest first."""
    active: int = 0
    """The number of the version that is in force; 0 for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The hashes by which an imported conversation is recognised."""

    content: str
    """SHA-256, hexadecimal, of everything that was said, without times."""
    whole: str
    """SHA-256 of that, the source's own id and all times; equal to ``content`` without these."""
    source: str
    """SHA-256 of the source and its own id, which stays when the conversation grows; empty without
    an id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignConversation:
    """A conversation as it was read, with notes on what was left out."""

    messages: Sequence[ForeignMessage]
    system_prompt: str = ""
    """The system messages before the first other message, joined by blank lines."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Kind of what was left out → how often."""
    orphan_results: int = 0
    """Tool messages, kept, without a call before them."""
    orphan_calls: int = 0
    """Calls, kept, without a tool message after them."""
    title: str = ""
    """The title in the file; empty if there is none."""
    source: str = ""
    source_id: str = ""
    """The product that made the file, and the conversation's id there."""
    created_at: datetime | None = None
    updated_at: datetime | None = None
    """Both in UTC; None if the file does not say."""
    own: OwnState | None = None
    """For our own exports."""

    @property
    def identity(self) -> Identity:
        """The hashes by which it is recognised; reads every message."""
        system = self.own.system_prompt if self.own else self.system_prompt
        content = hashlib.sha256(_canonical(["system", system]))
        times = hashlib.sha256()
        timed = self.created_at is not None
        for one in self.messages:
            parts: list[Any] = [one.role, one.text, one.reasoning, one.tool_calls]
            parts += [one.tool_call_id, one.tool_name]
            if one.superseded:
                # The second stands for added context, which is not part of what was said.
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
    """JSON arrays written one after another need no separator to be told apart."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return text.encode()
