"""The cutting of Markdown that is still being written into finished pieces.

The scanner reads each complete line once, and cuts where a top-level block surely ends: before a
fence or heading at the margin, after the end of a fence, and at a line at the margin after a blank
one, unless it may continue a list. A block that grows too long is cut anyway, so that the open
piece stays bounded.

The scanner decides at the end of each line, or, in long blocks, at exact offsets. Its state thus
depends only on the text, not on the chunks in which it arrived.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

#: Characters of an open block; rendering as much prose takes about 4 ms.
OPEN_BLOCK: Final = 3_000
#: Characters of an open fence, which is highlighted at each flush: its finished part is not.
OPEN_FENCE: Final = 800
#: Characters of a table's head or a fence's first line, which are repeated after a cut.
_HEAD_LENGTH = 1_000

_fence = re.compile(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})")
_heading = re.compile(r"#{1,6}(?:[ \t]|$)")
_rule = re.compile(r" {0,3}(?:(?:\*[ \t]*){3,}|(?:-[ \t]*){3,}|(?:_[ \t]*){3,})$")
_item = re.compile(r"( {0,3}(?:[-+*]|\d{1,9}[.)]))(?:([ \t]+)|$)")
_table_rule = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-*:?[ \t]*)+$")


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A part of the text that can be rendered by itself."""

    text: str
    """Markdown with newlines as ``\\n``; after a cut in a block it begins with the block's head."""
    continued: bool
    """Whether it continues a fence that was cut because of its length."""


class Cutter:
    """Takes a text in chunks of any size and returns the finished pieces."""

    def __init__(self) -> None:
        self._buffer = ""
        self._start = 0  # in the buffer: where the open piece begins
        self._line = 0  # in the buffer: where the first incomplete line begins
        self._carriage_return = False
        self._reset_block()

    def _reset_block(self) -> None:
        self._marker = ""  # of the open fence, such as ```
        self._opener = ""  # the open fence's first line
        self._head = ""  # what a piece of a block that was cut begins with
        self._continued = False
        self._inside_line = False  # the last cut fell within a line
        self._after_blank = False
        self._item_width: int | None = None  # columns of the open list's items before their text
        self._item_start = 0  # in the buffer: where the last item of the open list begins

    def feed(self, text: str) -> list[Piece]:
        """Add text. Returns the pieces that it finishes, in order."""
        self._buffer += self._with_newlines(text)
        pieces: list[Piece] = []
        while True:
            limit = self._start + (OPEN_FENCE if self._marker else OPEN_BLOCK)
            end = self._buffer.find("\n", self._line, limit)
            if end >= 0:
                pieces += self._scan(end)
            elif len(self._buffer) >= limit:
                pieces.append(self._cut_within_block(limit))
            else:
                break
        self._buffer = self._buffer[self._start :]
        self._line -= self._start
        self._item_start -= self._start
        self._start = 0
        return pieces

    def open_piece(self) -> Piece:
        """The text since the last cut."""
        text = self._buffer[self._start :]
        return Piece(text=self._head + text if text else "", continued=self._continued)

    @property
    def open_length(self) -> int:
        """Characters since the last cut."""
        return len(self._buffer) - self._start

    def _with_newlines(self, text: str) -> str:
        """``text`` with each CR LF and CR replaced by LF; a CR at its end waits for the next."""
        if self._carriage_return:
            text = "\r" + text
        self._carriage_return = text.endswith("\r")
        if self._carriage_return:
            text = text[:-1]
        return text.replace("\r\n", "\n").replace("\r", "\n")

    def _scan(self, end: int) -> list[Piece]:
        """Read the line that ends at ``end``. Returns the pieces that it finishes."""
        begin, self._line = self._line, end + 1
        line = self._buffer[begin:end]
        if self._inside_line:
            self._inside_line = False
            return []
        if self._marker:
            return self._cut_block(self._line) if self._closes_fence(line) else []
        if not line.strip(" \t"):
            self._after_blank = True
            return []
        if _heading.match(line):
            return self._cut_block(begin) + self._cut_block(self._line)
        return self._scan_block_line(line, begin)

    def _scan_block_line(self, line: str, begin: int) -> list[Piece]:
        pieces: list[Piece] = []
        expanded = line.expandtabs(4)
        indent = len(expanded) - len(expanded.lstrip(" "))
        item = None if _rule.match(line) else _item.match(line)
        in_item = self._item_width is not None and indent >= self._item_width
        fence = None if in_item else _fence.match(line)
        in_list = item is not None and self._item_width is not None
        if fence or (indent == 0 and self._after_blank and not in_list):
            pieces = self._cut_block(begin)
        self._after_blank = False
        if fence:
            self._marker, self._opener = fence[1], line[:_HEAD_LENGTH] + "\n"
        elif item and not in_item:
            spaces = len((item[2] or "").expandtabs(4))
            self._item_width = len(item[1]) + (spaces if 1 <= spaces <= 4 else 1)
            self._item_start = begin
        return pieces

    def _closes_fence(self, line: str) -> bool:
        bare = line.strip(" \t")
        indented = line.startswith(("    ", "\t"))
        return len(bare) >= len(self._marker) and not bare.strip(self._marker[0]) and not indented

    def _cut_block(self, at: int) -> list[Piece]:
        """Cut where a block ends and what follows is independent of it."""
        text = self._buffer[self._start : at]
        pieces = []
        if text.strip():
            pieces.append(Piece(text=self._head + text, continued=self._continued))
        self._start = at
        self._reset_block()
        return pieces

    def _cut_within_block(self, limit: int) -> Piece:
        """Cut a block at its limit: before an item, a line or a word, or else at the limit.

        After the cut, a fence or a table continues with its head repeated.
        """
        middle = (self._start + limit) // 2
        at = limit
        if not self._marker and self._item_start > middle:
            at = self._item_start
        elif self._line > self._start:
            at = self._line
        elif not self._marker:
            at = (self._buffer.rfind(" ", middle, limit) + 1) or limit
        text = self._buffer[self._start : at]
        piece = Piece(text=self._head + text, continued=self._continued)
        self._head = self._opener or self._head or _table_head(text)
        self._continued = bool(self._marker)
        self._start = at
        if at > self._line:
            self._line = at
            self._inside_line = True
        return piece


def _table_head(text: str) -> str:
    """The two lines that a table begins with, if ``text`` begins with a table."""
    lines = text.split("\n", 2)
    if len(lines) < 3 or not _table_rule.match(lines[1]):
        return ""
    head = f"{lines[0]}\n{lines[1]}\n"
    return head if len(head) <= _HEAD_LENGTH else ""
