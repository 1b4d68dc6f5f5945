"""A reply while it is written: what came, what is stored, what viewers were told."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from chatapp.conversations.turns.progress import Checkpoint
from chatapp.rendering import markdown
from chatapp.turns.pacing import Pace
from chatapp.turns.turn import Job

# A slow rendering stretches the interval, so that rendering takes at most a fifth of the time.
RENDERING_SHARE = 5
# Characters of what nobody has seen that are rendered at once; others may have their turn between.
PORTION = 10_000
# Seconds by which a flush may come early: a reply is read at the same pace, and what has just been
# read need not wait for a moment so near.
EARLY = 0.01


class Phase(IntEnum):
    """The phases of a turn that this process runs. A turn only ever enters a later one.

    So a person's Stop outweighs the shutdown that comes with it, the last write is not begun
    twice, and what another process has ended stays lost.
    """

    WAITING = 1
    """The task has not taken its first step."""
    RUNNING = 2
    """The request is made to fit, sent, and answered."""
    SHUTTING_DOWN = 3
    """The process ends: the turn is about to be stored as interrupted."""
    STOPPING = 4
    """A person stopped it: the turn is about to be stored as stopped."""
    FINISHING = 5
    """The last write is under way: whether the lease still holds is decided there."""
    LOST = 6
    """Another process ended the turn: nothing more may be written."""


@dataclass(slots=True, eq=False)
class Rendering:
    """The screen's updates by one reply, whether somebody looked at it all the time or not."""

    seconds: float = 0.0
    """How long the last update took."""
    _renderer: markdown.StreamRenderer = field(default_factory=markdown.StreamRenderer)
    _unseen: list[tuple[str, str]] = field(default_factory=list)
    """Text and reasoning that were told while nobody looked, and are not rendered yet."""
    _unrendered: list[tuple[str, str]] = field(default_factory=list)
    """Text and reasoning that viewers are told and that are not rendered yet."""

    def add(self, text: str, reasoning: str, *, shown: bool) -> None:
        """Take what is told from here on. ``shown``: somebody looks."""
        self._unrendered.append((text, reasoning))
        if not shown:
            self._unseen += self._unrendered
            self._unrendered.clear()

    @property
    def unseen(self) -> bool:
        """Whether :meth:`catch_up` is to be called before :meth:`render`."""
        return bool(self._unseen)

    @property
    def to_render(self) -> int:
        """Characters that the next call of these two goes over."""
        waiting = self._unseen or self._unrendered
        return self._renderer.open_length + sum(len(one) for pair in waiting for one in pair)

    def catch_up(self) -> None:
        """Render a portion of the text that came while nobody looked.

        A viewer that has come since was shown all of it: the next update must not bring it again.
        """
        text, reasoning = _joined(self._unseen)
        self._renderer.feed(text[:PORTION], reasoning[:PORTION])
        rest = text[PORTION:], reasoning[PORTION:]
        self._unseen = [rest] if any(rest) else []

    def render(self) -> markdown.Update:
        """The screen's update by what viewers were told since the last one."""
        begun = time.monotonic()
        update = self._renderer.feed(*_joined(self._unrendered))
        self._unrendered.clear()
        self.seconds = time.monotonic() - begun
        return update


def _joined(pieces: list[tuple[str, str]]) -> tuple[str, str]:
    return "".join(text for text, _ in pieces), "".join(reasoning for _, reasoning in pieces)


