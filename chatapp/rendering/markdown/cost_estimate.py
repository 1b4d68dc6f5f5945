"""An estimate of how long a text takes to render, made from its structure beforehand.

The parser's time depends on what it must try, not only on the length: 50,000 times ``[`` takes
seconds, as much prose a tenth of a second. The weights below are microseconds per occurrence,
measured with markdown-it-py 4.3 on one 2.5 GHz core. A text above its budget is shown as plain
text, so that the result never depends on how busy the machine is.

Rules that read the same lines again and again cannot be predicted from the signs in the text. They
are counted while the parser works: see :class:`Work`.
"""

from __future__ import annotations

import re
from typing import Final

from chatapp.text.safety import hidden_runs

#: Characters above which callers should render in a thread: ordinary text of this length takes
#: 6 ms, the most hostile 50 ms.
LARGE: Final = 2_000
#: Microseconds for parsing a whole message. The longest of 660 replies of models takes 89,000. A
#: page may have thirty of the worst.
MESSAGE_BUDGET: Final = 100_000.0
#: Microseconds for a whole message, with highlighting and formulas.
TOTAL_BUDGET: Final = 150_000.0
#: Microseconds for a closed block of a stream, which is rendered once.
CLOSED_BUDGET: Final = 40_000.0
#: Microseconds for the open block at each flush.
OPEN_BUDGET: Final = 25_000.0
#: Microseconds per character for highlighting code, and for setting a formula.
HIGHLIGHT_CHARACTER: Final = 6.0
FORMULA_CHARACTER: Final = 10.0

_CHARACTER = 0.4
_LINE = 20.0
_FENCE = 40.0
_CONTAINER = 45.0
_CELL = 25.0
_RUN = 14.0
_AUTOLINK = 55.0
_HIDDEN_RUN = 1.5
_WEIGHTS = (
    ("[", 20.0), ("](", 28.0), ("![", 40.0), ("]", 5.5), ("*", 6.0), ("_", 6.0), ("~", 10.0),
    ("<", 8.0), ("://", 60.0), ("&", 6.0), ("\\", 10.0), ("\\(", 20.0), ("$", 12.0), ("`", 5.0),
    ("|", 3.0), ('"', 0.7), ("  \n", 20.0), ("\\\n", 10.0),
)  # fmt: skip

#: Times that block rules may look at a line: so many for each line of a text, and so many for any
#: text. The examples of CommonMark and GFM need at most 3.4 per line.
_LOOKS_A_LINE: Final = 10
_LOOKS: Final = 300


class TooMuchWork(Exception):
    """The parser looks at the same lines too often; show the text as plain text."""


class Work:
    """The looks at lines that are left for parsing one text."""

    def __init__(self, text: str) -> None:
        self._left = (text.count("\n") + 1) * _LOOKS_A_LINE + _LOOKS

    def spend(self, looks: int) -> None:
        """Count looks. Raises TooMuchWork when there were too many."""
        self._left -= looks
        if self._left < 0:
            raise TooMuchWork


_run = re.compile(r"\*+|_+")
_opener = re.compile(r"(`{3,}(?=[^`\n]*$)|~{3,})")
_indented_opener = re.compile(r"^ {1,3}(?:```|~~~)", re.MULTILINE)
_containers = re.compile(
    r"(?:^|(?<=[ \t>]))(?:>|(?:[-+*]|#{1,6}|\d{1,9}[.)])(?=[ \t]|$))", re.MULTILINE
)
_blank_line = re.compile(r"\n[ \t]*\n")
_maybe_table_rule = re.compile(r"^[-|: \t>+*\d.)]+$", re.MULTILINE)


def estimate(text: str) -> float:
    """Microseconds that rendering ``text`` takes at most, roughly; linear in its length."""
    cost = len(text) * _CHARACTER
    if cost > MESSAGE_BUDGET:
        return cost
    prose, fences = _without_fences(text)
    cost += fences * _FENCE + (prose.count("\n") + 1) * _LINE
    cost += sum(prose.count(sign) * weight for sign, weight in _WEIGHTS)
    cost += sum(1 for _ in _run.finditer(prose)) * _RUN
    cost += min(prose.count("<"), prose.count(">")) * _AUTOLINK
    cost += hidden_runs(text) * _HIDDEN_RUN
    cost += sum(1 for _ in _containers.finditer(prose)) * _CONTAINER
    return cost + _cells(prose) * _CELL


def _cells(prose: str) -> int:
    """The most cells of tables: each row gets as many as the head has, written or not."""
    if "-" not in prose or ("|" not in prose and ":" not in prose):
        return 0
    count = 0
    for block in _blank_line.split(prose):
        rules = [rule for rule in _maybe_table_rule.findall(block) if "-" in rule]
        columns = max(
            (rule.count("|") + 1 for rule in rules if "|" in rule or ":" in rule), default=0
        )
        count += columns * (block.count("\n") + 1)
    return count


def _without_fences(text: str) -> tuple[str, int]:
    """``text`` without its fenced code, which costs little to parse, and the number of fences.

    Without a parser, only fences at the margin are certain. An indented one could change what is
    inside and what outside, so if there is any, nothing is left out.
    """
    if ("```" not in text and "~~~" not in text) or _indented_opener.search(text):
        return text, text.count("```") + text.count("~~~")
    kept: list[str] = []
    marker = ""
    fences = 0
    for line in text.split("\n"):
        if marker:
            bare = line.strip(" \t")
            if len(bare) >= len(marker) and not bare.strip(marker[0]):
                marker = ""
        elif match := _opener.match(line):
            marker = match.group()
            fences += 1
        else:
            kept.append(line)
    return "\n".join(kept), fences
