"""A stored message as a value. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from compression.planning.masking import cut_calls, placeholder
from compression.types import Item, Role


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMessage:
    """A live message as it is stored."""

    seq: int
    role: Role
    text: str
    token_count: int
    status: str = "complete"
    added_context: str = ""
    tool_calls: tuple[dict[str, Any], ...] = ()
    tool_call_id: str = ""
    tool_name: str = ""
    masked: bool = False
    unmasked: bool = False
    pinned: bool = False
    turn: int | None = None
    turn_status: str = "complete"
    turn_open: bool = False
    model: str = ""
    """The model that the turn asked."""
    reasoning: str = ""
    """The model's reasoning if it may be sent back; empty once that was dropped."""
    reasoning_field: str | None = None
    reasoning_tokens: int | None = None

    @property
    def content(self) -> str:
        """The text that the model is sent, with what the program added, or masked."""
        if self.masked and self.role == "tool":
            return placeholder(self.as_item())
        return f"{self.text}\n\n{self.added_context}" if self.added_context else self.text

    @property
    def calls(self) -> tuple[dict[str, Any], ...]:
        """The calls that the model is sent, with long arguments cut if masked."""
        return cut_calls(self.tool_calls) if self.masked else self.tool_calls

    def as_item(self, reasoning: int = 0) -> Item:
        """The message in the form that compression works with; ``reasoning``: its ruler tokens."""
        text = f"{self.text}\n\n{self.added_context}" if self.added_context else self.text
        return Item(
            seq=self.seq,
            role=self.role,
            text=text,
            tokens=self.token_count,
            tool_calls=self.tool_calls,
            tool_call_id=self.tool_call_id,
            tool_name=self.tool_name,
            open=self.turn_open,
            masked=self.masked,
            unmasked=self.unmasked,
            pinned=self.pinned,
            reasoning=reasoning,
        )
