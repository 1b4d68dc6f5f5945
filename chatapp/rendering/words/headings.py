"""A summary's Markdown with the headings of the screen, and back again. Pure.

The model is given ``## Constraints``; on the screen that section is named "Rules" everywhere, also
in the editor.
"""

from __future__ import annotations

import re

from chatapp.rendering.words import labels
from compression.ledger.markdown import HEADINGS

_HEADING = re.compile(r"^(#{2,3}) +([A-Za-z]+)[ \t]*$", re.MULTILINE)
# A heading of headings only, which the screen does not have.
_GROUP = re.compile(r"^## +State[ \t]*\n+(?=### )", re.MULTILINE)


def _on_screen(name: str) -> str:
    section = HEADINGS[name]
    return labels.section(section.value if section else None)


_STORED = {_on_screen(name).casefold(): name.capitalize() for name in HEADINGS}


def in_screen_words(summary: str) -> str:
    """The text with each known heading named as :func:`chatapp.rendering.words.labels.section`.

    Entries are list items, whose further lines are indented, so that no line of theirs is changed.
    """
    return _HEADING.sub(_named, _GROUP.sub("", summary))


def in_stored_words(text: str) -> str:
    """A person's text with the headings of the screen as a summary is stored; others stay."""
    return "\n".join(_stored(line) if line.startswith("#") else line for line in text.split("\n"))


def _stored(line: str) -> str:
    name = _STORED.get(line.strip("#: \t").casefold())
    return f"## {name}" if name else line


def _named(match: re.Match[str]) -> str:
    name = match[2].casefold()
    return f"## {_on_screen(name)}" if name in HEADINGS else match[0]
