"""Markdown that is still being written, as HTML: closed blocks once, the open one at each flush."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Final

from chatapp.rendering.markdown.blocks import Environment, render_message, render_piece
from chatapp.rendering.markdown.cost_estimate import CLOSED_BUDGET, OPEN_BUDGET
from chatapp.rendering.markdown.cutter import Cutter
from chatapp.rendering.markdown.unfinished import completed
from chatapp.text.safety import LOOKED_AT, has_a_look, settled, visible_part


@dataclass(frozen=True, kw_only=True)
class Update:
    """The change of the screen by one flush."""

    closed_html: str
    """Blocks closed since the last update, to be appended."""
    open_html: str
    """The block still being written, which replaces that of the last update."""
    thoughts_html: str = ""
    """Reasoning to append, except for an end whose look may still change."""
    last_line_html: str = ""
    """The line that the reasoning is now at, if there is more of it."""


#: The end of a block of code: its last line break comes from the parser, though the line goes on.
_CODE_END: Final = "\n</code></pre></figure>\n"
#: Characters of the last line of reasoning that are shown, and among which it is looked for.
_LINE: Final = 120
_AMONG: Final = 1_000


def last_line(thoughts: str) -> str:
    """The line that unfinished reasoning, as shown so far, is at; only its end if it is long."""
    line = thoughts[-_AMONG:].rstrip().rpartition("\n")[2].strip()
    return line if len(line) <= _LINE else "…" + line[-_LINE:].lstrip()


class StreamRenderer:
    """Renders one reply as it arrives. Not safe for two threads at once."""

    def __init__(self) -> None:
        self._received: list[str] = []
        self._cutter = Cutter()
        self._environment = Environment()
        self._environment.in_parts = True
        self._thoughts = ""  # not shown yet, and a little of what was before
        self._thoughts_shown = 0
        self._thoughts_end = ""  # the last of what was shown

    @classmethod
    def split(cls, text: str) -> tuple[str, str]:
        """All closed HTML, and the open HTML, of a reply whose text so far is ``text``.

        They equal the joined ``closed_html`` and the last ``open_html``, however the text is fed.
        """
        update = cls().feed(text)
        return update.closed_html, update.open_html

    def feed(self, text: str, thoughts: str = "") -> Update:
        """Add text. Returns the blocks that it closes, and the open block."""
        self._received.append(text)
        closed = []
        for piece in self._cutter.feed(text):
            self._environment.continued = piece.continued
            closed.append(render_piece(piece.text, self._environment, CLOSED_BUDGET))
        piece = self._cutter.open_piece()
        self._environment.continued = piece.continued
        environment = self._environment.for_open_block()
        open_text = completed(piece.text)
        open_html = render_piece(open_text, environment, OPEN_BUDGET)
        if open_html.endswith(_CODE_END) and not open_text.endswith("\n"):
            open_html = open_html.removesuffix(_CODE_END) + _CODE_END.lstrip("\n")
        more = self._think(thoughts)
        self._thoughts_end = (self._thoughts_end + more)[-_AMONG:]
        return Update(
            closed_html="".join(closed),
            open_html=open_html,
            thoughts_html=escape(more),
            last_line_html=escape(last_line(self._thoughts_end)) if more else "",
        )

    @property
    def open_length(self) -> int:
        """Characters of the open block, which each update renders again."""
        return self._cutter.open_length

    def _think(self, thoughts: str) -> str:
        self._thoughts += thoughts
        end = settled(self._thoughts) if has_a_look(thoughts) else 0
        if end <= self._thoughts_shown:
            return ""
        shown = visible_part(self._thoughts, self._thoughts_shown, end)
        begin = max(0, end - LOOKED_AT)
        self._thoughts, self._thoughts_shown = self._thoughts[begin:], end - begin
        return shown

    def finish(self) -> str:
        """The whole reply, rendered as after a reload; it replaces everything shown so far."""
        return render_message("".join(self._received))
