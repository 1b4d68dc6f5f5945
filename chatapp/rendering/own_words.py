"""A person's own messages: which of them are Markdown, and which are long.

Text without any sign of Markdown is shown exactly as it was written.
"""

from __future__ import annotations

import re
from typing import Final

#: Characters and lines above which a message is folded at first.
LONG: Final = 1_500
LONG_LINES: Final = 20

_markup = re.compile(
    r"[`*~]\S|(?<!\w)_\S|\$\S[^$\n]*\$|\]\(|\\[(\[]|https?://"
    r"|^ {0,3}(?:(?:#{1,6}|[-+*>]|\d{1,9}[.)]) |>|\||```|~~~)",
    re.MULTILINE,
)


def has_markup(text: str) -> bool:
    """Whether ``text`` has a sign that Markdown might read as one of its own."""
    return _markup.search(text) is not None


def is_long(text: str) -> bool:
    """Whether ``text`` is so long that it would push the reply to it off the screen."""
    return len(text) > LONG or text.count("\n") >= LONG_LINES