@dataclass(slots=True)
class LiveStream:
    """The state of one turn that this process runs."""

    job: Job
    event_no: int
    pace: Pace = field(default_factory=Pace)
    task: asyncio.Task[None] | None = None
    flusher: asyncio.Task[None] | None = None
    """Shows what comes, until the turn is finishing."""
    flushing: bool = False
    """A piece of it is being stored and shown right now."""
    phase: Phase = Phase.WAITING
    text: str = ""
    """The text that viewers have been told. All of it is stored: see ``gather``."""
    reasoning: str = ""
    rendering: Rendering = field(default_factory=Rendering)
    """The reply as viewers see it. Slow updates space the flushes out."""
    manifest: dict[str, Any] = field(default_factory=dict)
    request_sent: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the request is sent, or when the announcement must not wait for that."""
    announced: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when viewers have been told that the turn begins."""
    flush_pending: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while text is buffered; a flush is due later."""
    _cancel: Callable[[], object] | None = None
    """Cancels the task; set by its first step, without which it would never store its end."""
    _new_text: list[str] = field(default_factory=list)
    _new_reasoning: list[str] = field(default_factory=list)
    _gathered: tuple[str, str] = ("", "")
    """Text and reasoning that are being stored, to be shown next."""
    _flushed_at: float = 0.0

    def enter(self, phase: Phase) -> bool:
        """Go on to a phase; False, and nothing changes, where that would be a step back."""
        if phase <= self.phase:
            return False
        self.phase = phase
        return True

    def begin(self) -> None:
        """Mark the task as running. Raises CancelledError if its end was asked for before that."""
        if self.task is not None:
            self._cancel = self.task.cancel
        if not self.enter(Phase.RUNNING):
            raise asyncio.CancelledError

    @property
    def lost(self) -> bool:
        """Whether another process has ended the turn."""
        return self.phase is Phase.LOST

    async def ensure_announced(self) -> None:
        """Wait until viewers know that the turn begins, which they are told at once."""
        self.request_sent.set()
        await self.announced.wait()

    def end(self, phase: Phase) -> None:
        """End the task, to be stored as ``phase`` says; one that has not begun ends as it begins.

        A task that is cancelled before its first step never runs at all, so that nobody would
        store the turn's end.
        """
        self.enter(phase)
        if self._cancel is not None:
            self._cancel()

    def lose(self) -> None:
        """Give the turn up to the process that ended it; a last write finds that out by itself."""
        if self.phase is not Phase.FINISHING:
            self.end(Phase.LOST)

    def add(self, text: str = "", reasoning: str = "") -> None:
        """Buffer a piece of the reply."""
        if text:
            self._new_text.append(text)
        if reasoning:
            self._new_reasoning.append(reasoning)
        self.flush_pending.set()

    @property
    def due_in(self) -> float:
        """Seconds until the next flush; 0 or less: now."""
        interval = max(self.pace.interval, self.rendering.seconds * RENDERING_SHARE)
        return self._flushed_at + interval - EARLY - time.monotonic()

    @property
    def began(self) -> bool:
        """Whether a piece of the reply has come."""
        return bool(self.text or self.reasoning or self.pending)

    @property
    def pending(self) -> bool:
        """Whether text is buffered that viewers have not been told."""
        return bool(self._new_text or self._new_reasoning or any(self._gathered))

    def gather(self) -> Checkpoint:
        """The whole reply so far, to be stored before :meth:`take` counts it as shown.

        So the database never has less than any viewer, in any process and after the death of this
        one.
        """
        text, reasoning = self._gathered
        self._gathered = text + "".join(self._new_text), reasoning + "".join(self._new_reasoning)
        self._new_text.clear()
        self._new_reasoning.clear()
        text, reasoning = self._gathered
        self._flushed_at = time.monotonic()
        return Checkpoint(
            message_id=self.job.reply_id,
            turn=self.job.turn,
            text=self.text + text,
            reasoning=self.reasoning + reasoning,
            first=not (self.text or self.reasoning),
        )

    def take(self, *, shown: bool) -> tuple[str, str]:
        """The gathered text and reasoning, told from here on. ``shown``: somebody looks."""
        (text, reasoning), self._gathered = self._gathered, ("", "")
        self.text += text
        self.reasoning += reasoning
        self.rendering.add(text, reasoning, shown=shown)
        return text, reasoning
