"""A summary's source numbers, ``[12, 15–18]``, as links to the messages.

Sources in the conversation that this one continues are written ``[earlier 12]``, and link there.
"""

from __future__ import annotations

import re
from html import escape
from html.parser import HTMLParser

_SOURCES = re.compile(
    r"\[((?:earlier )?)(\d{1,9}(?:[–-]\d{1,9})?(?:,\s?\d{1,9}(?:[–-]\d{1,9})?)*)\]"
)
_SOURCE = re.compile(r"(\d{1,9})((?:[–-]\d{1,9})?)")
# Elements in which such brackets are not the program's citations.
_LITERAL = frozenset({"a", "code", "pre"})


class _Linker(HTMLParser):
    """Copies HTML and links the source numbers in its text, never within a tag."""

    def __init__(self, earlier: str) -> None:
        super().__init__(convert_charrefs=False)
        self.parts: list[str] = []
        self._literal = 0
        self._earlier = earlier

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.parts.append(self.get_starttag_text() or "")
        self._literal += tag in _LITERAL

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.parts.append(self.get_starttag_text() or "")

    def handle_endtag(self, tag: str) -> None:
        self.parts.append(f"</{tag}>")
        self._literal -= tag in _LITERAL

    def handle_data(self, data: str) -> None:
        self.parts.append(data if self._literal else _SOURCES.sub(self._linked, data))

    def handle_entityref(self, name: str) -> None:
        self.parts.append(f"&{name};")

    def handle_charref(self, name: str) -> None:
        self.parts.append(f"&#{name};")

    def _linked(self, match: re.Match[str]) -> str:
        mark, numbers = match.groups()
        if mark and not self._earlier:
            return match[0]
        address = rf"{escape(self._earlier)}?around=\1#m-\1" if mark else r"#m-\1"
        return f"[{mark}" + _SOURCE.sub(rf'<a href="{address}">\1\2</a>', numbers) + "]"


def link_sources(html: str, *, earlier: str = "") -> str:
    """``html`` (safe, well-formed: from ``markdown.render``) with its source numbers linked.

    ``earlier``: path of the conversation that this one continues; empty if it is gone.
    """
    linker = _Linker(earlier)
    linker.feed(html)
    linker.close()
    return "".join(linker.parts)
