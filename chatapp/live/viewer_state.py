"""What one viewer has been shown of the open reply and of compressions."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from chatapp.live.view_models import CompressionView, TurnView

# The fields of ``compression-completed`` about the run itself; others are about the conversation.
OUTCOME = (
    "trigger",
    "success",
    "version",
    "tokens_before",
    "tokens_after",
    "usage_before",
    "usage_after",
    "reason",
    "code",
    "degraded",
    "duration",
    "cost",
)


@dataclass(slots=True, eq=False)
class Reply:
    """The part of the open turn's reply that the viewer has. Viewers share its pieces of text."""

    seq: int
    characters: int = 0
    thoughts: int = 0
    """Characters of reasoning."""
    _text: list[str] = field(default_factory=list)
    _reasoning: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, turn: TurnView) -> Reply:
        """The reply of an open turn, as shown by a state."""
        reply = cls(seq=turn.seq or 0)
        reply._add(turn.text, turn.reasoning)
        return reply

    def behind(self, delta: dict[str, Any]) -> bool:
        """Whether the viewer lacks text before this delta."""
        return bool(delta["offset"] > self.characters or delta["reasoning_offset"] > self.thoughts)

    def goes_on_with(self, delta: dict[str, Any]) -> bool:
        """Add a delta that continues the reply exactly. False, with no change, for any other."""
        if (delta["offset"], delta["reasoning_offset"]) != (self.characters, self.thoughts):
            return False
        self._add(delta["text"], delta["reasoning"])
        return True

    def at_least(self, turn: TurnView) -> TurnView:
        """The open turn with at least as much of its reply as the viewer has.

        Text is stored before it is shown, except while the database is away; then the stored text
        is shorter than the shown one.
        """
        if turn.seq != self.seq:
            return turn
        if self.characters > len(turn.text):
            turn = replace(turn, text="".join(self._text))
        if self.thoughts > len(turn.reasoning):
            turn = replace(turn, reasoning="".join(self._reasoning))
        return turn

    def _add(self, text: str, reasoning: str) -> None:
        self._text.append(text)
        self._reasoning.append(reasoning)
        self.characters += len(text)
        self.thoughts += len(reasoning)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A compression that was announced to the viewer."""

    trigger: str
    version: int
    """The version of the summary that was active when it began."""
    since: datetime | None
    """The time when it began."""


@dataclass(slots=True, eq=False)
class Compressions:
    """The runs announced to a viewer. Each announced beginning is followed by an announced end."""

    run: Run | None = None
    """The run under way."""
    owed: Run | None = None
    """A run that a state showed to be over, and whose end was not announced yet."""
    owed_at: float = 0.0
    """The latest time to announce that end, by the event loop's clock."""
    _version: int = 0
    _made_up: bool = False
    """An end was announced from stored data, so the run's own event may still come."""

    def shown(self, now_is: CompressionView, *, tell_by: float) -> None:
        """Take over the summary and the run of a state; ``tell_by``: see :attr:`owed_at`."""
        if not now_is.running:
            if self.run is not None:
                self.owed, self.owed_at = self.run, tell_by
            self.run = None
        elif self.run is not None:
            self.run = replace(self.run, trigger=now_is.trigger)
        else:
            self._begins(now_is.trigger, now_is.version, now_is.started_at)
        self._version = now_is.version

    def started(self, event: dict[str, Any]) -> None:
        """Note that a run has begun, or that a request now waits for it."""
        if self.run is not None:
            self.run = replace(self.run, trigger=event["trigger"])
        else:
            self._begins(event["trigger"], self._version, datetime.fromisoformat(event["at"]))

    def stands(self, version: int) -> None:
        """Note the version of the active summary."""
        self._version = version

    def ended(self, *, running: bool, version: int, made_up: bool = False) -> None:
        """Note an announced end. ``running``: another run is under way now."""
        self.owed, self._made_up, self._version = None, made_up, version
        if not running:
            self.run = None

    def knows(self, end: dict[str, Any]) -> bool:
        """Whether this end was announced before the run's own event came. Call once per event."""
        known = self._made_up and not end["success"]
        self._made_up = self._made_up and not known
        return known

    def _begins(self, trigger: str, version: int, since: datetime | None) -> None:
        self.run = Run(trigger=trigger, version=version, since=since)
        self._made_up = False
