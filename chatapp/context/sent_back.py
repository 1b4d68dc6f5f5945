"""The parts of a model's own messages that go back to it besides their text. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chatapp.context.messages import StoredMessage
from compression.tools.arguments import wire_call
from compression.types import Item


@dataclass(frozen=True, slots=True, kw_only=True)
class SentBack:
    """The parts of a model's own messages that are sent back to it besides text and calls."""

    model: str = ""
    """Its name: what another model wrote so is not sent."""
    reasoning: str = "never"
    """``never``, ``tool_turns``: of the turns in which tools were called, or ``always``."""


#: For whoever sends no model anything back.
NOTHING = SentBack()


@dataclass(frozen=True, slots=True)
class SentBackNow:
    """What is sent back in one request."""

    model: str
    always: bool
    turns: frozenset[int | None]
    """The turns of which reasoning is sent back."""
    masked_through: int
    """Before the last masked result, the provider has nothing left that reasoning belongs to."""

    @classmethod
    def of(cls, tail: Sequence[StoredMessage], back: SentBack) -> SentBackNow:
        """What ``back`` comes to in a request with this tail."""
        masked = max((one.seq for one in tail if one.masked), default=0)
        if back.reasoning == "tool_turns":
            turns = frozenset(one.turn for one in tail if one.tool_calls)
        else:
            turns = frozenset()
        return cls(back.model, back.reasoning == "always", turns, masked)

    def reasoning_of(self, message: StoredMessage) -> tuple[dict[str, Any], int]:
        """The field with the message's reasoning, and its ruler tokens; nothing if it stays."""
        if not message.reasoning or not message.reasoning_field or message.model != self.model:
            return {}, 0
        if message.seq < self.masked_through or not (self.always or message.turn in self.turns):
            return {}, 0
        return {message.reasoning_field: message.reasoning}, message.reasoning_tokens or 0

    def call(self, message: StoredMessage, call: dict[str, Any]) -> dict[str, Any]:
        """A call as it is sent: with fields of the server's own only to the model that wrote it."""
        sent = wire_call(call)
        if message.model == self.model or not isinstance(sent.get("function"), dict):
            return sent
        function = sent["function"]
        return {
            "id": sent.get("id"),
            "type": "function",
            "function": {"name": function.get("name"), "arguments": function.get("arguments")},
        }


def items_of(messages: Sequence[StoredMessage], back: SentBack) -> tuple[Item, ...]:
    """The messages in the form that compression works with, the reasoning that is sent counted."""
    now = SentBackNow.of(messages, back)
    return tuple(one.as_item(now.reasoning_of(one)[1]) for one in messages)
