"""Half-written Markdown, completed for the screen, so that no reader sees its signs come and go.

A model writes ``**bold**`` in pieces, and a parser takes the first of them for text. Here the end
of an open block is completed (emphasis, code, the head of a table) or held back until more of it
is there (a link's address, a formula, a single sign). That changes what is shown for a moment
only, never what is stored: the finished block is rendered from its own text.

Only the last paragraph, item or cell is looked at, once, from its beginning to its end.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

#: Characters of a link, a formula or an emphasis that are held back or completed.
HELD: Final = 400
#: The same between single dollars, the first of which is more often a price.
HELD_DOLLAR: Final = 60
#: The same of a displayed formula, in whose place an ellipsis stands.
HELD_DISPLAY: Final = 2_000

_fence = re.compile(r"[ \t]*(?:(?:[-+*>]|\d{1,9}[.)])[ \t]+)*(`{3,}|~{3,})")
#: The beginning of a line before its text: lists, quotations, headings, boxes of tasks.
_marker = re.compile(
    r"[ \t]*(?:(?:[-+*]|\d{1,9}[.)]|#{1,6})[ \t]+|>[ \t]?)+(?:\[[ xX]\](?:[ \t]+|$))?"
)
#: A last line that may still become anything: a list, a rule, a heading, a fence, a row.
_undecided = re.compile(
    r"[ \t>]*(?:(?:[-=]+|[*+_]{1,3}|\d{1,9}[.)]?|#{1,6}|`{1,2}|~{1,2}|\||[-+*] \[[ xX]?\]?)"
    r"[ \t]*)?\Z"
)
_display = re.compile(r"^[ \t>]*(\\\[|\$\$)(?!\$)", re.MULTILINE)
_bar = re.compile(r"\\.|(\|)", re.DOTALL)
#: The signs that begin or end something within a line.
_sign = re.compile(r"\\.|\\\Z|`+|\*+|_+|~~|!?\[|\]|\$\$?|<(?=https?:|mailto:)", re.DOTALL)
_PAIRS: Final = {r"\(": r"\)", r"\[": r"\]", "$$": "$$"}


def completed(text: str) -> str:
    """``text``, the open block of a stream, as it will probably look when more has arrived."""
    marker, floor = _fences(text)
    begin = text.rfind("\n") + 1
    if marker:
        line = text[begin:].strip(" \t")
        # Perhaps the line that ends it, or the whole beginning of one.
        return text[:begin] if line and not line.strip(marker[0]) else text
    formula = _open_display(text, floor)
    if 0 <= formula >= len(text) - HELD_DISPLAY:
        return completed(text[:formula].rstrip()) + "\n\n…"
    if _undecided.match(text, begin):
        text = text[: max(begin - 1, 0)]
        begin = text.rfind("\n") + 1
    if floor > begin or not text[begin:].strip("*_-=# \t"):
        return text
    if text.startswith(("    ", "\t"), begin) and not _marker.match(text):
        return text  # code
    return _with_row(text, begin, floor) if "|" in text[begin:] else _with_leaf(text, begin, floor)


def _fences(text: str) -> tuple[str, int]:
    """The signs of the fence that ``text`` ends in, or none; and where the last whole one ends."""
    marker, floor, end = "", 0, 0
    if "```" not in text and "~~~" not in text:
        return marker, floor
    for line in text.split("\n"):
        end += len(line) + 1
        if marker:
            bare = line.strip(" \t>")
            if len(bare) >= len(marker) and not bare.strip(marker[0]):
                marker, floor = "", end
        elif found := _fence.match(line):
            # The rest of the line of a fence has no backtick, or else it is code within a line.
            rest = line[found.end() :]
            marker = "" if found[1][0] == "`" and "`" in rest else found[1]
    return marker, floor


def _open_display(text: str, floor: int) -> int:
    """The line where a displayed formula begins that is not ended; -1 if there is none."""
    position = max(floor, text.rfind("\n\n") + 1)
    while found := _display.search(text, position):
        end = text.find(_PAIRS[found[1]], found.end())
        if end < 0:
            return found.start()
        position = end + 2
    return -1


def _with_row(text: str, begin: int, floor: int) -> str:
    """``text`` with the head of a table completed, or the cell that is being written."""
    first = begin
    while first > floor:
        above = text.rfind("\n", 0, first - 1) + 1
        if "|" not in text[above : first - 1]:
            break
        first = above
    line = text[begin:]
    if first == begin:
        if not line.lstrip(" ").startswith("|"):
            return _with_leaf(text, begin, floor)
        head = _with_cell(text, begin)[begin:].rstrip()
        head += "" if head.endswith("|") else " |"
        return f"{text[:begin]}{head}\n{_rule(head)}"
    head = text[first : text.find("\n", first)]
    if first + len(head) + 1 == begin and not line.strip("|:- \t"):
        return text[:begin] + _rule(head)
    return _with_cell(text, begin)


def _rule(head: str) -> str:
    """The line below a table's head, with as many columns."""
    bare = head.strip()
    bars = sum(1 for found in _bar.finditer(bare) if found[1])
    columns = bars + 1 - bare.startswith("|") - bare.endswith("|")
    return "|" + "---|" * max(columns, 1)


def _with_cell(text: str, begin: int) -> str:
    cell = begin
    for found in _bar.finditer(text, begin):
        cell = found.end() if found[1] else cell
    return _Leaf(text, cell).completed()


def _with_leaf(text: str, begin: int, floor: int) -> str:
    """``text`` with the paragraph completed that holds the line at ``begin``."""
    while not (marker := _marker.match(text, begin)) and begin > floor:
        above = text.rfind("\n", 0, begin - 1) + 1
        if not text[above : begin - 1].strip():
            break
        begin = above
    return _Leaf(text, marker.end() if marker else begin).completed()


