"""How long a text would take to render, told from its structure before anyone starts.

The parser's time grows with what it has to try, not only with the length: 50,000 times ``[`` take
seconds where as much prose takes a tenth of one. The weights below are microseconds for each
occurrence, measured with markdown-it-py 4.3 on one 2.5 GHz core. A text above its budget is shown
as plain text, so the answer never depends on how busy the machine was.
"""

from __future__ import annotations

import re
from typing import Final

#: Characters above which callers should render in a thread: common text of this length takes 6 ms,
#: the most hostile 50 ms.
LARGE: Final = 2_000
#: Microseconds that a whole message may take.
MESSAGE_BUDGET: Final = 150_000.0
#: Microseconds that a closed block of a stream may take: it is rendered once.
CLOSED_BUDGET: Final = 40_000.0
#: Microseconds that the open block may take at each flush.
OPEN_BUDGET: Final = 25_000.0

_CHARACTER = 0.4
_LINE = 18.0
_FENCE = 40.0
_CONTAINER = 35.0
_CELL = 25.0
_WEIGHTS = (
    ("[", 20.0), ("](", 28.0), ("![", 30.0), ("]", 2.5), ("!", 2.5), ("*", 12.0), ("_", 12.0),
    ("~", 6.0), ("<", 35.0), (":", 20.0), ("@", 20.0), ("&", 5.0), ("\\", 4.0), ("`", 5.0),
    ("|", 3.0), ("#", 15.0),
)  # fmt: skip

_opener = re.compile(r"(`{3,}(?=[^`\n]*$)|~{3,})")
_indented_opener = re.compile(r"^ {1,3}(?:```|~~~)", re.MULTILINE)
_containers = re.compile(r"(?:^|(?<=[ \t>]))(?:>|(?:[-+*]|\d{1,9}[.)])(?=[ \t]|$))", re.MULTILINE)
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
    cost += sum(1 for _ in _containers.finditer(prose)) * _CONTAINER
    return cost + _cells(prose) * _CELL


def _cells(prose: str) -> int:
    """Cells of the tables at most: each row gets as many as the head has, written or not."""
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

    Only fences at the margin are known to be fences without a parser. One that is indented might
    shift what lies inside and what outside, so then nothing is left out.
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
