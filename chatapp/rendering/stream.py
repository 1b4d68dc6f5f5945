"""Markdown that is still being written, as HTML: closed blocks once, the open one at each flush."""

from __future__ import annotations

from dataclasses import dataclass

from chatapp.rendering.blocks import Environment, render_message, render_piece
from chatapp.rendering.cutter import Cutter
from chatapp.rendering.limits import CLOSED_BUDGET, OPEN_BUDGET


@dataclass(frozen=True, kw_only=True)
class Update:
    """What one flush changes on the screen."""

    closed_html: str
    """Blocks that were closed since the last update: append them once."""
    open_html: str
    """The block still being written: it replaces the open block of the last update."""


class StreamRenderer:
    """Renders one reply as it comes. Not for use by two threads at once."""

    def __init__(self) -> None:
        self._received: list[str] = []
        self._cutter = Cutter()
        self._environment = Environment()

    @classmethod
    def split(cls, text: str) -> tuple[str, str]:
        """All closed HTML and the open HTML of a reply of which ``text`` has come so far.

        Equal to the joined ``closed_html`` and the last ``open_html`` of any way to feed ``text``.
        """
        update = cls().feed(text)
        return update.closed_html, update.open_html

    def feed(self, text: str) -> Update:
        """Take the next characters and render what they close, and the open block."""
        self._received.append(text)
        closed = []
        for piece in self._cutter.feed(text):
            self._environment.continued = piece.continued
            closed.append(render_piece(piece.text, self._environment, CLOSED_BUDGET))
        piece = self._cutter.open_piece()
        self._environment.continued = piece.continued
        open_html = render_piece(piece.text, self._environment.for_open_block(), OPEN_BUDGET)
        return Update(closed_html="".join(closed), open_html=open_html)

    def finish(self) -> str:
        """The whole reply rendered as after a reload; it replaces everything shown so far."""
        return render_message("".join(self._received))
