"""A reply while it is written: the text received, stored, and shown."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any

from chatapp.context.request import ConversationSnapshot
from chatapp.conversations.turns.progress import Checkpoint, Seen
from chatapp.rendering import markdown
from chatapp.turns.pacing import Pace
from chatapp.turns.turn import CallEnded, Job

# Least interval of flushes, in durations of the last one's rendering: it takes at most a fifth.
RENDERING_SHARE = 5
# Characters of unseen text that are rendered at once; other work runs between two portions.
PORTION = 10_000
# Seconds by which a flush may come early. Replies are received at the same pace as they are shown,
# so that text received just before a flush need not wait for the next one.
EARLY = 0.01


class Phase(IntEnum):
    """The phases of a turn that this process runs. A turn only ever enters a later one.

    A person's Stop thus outweighs a shutdown that follows it, the last write begins only once, and
    a turn ended by another process stays lost.
    """

    WAITING = 1
    """The task has not taken its first step."""
    RUNNING = 2
    """The request is made to fit, sent, and answered."""
    SHUTTING_DOWN = 3
    """The process is ending: the turn is about to be stored as interrupted."""
    STOPPING = 4
    """A person stopped it: the turn is about to be stored as stopped."""
    FINISHING = 5
    """The last write is under way; it finds out whether the lease still holds."""
    LOST = 6
    """Another process ended the turn: nothing more may be written."""


@dataclass(slots=True, eq=False)
class Rendering:
    """The updates of viewers' screens by one reply, which nobody may have looked at for a time."""

    seconds: float = 0.0
    """Seconds that the last update took."""
    _renderer: markdown.StreamRenderer = field(default_factory=markdown.StreamRenderer)
    _unseen: list[tuple[str, str]] = field(default_factory=list)
    """Text and reasoning that came while nobody looked and are not rendered yet."""
    _unrendered: list[tuple[str, str]] = field(default_factory=list)
    """Text and reasoning to be shown to viewers that are not rendered yet."""

    def add(self, text: str, reasoning: str, *, shown: bool) -> None:
        """Add the text and reasoning that count as shown now. ``shown``: somebody looks."""
        self._unrendered.append((text, reasoning))
        if not shown:
            self._unseen += self._unrendered
            self._unrendered.clear()

    @property
    def unseen(self) -> bool:
        """Whether :meth:`catch_up` is needed before :meth:`render`."""
        return bool(self._unseen)

    @property
    def to_render(self) -> int:
        """Characters that the next call of either method renders."""
        waiting = self._unseen or self._unrendered
        return self._renderer.open_length + sum(len(one) for pair in waiting for one in pair)

    def catch_up(self) -> None:
        """Render a portion of the text that was received while nobody looked.

        A viewer who has come since has all of that text, so the next update must not repeat it.
        """
        text, reasoning = _joined(self._unseen)
        self._renderer.feed(text[:PORTION], reasoning[:PORTION])
        rest = text[PORTION:], reasoning[PORTION:]
        self._unseen = [rest] if any(rest) else []

    def render(self) -> markdown.Update:
        """The update of viewers' screens by the text shown since the last one."""
        begun = time.monotonic()
        update = self._renderer.feed(*_joined(self._unrendered))
        self._unrendered.clear()
        self.seconds = time.monotonic() - begun
        return update


@dataclass(slots=True)
class Thinking:
    """The time that the model thinks before it answers."""

    seconds: float | None = None
    """None until the first text, and if there is no reasoning."""
    _begun: float | None = None
    _answered: bool = False

    def add(self, text: str, reasoning: str) -> None:
        """Take note of a piece. Reasoning that comes between pieces of text does not count."""
        if reasoning and self._begun is None and not self._answered:
            self._begun = time.monotonic()
        if text and not self._answered:
            self._answered = True
            self.end()

    def end(self) -> float | None:
        """The seconds up to the first text, or up to now if there is none."""
        if self.seconds is None and self._begun is not None:
            self.seconds = round(time.monotonic() - self._begun, 1)
        return self.seconds


def _joined(pieces: list[tuple[str, str]]) -> tuple[str, str]:
    return "".join(text for text, _ in pieces), "".join(reasoning for _, reasoning in pieces)


@dataclass(slots=True)
class Tally:
    """The sums of a turn's calls of the model, as far as the server reported them."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    cost: float | None = None

    def add(self, call: CallEnded) -> None:
        """Add one call."""
        for name in self.__slots__:
            more = getattr(call, name)
            if more is not None:
                setattr(self, name, (getattr(self, name) or 0) + more)

    def as_fields(self) -> dict[str, Any]:
        """The sums by name."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(slots=True)
