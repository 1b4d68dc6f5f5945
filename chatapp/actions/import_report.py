"""What an import made of a file: counts, dates, and what was refused or left out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from chatapp.actions.importing import Stored
from chatapp.conversations.imports.storing import ImportedConversation
from chatapp.transfer.values import ForeignConversation

# Most conversations that a report lists; the others are only counted.
NAMED = 10_000


@dataclass(slots=True, kw_only=True)
class FileReport:
    """The result for a file with any number of conversations."""

    conversations: list[dict[str, Any]] = field(default_factory=list)
    """code, title, messages, created, deleted … of stored conversations, in the file's order."""
    refused: list[dict[str, Any]] = field(default_factory=list)
    """number and message of each conversation that could not be read."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Parts left out of imported conversations → how often."""
    messages: int = 0
    """Messages stored by this import, in complete conversations."""
    imported: int = 0
    """Conversations that this import made."""
    already: int = 0
    """Conversations imported before, which were not changed."""
    unreadable: int = 0
    """Conversations that were refused."""
    first_at: datetime | None = None
    last_at: datetime | None = None
    """The dates of the oldest and the newest conversation that this import made."""

    @property
    def done(self) -> int:
        """Number of conversations with a known result."""
        return self.imported + self.already + self.unreadable

    def refuse(self, number: int | None, sentence: str) -> None:
        """Add one that could not be read; ``number`` is None for the rest of the file."""
        self.unreadable += number is not None
        if len(self.refused) < NAMED:
            self.refused.append({"number": number, "message": sentence})

    def take(self, source: ForeignConversation, stored: Stored) -> None:
        """Add one that is stored."""
        found, own = stored.conversation, source.own
        self.imported += found.created
        self.already += not found.created
        if len(self.conversations) < NAMED:
            self.conversations.append(
                {
                    "code": found.code,
                    "title": stored.title,
                    "messages": len(source.messages),
                    "created": found.created,
                    "deleted": found.deleted,
                    "earlier": found.earlier,
                    "instructions": bool(own and own.system_prompt),
                    "summaries": len(own.versions) if own else 0,
                }
            )
        if found.created:
            self.messages += len(source.messages)
            self._date(found)
            self.left_out.update(source.left_out)
            self.left_out["system prompt"] += bool(source.system_prompt)
            self.left_out["pin, for which there is no room"] += stored.pins_left_out
            self.left_out = +self.left_out

    def _date(self, made: ImportedConversation) -> None:
        begun = [one for one in (self.first_at, made.begun_at) if one]
        ended = [one for one in (self.last_at, made.ended_at) if one]
        self.first_at, self.last_at = min(begun, default=None), max(ended, default=None)

    def as_json(self) -> dict[str, Any]:
        """The whole report, with the counts."""
        return {
            "first_at": self.first_at and self.first_at.isoformat(),
            "last_at": self.last_at and self.last_at.isoformat(),
            "imported": self.imported,
            "already": self.already,
            "messages": self.messages,
            "conversations": self.conversations,
            "refused": self.refused,
            "left_out": dict(self.left_out),
        }
