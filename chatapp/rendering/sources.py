"""A summary's source numbers, ``[12, 15–18]``, as links to the messages."""

from __future__ import annotations

import re
from html.parser import HTMLParser

_SOURCES = re.compile(r"\[(\d{1,9}(?:[–-]\d{1,9})?(?:,\s?\d{1,9}(?:[–-]\d{1,9})?)*)\]")
_SOURCE = re.compile(r"(\d{1,9})((?:[–-]\d{1,9})?)")
# What stands in these is not the program's own citation.
_LITERAL = frozenset({"a", "code", "pre"})


class _Linker(HTMLParser):
    """Copies HTML as it is and links source numbers in its text, never within a tag."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.parts: list[str] = []
        self._literal = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.parts.append(self.get_starttag_text() or "")
        self._literal += tag in _LITERAL

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.parts.append(self.get_starttag_text() or "")

    def handle_endtag(self, tag: str) -> None:
        self.parts.append(f"</{tag}>")
        self._literal -= tag in _LITERAL

    def handle_data(self, data: str) -> None:
        self.parts.append(data if self._literal else _SOURCES.sub(_linked, data))

    def handle_entityref(self, name: str) -> None:
        self.parts.append(f"&{name};")

    def handle_charref(self, name: str) -> None:
        self.parts.append(f"&#{name};")


def _linked(match: re.Match[str]) -> str:
    return "[" + _SOURCE.sub(r'<a href="#m-\1">\1\2</a>', match.group(1)) + "]"


def link_sources(html: str) -> str:
    """``html`` (safe, well-formed: from ``markdown.render``) with its source numbers linked."""
    linker = _Linker()
    linker.feed(html)
    linker.close()
    return "".join(linker.parts)