class LiveStream:
    """The state of one turn that this process runs."""

    job: Job
    event_no: int
    pace: Pace = field(default_factory=Pace)
    snapshot: ConversationSnapshot | None = None
    """What the first request is made of, until that is asked for."""
    task: asyncio.Task[None] | None = None
    flusher: asyncio.Task[None] | None = None
    """Shows the reply as it is received, until the turn is finishing."""
    flushing: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while a piece of the reply is stored and shown."""
    phase: Phase = Phase.WAITING
    text: str = ""
    """The text that viewers have been shown. All of it is stored: see ``gather``."""
    reasoning: str = ""
    rendering: Rendering = field(default_factory=Rendering)
    """The reply as viewers see it. Slow updates space the flushes out."""
    manifest: dict[str, Any] = field(default_factory=dict)
    spent: Tally = field(default_factory=Tally)
    request_sent: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the request is sent, or when the announcement must not wait for that."""
    announced: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when viewers know that the turn has begun."""
    flush_pending: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while text is buffered; a flush is due later."""
    _cancel: Callable[[], object] | None = None
    """Cancels the task. Set by the task's first step, since a task cancelled before it would never
    store the turn's end."""
    _new_text: list[str] = field(default_factory=list)
    _new_reasoning: list[str] = field(default_factory=list)
    _gathered: tuple[str, str] = ("", "")
    """Text and reasoning that are being stored and will be shown next."""
    thinking: Thinking = field(default_factory=Thinking)
    _flushed_at: float = 0.0
    earlier: bool = False
    """An earlier round of the turn has received something."""

    def enter(self, phase: Phase) -> bool:
        """Enter a phase. False, with nothing changed, if it is not later than the present one."""
        if phase <= self.phase:
            return False
        self.phase = phase
        return True

    def begin(self) -> None:
        """Mark the task as running. Raises CancelledError if it was ended before its first step."""
        if self.task is not None:
            self._cancel = self.task.cancel
        if not self.enter(Phase.RUNNING):
            raise asyncio.CancelledError

    @property
    def lost(self) -> bool:
        """Whether another process has ended the turn."""
        return self.phase is Phase.LOST

    async def ensure_announced(self) -> None:
        """Wait until viewers know that the turn has begun; they are told at once."""
        self.request_sent.set()
        await self.announced.wait()

    def end(self, phase: Phase) -> None:
        """End the task, whose turn is then stored as ``phase`` says.

        A task that has not begun ends at its first step: if it were cancelled before that, nothing
        would store the turn's end.
        """
        self.enter(phase)
        if self._cancel is not None:
            self._cancel()

    def lose(self) -> None:
        """Give up the turn, which another process ended; a last write finds that out by itself."""
        if self.phase is not Phase.FINISHING:
            self.end(Phase.LOST)

    def add(self, text: str = "", reasoning: str = "") -> None:
        """Buffer a piece of the reply."""
        self.thinking.add(text, reasoning)
        if text:
            self._new_text.append(text)
        if reasoning:
            self._new_reasoning.append(reasoning)
        self.flush_pending.set()

    def next_message(self, seq: int, message_id: int) -> None:
        """Go on with the next round's message, after all text of this one was shown."""
        self.job = replace(self.job, reply_seq=seq, reply_id=message_id)
        self.text = self.reasoning = ""
        self.rendering = Rendering()
        self.thinking = Thinking()
        self.earlier = True

    def take_snapshot(self) -> ConversationSnapshot | None:
        """What the first request is made of; it is let go of, since it holds many texts."""
        taken, self.snapshot = self.snapshot, None
        return taken

    @property
    def seen(self) -> Seen:
        """The conversation as the turn saw it last."""
        return Seen(conversation_id=self.job.conversation_id, event_no=self.event_no)

    @property
    def due_in(self) -> float:
        """Seconds until the next flush; 0 or less: it is due."""
        interval = max(self.pace.interval, self.rendering.seconds * RENDERING_SHARE)
        return self._flushed_at + interval - EARLY - time.monotonic()

    @property
    def began(self) -> bool:
        """Whether a piece of the reply has been received."""
        return bool(self.earlier or self.text or self.reasoning or self.pending)

    @property
    def pending(self) -> bool:
        """Whether text is buffered that viewers have not been shown."""
        return bool(self._new_text or self._new_reasoning or any(self._gathered))

    def gather(self) -> Checkpoint:
        """The whole reply so far, to be stored before :meth:`take` counts it as shown.

        The database thus never has less text than a viewer of any process, even if this one dies.
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
            seconds=self.thinking.seconds,
            first=not (self.text or self.reasoning),
        )

    def take(self, *, shown: bool) -> tuple[str, str]:
        """The gathered text and reasoning, which count as shown. ``shown``: somebody looks."""
        (text, reasoning), self._gathered = self._gathered, ("", "")
        self.text += text
        self.reasoning += reasoning
        self.rendering.add(text, reasoning, shown=shown)
        return text, reasoning
