"""Marks on the search terms in the message that a search led to."""

from __future__ import annotations

import re

from compression.recall.terms import Terms, pattern_of

# A tag, whose attributes may contain ">", or a character reference; the rest is text.
_MARKUP = re.compile(r"""(<(?:[^">]|"[^"]*")*>|&[^;\s]+;)""")


def mark(html: str, terms: Terms) -> str:
    """``html`` (safe, well-formed: from ``markdown.render`` or escaped) with the terms marked."""
    pattern = pattern_of(terms)
    if pattern is None:
        return html
    pieces = _MARKUP.split(html)
    pieces[::2] = [pattern.sub(r"<mark>\g<0></mark>", text) for text in pieces[::2]]
    return "".join(pieces)
