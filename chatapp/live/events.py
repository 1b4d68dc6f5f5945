"""The events of a conversation. Their names and fields are a contract with readers of the JSON.

With ``?format=json`` the websocket sends each event as :meth:`Event.as_json` makes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from chatapp.live.view_models import (
    CompressionView,
    ContextView,
    ConversationView,
    MessageView,
    TurnView,
    as_json,
)


@dataclass(frozen=True, kw_only=True)
class Event:
    """An event that is sent to every viewer of the conversation."""

    type: ClassVar[str]
    conversation_id: int
    """The row's id, for routing; never sent."""
    event_no: int
    at: datetime

    def as_json(self) -> dict[str, Any]:
        """``type``, ``event_no``, ``at`` and the event's own fields."""
        result: dict[str, Any] = {"type": self.type}
        for name in self.__dataclass_fields__:
            if name != "conversation_id":
                result[name] = as_json(getattr(self, name))
        return result


@dataclass(frozen=True, kw_only=True)
class State(Event):
    """The changes since ``after``; a viewer that applies them shows what a fresh page shows."""

    type = "state"
    after: int
    conversation: ConversationView
    messages: list[MessageView]
    turn: TurnView | None
    turns: list[TurnView]
    """Ended turns that changed since ``after``."""
    compression: CompressionView
    context: ContextView


@dataclass(frozen=True, kw_only=True)
class TurnStarted(Event):
    """A turn exists; its user message and its empty reply came with ``message-added``."""

    type = "turn-started"
    turn: int
    message_seq: int | None
    reply_seq: int
    model: str


@dataclass(frozen=True, kw_only=True)
class Delta(Event):
    """More text of the message ``seq``; ``offset`` is where ``text`` begins, in characters.

    Reasoning comes in ``reasoning`` with ``reasoning_offset``; either text may be empty.
    """

    type = "delta"
    turn: int
    seq: int
    offset: int
    text: str
    reasoning_offset: int = 0
    reasoning: str = ""
    seconds: float | None = None
    """The time that the model thought, once its text has begun."""


@dataclass(frozen=True, kw_only=True)
class ToolStarted(Event):
    """The model called a tool."""

    type = "tool-started"
    turn: int
    seq: int
    """The assistant message that holds the call."""
    call_id: str
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class ToolFinished(Event):
    """A tool answered or failed."""

    type = "tool-finished"
    turn: int
    seq: int
    """The tool message that holds the result."""
    call_id: str
    name: str
    result: str
    seconds: float
    """The time that the tool took."""


@dataclass(frozen=True, kw_only=True)
class TurnFinished(Event):
    """A turn got its one terminal status; ``message`` is its last message as stored."""

    type = "turn-finished"
    turn: int
    status: str
    error: dict[str, Any] | None
    usage: dict[str, Any]
    message: MessageView | None
    ended: TurnView


@dataclass(frozen=True, kw_only=True)
class CompressionStarted(Event):
    """A run has begun. Sent again when a background run becomes the locking one."""

    type = "compression-started"
    trigger: str
    message_count: int
    source_tokens: int
    locks_input: bool


@dataclass(frozen=True, kw_only=True)
class CompressionProgress(Event):
    """The tokens of the summary written so far, and the messages in it; 0 if unknown."""

    type = "compression-progress"
    tokens_written: int
    message_count: int = 0
    part: int = 1
    """Number of the part being written, from 1."""
    parts: int = 1
    first_seq: int = 0
    through_seq: int = 0
    """First and last message of this part; 0 if unknown."""
    seconds_left: int | None = None
    """Estimate from the finished parts; None while there is none."""
    lines: tuple[str, ...] = ()
    """The newest lines of the part that was finished last."""


@dataclass(frozen=True, kw_only=True)
class CompressionCompleted(Event):
    """A run ended, with or without success. Tokens are calibrated; usage is a share of the
    budget."""

    type = "compression-completed"
    trigger: str
    success: bool
    version: int
    tokens_before: int
    tokens_after: int
    usage_before: float
    usage_after: float
    reason: str
    """Why it did not succeed, in a sentence; empty on success."""
    code: str
    degraded: bool
    duration: float
    cost: float | None
    compression: CompressionView
    context: ContextView


@dataclass(frozen=True, kw_only=True)
class SummaryChanged(Event):
    """Another version is active: edited, undone, restored, cleared, or compressed."""

    type = "summary-changed"
    version: int
    compression: CompressionView
    context: ContextView


@dataclass(frozen=True, kw_only=True)
class MessageAdded(Event):
    """A message was stored."""

    type = "message-added"
    message: MessageView


@dataclass(frozen=True, kw_only=True)
class MessageChanged(Event):
    """A stored message changed: its status, a pin, a mask, or it was superseded."""

    type = "message-changed"
    message: MessageView


@dataclass(frozen=True, kw_only=True)
class Masked(Event):
    """Old tool results, or long arguments of old calls, are masked in what the model sees.

    Each of them was announced with ``message-changed`` before.
    """

    type = "masked"
    batch: int
    """By which it can be undone."""
    count: int
    tokens_freed: int
    """Ruler tokens."""
    seqs: list[int]


@dataclass(frozen=True, kw_only=True)
class TitleChanged(Event):
    """The conversation has a new title."""

    type = "title-changed"
    title: str


@dataclass(frozen=True, kw_only=True)
class Context(Event):
    """Usage of the next request."""

    type = "context"
    context: ContextView


@dataclass(frozen=True, kw_only=True)
class Error(Event):
    """A failure that does not end a turn.

    With ``turn`` and ``seq`` it tells why that turn's reply is late: the model server refused for
    now and is asked again ``retry_after`` seconds after ``fields["since"]``. The open turn keeps it
    as its error until the reply begins, for pages that are opened meanwhile.
    """

    type = "error"
    error: dict[str, Any]
    turn: int | None = None
    seq: int | None = None

    def as_json(self) -> dict[str, Any]:
        """See :meth:`Event.as_json`; ``turn`` and ``seq`` are left out when there is no turn."""
        return {name: value for name, value in super().as_json().items() if value is not None}
