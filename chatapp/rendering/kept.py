"""Finished texts as HTML, rendered once and kept: a page that is loaded again costs no parsing.

What is kept depends on the text alone, so that it is never out of date, whoever looks at it and
wherever. What a page adds (marks of a search, links to sources) is added to a copy.
"""

from __future__ import annotations

import hashlib
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from django.utils.html import escape

from chatapp.rendering.markdown.blocks import render_message
from chatapp.text.safety import visible

#: Bytes of HTML that one process keeps: about 5,000 common messages.
MOST_BYTES: Final = 16 * 1024 * 1024
#: Characters below which rendering costs no more than looking it up.
SHORT: Final = 200
#: Seconds after which rendering ahead makes way for others.
SLICE: Final = 0.02


class Kept:
    """The HTML of the texts that were asked for last. For use by several threads."""

    def __init__(self, make: Callable[[str], str], most_bytes: int = MOST_BYTES) -> None:
        self._make = make
        self._most = most_bytes
        self._held = 0
        self._html: OrderedDict[bytes, str] = OrderedDict()
        self._lock = threading.Lock()

    def __call__(self, text: str) -> str:
        """The HTML of ``text``, made now if it is not kept."""
        if len(text) < SHORT:
            return self._make(text)
        key = _key(text)
        with self._lock:
            if key in self._html:
                self._html.move_to_end(key)
                return self._html[key]
        html = self._make(text)
        with self._lock:
            if key not in self._html and sys.getsizeof(html) <= self._most // 8:
                self._html[key] = html
                self._held += sys.getsizeof(html)
            while self._held > self._most:
                self._held -= sys.getsizeof(self._html.popitem(last=False)[1])
        return html

    def holds(self, text: str) -> bool:
        """Whether the HTML of ``text`` is kept."""
        return _key(text) in self._html

    @property
    def held(self) -> int:
        """Bytes that are kept."""
        return self._held

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._html.clear()
            self._held = 0


def _key(text: str) -> bytes:
    # Half a surrogate cannot be encoded otherwise.
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=20).digest()


markdown: Final = Kept(render_message)
verbatim: Final = Kept(lambda text: str(escape(visible(text))), MOST_BYTES // 4)


@dataclass(frozen=True, slots=True)
class Body:
    """A text that a page will show, and how."""

    kept: Kept
    text: str

    @property
    def html(self) -> str:
        """As it is shown; made now if it is not kept."""
        return self.kept(self.text)

    @property
    def costs_nothing(self) -> bool:
        """Whether it need not be made ahead: it is kept, or made in no time."""
        return len(self.text) < SHORT or self.kept.holds(self.text)


def ahead(bodies: list[Body]) -> list[Body]:
    """Make and keep the HTML of ``bodies`` for a moment; what is left when it is over."""
    until = time.monotonic() + SLICE
    for done, body in enumerate(bodies, start=1):
        body.html  # noqa: B018 - kept from here on
        if time.monotonic() >= until:
            return bodies[done:]
    return []
