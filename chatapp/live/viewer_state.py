"""One viewer's knowledge of the open reply and of compressions."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from chatapp.live.view_models import CompressionView, TurnView

# What an end says of the run itself; the rest is the conversation as it was then.
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
    """The open turn's reply as far as the viewer has it. Its pieces are shared by all viewers."""

    seq: int
    characters: int = 0
    thoughts: int = 0
    """Characters of reasoning."""
    _text: list[str] = field(default_factory=list)
    _reasoning: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, turn: TurnView) -> Reply:
        """The reply of an open turn, as a state shows it."""
        reply = cls(seq=turn.seq or 0)
        reply._add(turn.text, turn.reasoning)
        return reply

    def behind(self, delta: dict[str, Any]) -> bool:
        """Whether something before this delta is missing."""
        return bool(delta["offset"] > self.characters or delta["reasoning_offset"] > self.thoughts)

    def goes_on_with(self, delta: dict[str, Any]) -> bool:
        """Take a delta that continues exactly; False for any other."""
        if (delta["offset"], delta["reasoning_offset"]) != (self.characters, self.thoughts):
            return False
        self._add(delta["text"], delta["reasoning"])
        return True

    def at_least(self, turn: TurnView) -> TurnView:
        """The open turn with no less of its reply than the viewer has.

        Words are stored before they are shown, unless the database takes none for a while; then
        what it has is older than the screen.
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
    """A compression that the viewer was told of."""

    trigger: str
    version: int
    """The summary that was active when it began."""
    since: datetime | None
    """The time when it began."""


@dataclass(slots=True, eq=False)
class Compressions:
    """The viewer's knowledge of runs: one that was told of a run is told of its end as well."""

    run: Run | None = None
    """The run under way."""
    owed: Run | None = None
    """A run that a state has shown to be over, and whose end was not told yet."""
    owed_at: float = 0.0
    """When it is told at the latest, by the event loop's clock."""
    _version: int = 0
    _made_up: bool = False
    """An end was told from what is stored: the run's own word may still come."""

    def shown(self, now_is: CompressionView, *, tell_by: float) -> None:
        """Take over the summary and the run that a state shows."""
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
        """A run begins; or the one under way is waited for from now on."""
        if self.run is not None:
            self.run = replace(self.run, trigger=event["trigger"])
        else:
            self._begins(event["trigger"], self._version, datetime.fromisoformat(event["at"]))

    def stands(self, version: int) -> None:
        """Another summary is active."""
        self._version = version

    def ended(self, *, running: bool, version: int, made_up: bool = False) -> None:
        """An end was told. ``running``: another run is under way by now."""
        self.owed, self._made_up, self._version = None, made_up, version
        if not running:
            self.run = None

    def knows(self, end: dict[str, Any]) -> bool:
        """Whether this end was told before the run's own word came; asked once for each."""
        known = self._made_up and not end["success"]
        self._made_up = self._made_up and not known
        return known

    def _begins(self, trigger: str, version: int, since: datetime | None) -> None:
        self.run = Run(trigger=trigger, version=version, since=since)
        self._made_up = False
