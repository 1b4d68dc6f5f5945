"""The first line of a message that has words, as an outline shows it. Pure."""

from __future__ import annotations

from typing import Final

from chatapp.text.safety import clean, visible, without_hidden

#: Characters of a message that are read for it.
READ: Final = 400
#: Characters of the line.
LENGTH: Final = 100
# Signs of Markdown at the ends of a line: headings, quotations, lists, fences, tables.
_BEFORE: Final = " \t#>*-+_=|~`"
_BEHIND: Final = " \t#*_=|~`"


def first_line(text: str) -> str:
    """The first line with words in ``text``, without Markdown's signs at its ends.

    A longer one is cut, between two words if possible, and ends with an ellipsis. Empty if the
    beginning of the text has no words. Plain text, not escaped.
    """
    shown = visible(without_hidden(clean(text[:READ])))
    for line in shown.splitlines():
        words = " ".join(line.lstrip(_BEFORE).rstrip(_BEHIND).split())
        if any(character.isalnum() for character in words):
            return words if len(words) <= LENGTH else _cut(words)
    return ""


def _cut(words: str) -> str:
    head, _, _ = words[:LENGTH].rpartition(" ")
    if len(head) < LENGTH // 2:
        head = words[: LENGTH - 1]
    return head.rstrip(" ,;:.-–—") + "…"