@dataclass(slots=True)
class _Leaf:
    """A paragraph that is being written: the end of ``text``, from ``begin``."""

    text: str
    begin: int
    open: list[tuple[str, int]] = field(default_factory=list)
    """Signs of emphasis and brackets that nothing has ended, each with the place after it."""
    brackets: list[int] = field(default_factory=list)
    """Which of them are brackets."""

    def completed(self) -> str:
        """``text`` with all that is open ended or held back."""
        position = self.begin
        while found := _sign.search(self.text, position):
            sign, at = found[0], found.start()
            position, kept = self._after(sign, at, found.end())
            if kept is not None:
                return kept
        return self._ended(self.text)

    def _after(self, sign: str, at: int, position: int) -> tuple[int, str | None]:
        """Where to read on after a sign, and the completed text if it ends there."""
        if sign == "\\":
            return position, self._ended(self.text[:at])
        if sign in _PAIRS:
            end = self.text.find(_PAIRS[sign], position)
            return end + 2, self._formula(sign, at) if end < 0 else None
        if sign[0] == "`":
            end = _end_of_code(self.text, position, sign)
            return end, self._with_code(position, sign) if end < 0 else None
        if sign == "<":
            end = self.text.find(">", position)
            held = end < 0 and len(self.text) - at <= HELD
            return max(position, end), self._ended(self.text[:at]) if held else None
        if sign == "$":
            return self._dollar(at)
        if sign == "]":
            return self._link(position)
        if sign[-1] == "[" and sign[0] != "\\":
            self.brackets.append(len(self.open))
            self.open.append((sign, position))
        elif sign[0] in "*_~":
            self._emphasis(at, sign)
        return position, None

    def _formula(self, sign: str, at: int) -> str:
        length = len(self.text) - at
        if sign == r"\(":
            return self._ended(self.text[:at]) if length <= HELD else self.text
        return self._ended(self.text[:at]) + " …" if length <= HELD_DISPLAY else self.text

    def _with_code(self, position: int, sign: str) -> str:
        """The text with the code from ``position`` ended; without its sign if it is empty."""
        code = self.text[position:].rstrip("`")
        if not code.strip():
            return self._ended(self.text[: position - len(sign)])
        return self._ended(self.text[:position] + code + sign)

    def _dollar(self, at: int) -> tuple[int, str | None]:
        following = self.text[at + 1 : at + 2]
        if at and self.text[at - 1].isalnum():
            return at + 1, None
        if not following:
            return at, self._ended(self.text[:at])
        if following.isspace() or following.isdigit():
            return at + 1, None
        end = self.text.find("$", at + 1)
        if end < 0 and len(self.text) - at <= HELD_DOLLAR:
            return at, self._ended(self.text[:at])
        return at + 1 if end < 0 or self.text[end - 1].isspace() else end + 1, None

    def _link(self, position: int) -> tuple[int, str | None]:
        """After a closing bracket. An address that is being written is not shown."""
        if not self.brackets:
            return position, None
        words = self.text[: position - 1]
        if position == len(self.text):
            return position, self._ended(words)
        if self.text[position] == "(":
            end = self.text.find(")", position)
            if end < 0 and len(self.text) - position <= HELD:
                return position, self._ended(words)
            position = max(position, end + 1)
        del self.open[self.brackets.pop() :]
        return position, None

    def _emphasis(self, at: int, sign: str) -> None:
        """Open or close emphasis by the run ``sign`` at ``at``."""
        after_it = at + len(sign)
        before = self.text[at - 1 : at] if at > self.begin else ""
        after = self.text[after_it : after_it + 1]
        word = before.isascii() and before.isalnum()
        if before and not before.isspace() and not (sign[0] == "_" and word and after.isalnum()):
            while sign and self.open and _ends(sign, self.open[-1][0]):
                sign = sign[len(self.open.pop()[0]) :]
        at = after_it - len(sign)
        # Within a word it is more often a sign of arithmetic.
        if not sign or word or after.isspace():
            return
        signs = [sign] if sign == "~~" else [sign[0] * 2] * (len(sign) // 2)
        signs += [sign[0]] * (len(sign) % 2)
        # More than three are no emphasis but a line of stars.
        for one in signs if len(sign) <= 3 else []:
            at += len(one)
            self.open.append((one, at))

    def _ended(self, text: str) -> str:
        """``text`` with what is open ended; signs that nothing follows are taken away."""
        bare = text.rstrip()
        last, begin = self.open[-1] if self.open else ("", 0)
        if (
            len(last) == 2
            and last[0] == bare[-1:] != "["
            and bare[-2] != "\\"
            and len(bare) > begin
        ):
            bare = bare[:-1].rstrip()  # Half of the signs that end it.
        for sign, after in reversed(self.open):
            if len(bare) - after > HELD:
                continue
            if sign[-1] == "[":
                bare = bare[: after - len(sign)] + bare[after:]
            elif len(bare) <= after:
                bare = bare[: after - len(sign)].rstrip()
            else:
                bare += sign
        return bare


def _ends(run: str, sign: str) -> bool:
    return run[0] == sign[0] and len(sign) <= len(run)


def _end_of_code(text: str, position: int, sign: str) -> int:
    """Where the code ends that begins with ``sign``; -1 if it does not."""
    while (found := text.find(sign, position)) >= 0:
        position = found + len(sign)
        while text[position : position + 1] == "`":
            position += 1
        if position - found == len(sign):
            return position
    return -1
