"""An HTML page as text for a model.

nh3, which reads HTML as browsers do, leaves well-formed markup of a few elements and nothing of
scripts and styles; the standard library's parser then reads that.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser

import nh3

from chatapp.text.safety import clean

_NAME = re.compile(r"\w+")
_LINES = frozenset(
    _NAME.findall(
        "address article aside blockquote dd details div dl dt figcaption figure footer form "
        "header hr li main nav ol p pre section summary table tr ul"
    )
)
# Elements that end by themselves.
_ENDLESS = frozenset(
    _NAME.findall(
        "area base br col dd dt embed hr img input li link meta option p param source td th tr "
        "track wbr"
    )
)
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_CELLS = frozenset({"td", "th"})
_KEPT = set(_LINES | _HEADINGS.keys() | _CELLS | {"a", "br", "pre"})
# With their content.
_DROPPED = {"script", "style", "template", "noscript", "svg", "math", "head", "iframe", "select"}
_SPACE = re.compile(r"\s+")
_BLANK_LINES = re.compile(r"\n[ \n]*\n")
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)")
#: Elements within each other; the time that nh3 takes grows with their square.
MOST_NESTED = 1000
#: Characters of a page that are read. More would be cut from the result, and cost seconds.
MOST_CHARACTERS = 500_000


class TooDeep(ValueError):
    """The elements of a page lie too deeply in each other to be read in a bounded time."""


def page_text(html: str) -> str:
    """The visible text of a page: headings as in Markdown, a line for each block and list item.

    Links have their address behind them, if it is a whole one. Reads ``MOST_CHARACTERS`` at most.
    Raises TooDeep.
    """
    html = html[:MOST_CHARACTERS]
    if _depth(html) > MOST_NESTED:
        raise TooDeep
    reader = _Reader()
    reader.feed(
        nh3.clean(
            clean(html),
            tags=_KEPT,
            clean_content_tags=_DROPPED,
            attributes={"a": {"href"}},
            url_schemes={"http", "https"},
            link_rel=None,
        )
    )
    reader.close()
    return reader.text()


def _depth(html: str) -> int:
    """How deeply elements lie in each other at most, roughly."""
    depth = deepest = 0
    for closes, name in _TAG.findall(html):
        if name.lower() not in _ENDLESS:
            depth = max(0, depth - 1) if closes else depth + 1
            deepest = max(deepest, depth)
    return deepest


class _Reader(HTMLParser):
    """Collects the text of well-formed HTML."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._parts: list[str] = []
        self._verbatim = 0
        self._link = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a line for a block. Called by the parser."""
        if tag in _LINES or tag in _HEADINGS:
            self._parts.append("\n" + ("- " if tag == "li" else _HEADINGS.get(tag, "")))
        elif tag == "br":
            self._parts.append("\n")
        elif tag in _CELLS:
            self._parts.append(" | ")
        elif tag == "a":
            self._link = dict(attrs).get("href") or ""
        self._verbatim += tag == "pre"

    def handle_endtag(self, tag: str) -> None:
        """End the line of a block. Called by the parser."""
        if tag in _LINES or tag in _HEADINGS:
            self._parts.append("\n")
        elif tag == "a" and self._link.startswith(("http://", "https://")):
            self._parts.append(f" ({self._link})")
        if tag == "a":
            self._link = ""
        self._verbatim -= tag == "pre"

    def handle_data(self, data: str) -> None:
        """Keep a text. Called by the parser."""
        self._parts.append(data if self._verbatim else _SPACE.sub(" ", data))

    def text(self) -> str:
        """What was read, without empty lines in a row."""
        lines = (line.rstrip() for line in "".join(self._parts).split("\n"))
        return _BLANK_LINES.sub("\n\n", "\n".join(lines)).strip()
