"""One viewer of a conversation: what it has been told, and what is still missing.

Every stored change has a number, and every piece of a reply an offset. By them it is known whether
an event continues what the viewer has, or something was lost before it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from chatapp.live.bus import Published
from chatapp.live.view_models import CompressionView, TurnView
from chatapp.live.viewer_state import Compressions, Reply

# Seconds. Text that came so shortly before a look means that more is on its way.
ON_ITS_WAY = 0.5


@dataclass(slots=True, eq=False)
class Viewer:
    """What one viewer has been told. Times are those of the event loop's clock."""

    seen: int
    """The number of the newest change that was told."""
    lossy: bool = False
    """Events may be lost on their way without any sign of it."""
    state_no: int = -1
    """The number of the last ``state``, also of one that came before the viewer was away."""
    open: bool = False
    """A turn is open."""
    compressions: Compressions = field(default_factory=Compressions)
    _reply: Reply | None = None
    """The open turn's reply as far as the viewer has it; None before it has its message."""
    _text_came_at: float = 0.0
    _newest: int = 0
    """The seq of the message that was told last."""

    @property
    def after(self) -> int:
        """The number since which a ``state`` has to bring what changed.

        Several events share a number, and the viewer may have only the first of them; over a bus
        that loses single events, any of those since the last state.
        """
        by_state = self.lossy and self.state_no >= 0
        return min(self.state_no, self.seen) if by_state else max(0, self.seen - 1)

    @property
    def only_by_state(self) -> bool:
        """Whether all that was told came with the last ``state``, and nothing by events since."""
        return self.seen == self.state_no

    def has(self, event_no: int) -> bool:
        """Whether the last ``state`` brought the changes of this number."""
        return event_no <= self.state_no

    def misses_before(self, event_no: int) -> bool:
        """Whether a change before this number was not told."""
        return event_no > self.seen + 1

    def agrees(self, event_no: int, *, running: bool, opened: bool) -> bool:
        """Whether the newest change, the run and the turn that are stored are those it knows."""
        known = (self.seen, self.compressions.run is not None, self.open)
        return (event_no, running, opened) == known

    def stands_still(self, written: int, now: float) -> bool:
        """Whether the reply has gone on without the viewer: its text raises no number.

        ``written`` are the characters that are stored of it, reasoning included.
        """
        known = self._reply.characters + self._reply.thoughts if self._reply else 0
        return written > known and now - self._text_came_at > ON_ITS_WAY

    def note(self, published: Published) -> None:
        """Take in what an event tells of turns and compressions."""
        self.seen = max(self.seen, published.event_no)
        json = published.json
        match published.type:
            case "message-added":
                message = json["message"]
                self._newest = message["seq"]
                if self.open and message.get("status") == "streaming":
                    # The next round's reply: nothing of it was told yet.
                    self._reply = Reply(seq=self._newest)
            case "turn-started":
                self.open = True
                # Of one number too: where the empty reply was lost there is nothing to add to.
                if json["reply_seq"] == self._newest:
                    self._reply = Reply(seq=self._newest)
            case "turn-finished":
                self.open, self._reply = False, None
            case "compression-started":
                self.compressions.started(json)
            case "compression-completed":
                now_is = json["compression"]
                self.compressions.ended(running=now_is["running"], version=now_is["version"])
            case "summary-changed":
                self.compressions.stands(json["version"])

    def misses_text(self, delta: dict[str, Any]) -> bool:
        """Whether a piece of the reply before this one was not told."""
        known = self._known(delta)
        return known is None or known.behind(delta)

    def goes_on_with(self, delta: dict[str, Any], now: float) -> bool:
        """Take in a piece that continues the reply exactly; False for any other."""
        known = self._known(delta)
        if known is None or not known.goes_on_with(delta):
            return False
        self._text_came_at = now
        return True

    def at_least(self, turn: TurnView | None) -> TurnView | None:
        """The open turn with no less of its reply than the viewer has."""
        return self._reply.at_least(turn) if turn and self._reply else turn

    def shown(
        self,
        event_no: int,
        *,
        turn: TurnView | None,
        compression: CompressionView,
        tell_by: float,
    ) -> None:
        """Take in a ``state``. An end that it shows is told by its event, or at ``tell_by``."""
        self.seen = self.state_no = event_no
        self.open = turn is not None
        self._reply = Reply.of(turn) if turn else None
        self.compressions.shown(compression, tell_by=tell_by)

    def start_over(self) -> None:
        """Forget all numbers: the viewer saw a later state than there is."""
        self.seen, self.state_no, self._reply = 0, -1, None

    def _known(self, delta: dict[str, Any]) -> Reply | None:
        return self._reply if self._reply and self._reply.seq == delta["seq"] else None
