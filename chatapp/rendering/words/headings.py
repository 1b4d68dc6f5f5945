"""A summary's Markdown with the headings of the screen, where it is read and not edited. Pure.

The model is given ``## Constraints``; on the screen that section is named "Rules" everywhere.
"""

from __future__ import annotations

import re

from chatapp.rendering.words import labels
from compression.ledger.markdown import HEADINGS

_HEADING = re.compile(r"^(#{2,3}) +([A-Za-z]+)[ \t]*$", re.MULTILINE)
# A heading of headings only, which the screen does not have.
_GROUP = re.compile(r"^## +State[ \t]*\n+(?=### )", re.MULTILINE)


def in_screen_words(summary: str) -> str:
    """The text with each known heading named as :func:`chatapp.rendering.words.labels.section`.

    Entries are list items, whose further lines are indented, so that no line of theirs is changed.
    """
    return _HEADING.sub(_named, _GROUP.sub("", summary))


def _named(match: re.Match[str]) -> str:
    name = match[2].casefold()
    if name not in HEADINGS:
        return match[0]
    section = HEADINGS[name]
    return f"## {labels.section(section.value if section else None)}"
