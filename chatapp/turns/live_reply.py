"""A reply while it is written: what came, what is stored, what viewers were told."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
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


@dataclass(slots=True)
class LiveStream:
    """The state of one turn that this process runs."""

    job: Job
    event_no: int
    pace: Pace = field(default_factory=Pace)
    task: asyncio.Task[None] | None = None
    flusher: asyncio.Task[None] | None = None
    """Shows what comes, until it has ``ended``."""
    flushing: bool = False
    """Some of it is being stored and shown right now."""
    ended: bool = False
    text: str = ""
    """What viewers have been told. All of it is stored: see ``gather``."""
    reasoning: str = ""
    stop_requested: bool = False
    shutting_down: bool = False
    finishing: bool = False
    """The last write is under way: whether the lease still holds is decided there."""
    lost: bool = False
    """Another process ended this turn: nothing more may be written."""
    began: bool = False
    """A piece of the reply has come."""
    manifest: dict[str, Any] = field(default_factory=dict)
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    """The model has the request, or something else is to be told."""
    announced: asyncio.Event = field(default_factory=asyncio.Event)
    """Viewers have been told that the turn begins."""
    waits: asyncio.Event = field(default_factory=asyncio.Event)
    """Something came."""
    _begun: bool = False
    _new_text: list[str] = field(default_factory=list)
    _new_reasoning: list[str] = field(default_factory=list)
    _gathered: tuple[str, str] = ("", "")
    """Text and reasoning that are being stored, to be shown next."""
    _renderer: markdown.StreamRenderer = field(default_factory=markdown.StreamRenderer)
    _unseen: list[tuple[str, str]] = field(default_factory=list)
    """Text and reasoning that were told while nobody looked, and are not rendered yet."""
    _unrendered: list[tuple[str, str]] = field(default_factory=list)
    """The same for those who look."""
    _rendering: float = 0.0
    """Seconds that the last rendering took."""
    _flushed_at: float = 0.0

    def begin(self) -> None:
        """The task runs. Raises CancelledError when its end was asked for before that."""
        self._begun = True
        if self.stop_requested or self.shutting_down or self.lost:
            raise asyncio.CancelledError

    async def told(self) -> None:
        """Have the beginning announced now, and wait until it is."""
        self.asked.set()
        await self.announced.wait()

    def cancel(self) -> None:
        """End the task; one that has not begun ends when it begins.

        A task that is cancelled before its first step never runs at all, so that nobody would
        store the turn's end.
        """
        if self._begun and self.task is not None:
            self.task.cancel()

    def lose(self) -> None:
        """Another process ended the turn; what is being written last by this one finds that out."""
        if not self.finishing:
            self.lost = True
            self.cancel()

    def add(self, text: str = "", reasoning: str = "") -> None:
        """Take what the model said."""
        if text:
            self._new_text.append(text)
        if reasoning:
            self._new_reasoning.append(reasoning)
        self.began = True
        self.waits.set()

    @property
    def due_in(self) -> float:
        """Seconds until the next flush; 0 or less: now."""
        interval = max(self.pace.interval, self._rendering * RENDERING_SHARE)
        return self._flushed_at + interval - EARLY - time.monotonic()

    @property
    def pending(self) -> bool:
        """Whether something came that viewers have not been told."""
        return bool(self._new_text or self._new_reasoning or any(self._gathered))

    def gather(self) -> Checkpoint:
        """All that came so far, to be stored before :meth:`take` counts it as shown.

        Then whatever is read from the database is never less than what any viewer has, in any
        process and after the death of this one.
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
        """What was gathered; it counts as told from here on. ``shown``: somebody looks."""
        (text, reasoning), self._gathered = self._gathered, ("", "")
        self.text += text
        self.reasoning += reasoning
        self._unrendered.append((text, reasoning))
        if not shown:
            self._unseen += self._unrendered
            self._unrendered.clear()
        return text, reasoning

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
        """Render a portion of what came while nobody looked.

        Who has come since was shown it as a whole: in the next update it would come once more.
        """
        text, reasoning = _joined(self._unseen)
        self._renderer.feed(text[:PORTION], reasoning[:PORTION])
        rest = text[PORTION:], reasoning[PORTION:]
        self._unseen = [rest] if any(rest) else []

    def render(self) -> markdown.Update:
        """What the last flush changes on the screen. Slow renderings space the flushes out."""
        begun = time.monotonic()
        update = self._renderer.feed(*_joined(self._unrendered))
        self._unrendered.clear()
        self._rendering = time.monotonic() - begun
        return update


def _joined(pieces: list[tuple[str, str]]) -> tuple[str, str]:
    return "".join(text for text, _ in pieces), "".join(reasoning for _, reasoning in pieces)
