"""A cache of finished texts as HTML, so that loading a page again costs no parsing.

An entry depends only on its text, so it never gets out of date and is the same for all viewers.
What a page adds (marks of a search, links to sources) is added to a copy.
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

#: Bytes of HTML that a process caches: about 5,000 ordinary messages.
MOST_BYTES: Final = 16 * 1024 * 1024
#: Characters below which rendering takes no longer than a look into the cache.
SHORT: Final = 200
#: Seconds after which rendering ahead lets other work run.
SLICE: Final = 0.02


class Kept:
    """A cache of the HTML of the latest texts. Safe for several threads."""

    def __init__(self, make: Callable[[str], str], most_bytes: int = MOST_BYTES) -> None:
        self._make = make
        self._most = most_bytes
        self._held = 0
        self._html: OrderedDict[bytes, str] = OrderedDict()
        self._lock = threading.Lock()

    def __call__(self, text: str) -> str:
        """The HTML of ``text``, rendered now if it is not cached."""
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
        """Whether the HTML of ``text`` is cached."""
        return _key(text) in self._html

    @property
    def held(self) -> int:
        """Bytes of cached HTML."""
        return self._held

    def clear(self) -> None:
        """Empty the cache."""
        with self._lock:
            self._html.clear()
            self._held = 0


def _key(text: str) -> bytes:
    # "surrogatepass", because a lone surrogate cannot be encoded otherwise.
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=20).digest()


markdown: Final = Kept(render_message)
verbatim: Final = Kept(lambda text: str(escape(visible(text))), MOST_BYTES // 4)


@dataclass(frozen=True, slots=True)
class Body:
    """A text that a page will show, with its cache."""

    kept: Kept
    text: str

    @property
    def html(self) -> str:
        """The HTML of the text, rendered now if it is not cached."""
        return self.kept(self.text)

    @property
    def costs_nothing(self) -> bool:
        """Whether rendering it ahead would save nothing: it is cached, or fast."""
        return len(self.text) < SHORT or self.kept.holds(self.text)


def ahead(bodies: list[Body]) -> list[Body]:
    """Render and cache ``bodies`` for a moment. Returns those that are left."""
    until = time.monotonic() + SLICE
    for done, body in enumerate(bodies, start=1):
        body.html  # noqa: B018 - cached from here on
        if time.monotonic() >= until:
            return bodies[done:]
    return []
