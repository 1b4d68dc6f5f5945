r"""The rules for formulas: ``\(…\)`` and ``$…$`` in a line, ``\[…\]`` and ``$$…$$`` displayed.

Single dollars enclose a formula only as in Pandoc, so that prices stay text: no white space follows
the first, and the next one has none before it and no digit after it. Nor does one begin within a
word (``US$5``), or with an amount of something (``$5 million``).

The closing signs of a text are listed once, so that time is linear even if formulas are never
closed. A blank line ends a formula, as in LaTeX, and as it ends a block in a streamed reply.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline

_CLOSING: Final = {r"\(": ")", r"\[": "]", "$$": "$$", "$": "$"}
_sign = re.compile(r"\\(.)|(?<!\$)(\$\$?)(?!\$)", re.DOTALL)
_opens = re.compile(r"(?<![\w$])\$(?=[^\s$])(?!\d[\d.,]{0,15}\s{1,3}[^\W\d_]{2})")
_closes = re.compile(r"(?<=[^\s$])\$(?![\d$])")
#: Characters of a formula between single dollars; what is longer are two dollars of a text.
_SHORT: Final = 500


def add_formulas(parser: MarkdownIt) -> None:
    """Make ``parser`` produce tokens ``formula`` and ``formula_block``.

    Their content is the LaTeX, their markup the source with its signs. If the environment's
    ``open_block`` is true, a formula without an end becomes a token of its source, ``code_inline``
    or ``formula_source``.
    """
    parser.inline.ruler.before("escape", "formula", _inline)
    parser.block.ruler.before(
        "fence", "formula_block", _block, {"alt": ["paragraph", "reference", "blockquote", "list"]}
    )


def _end(state: StateInline | StateBlock, opening: str, position: int) -> int:
    """Position of the closing sign of the formula that begins at ``position``; -1 if none."""
    found: dict[str, dict[str, list[int]]] = state.env.setdefault("closings", {})
    if state.src not in found:
        places: dict[str, list[int]] = {")": [], "]": [], "$$": [], "$": []}
        for match in _sign.finditer(state.src):
            # An escaped dollar closes nothing.
            sign = match[2] or (match[1] if match[1] in ")]" else "")
            if sign:
                places[sign].append(match.start())
        found[state.src] = places
    ends = found[state.src][_CLOSING[opening]]
    following = bisect_left(ends, position + len(opening))
    return ends[following] if following < len(ends) else -1


def _opening(source: str, begin: int) -> str:
    """The sign that opens a formula at ``begin``; empty if none does."""
    opening = source[begin : begin + 2]
    if opening[:1] == "$" != opening[1:]:
        return "$" if _opens.match(source, begin) else ""
    following = source[begin + 2 : begin + 3]
    if opening == "$$" and (
        "$" in (following, source[begin - 1 : begin]) or (begin and not following.strip())
    ):
        return ""
    return opening if opening in _CLOSING else ""


def _encloses(source: str, begin: int, end: int) -> bool:
    """Whether a formula is between two single dollars, the second of which is the next one."""
    near = 0 <= end - begin <= _SHORT and _closes.match(source, end)
    # Code in between is not cut in two.
    return bool(near) and "`" not in source[begin:end]


def _inline(state: StateInline, silent: bool) -> bool:
    source, begin = state.src, state.pos
    opening = _opening(source, begin)
    if not opening:
        return False
    end, length = _end(state, opening, begin), len(opening)
    if opening == "$" and not _encloses(source, begin, end):
        return False
    if 0 <= end <= state.posMax - length:
        after, kind, content = end + length, "formula", source[begin + length : end]
    elif state.env["environment"].open_block:
        after, kind, content = state.posMax, "code_inline", source[begin : state.posMax]
    else:
        return False
    if not content.strip():
        return False
    if not silent:
        token = state.push(kind, "", 0)
        token.content, token.markup = content, source[begin:after]
        token.meta = {"display": opening not in (r"\(", "$")}
    state.pos = after
    return True


def _block(state: StateBlock, first: int, limit: int, silent: bool) -> bool:
    begin = state.bMarks[first] + state.tShift[first]
    opening = state.src[begin : begin + 2]
    if opening not in (r"\[", "$$") or state.src[begin + 2 : begin + 3] == "$":
        return False
    if state.is_code_block(first):
        return False
    end = _end(state, opening, begin)
    last = _last_line(state, first, limit)
    if end >= 0:
        closing = bisect_left(state.eMarks, end)
        if closing > last or state.src[end + 2 : state.eMarks[closing]].strip():
            return False
        last = closing
    elif not state.env["environment"].open_block:
        return False
    source = state.getLines(first, last + 1, state.blkIndent, False).strip()
    if end >= 0 and not source[2:-2].strip():
        return False
    if not silent:
        token = state.push("formula_source" if end < 0 else "formula_block", "", 0)
        token.content, token.markup, token.map = source[2:-2], source, [first, last + 1]
        state.line = last + 1
    return True


def _last_line(state: StateBlock, first: int, limit: int) -> int:
    """The last line that is not separated from ``first`` by a blank line or a container's end."""
    runs = state.env.setdefault("formula_runs", {})
    begin, last = runs.get(state.blkIndent, (0, -1))
    # Read once, however many formulas its lines open.
    if not begin <= first <= last:
        begin = last = first
        while (
            last + 1 < limit
            and not state.isEmpty(last + 1)
            and state.sCount[last + 1] >= state.blkIndent
        ):
            last += 1
        runs[state.blkIndent] = (begin, last)
    return int(min(last, limit - 1))
