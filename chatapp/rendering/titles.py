"""A conversation's first title, made from its first message."""

from __future__ import annotations

import re

from chatapp.text.lengths import AUTOMATIC_TITLE_LENGTH
from chatapp.text.safety import clean, visible, without_hidden

# Characters to read: enough to contain 60 characters of words, whatever the markup.
_READ_LENGTH = 2_000

_fence_line = re.compile(r"^[ \t]*(?:`{3,}|~{3,})[^\n]*$", re.MULTILINE)
_link = re.compile(r"!?\[([^\[\]\n]{0,200})\]\([^()\n]{0,500}\)")
_block_marker = re.compile(r"^[ \t]*(?:#{1,6}|>|[-+*]|\d{1,9}[.)])[ \t]+", re.MULTILINE)
_rule = re.compile(r"^[ \t]*(?:[-=*_|:][ \t]*){3,}$", re.MULTILINE)
_sign = re.compile(r"\*{1,3}|`+|~~|(?<!\w)_{1,3}|_{1,3}(?!\w)")


def first_words(text: str) -> str:
    """A title of at most 60 characters from a first message; empty if that has no words.

    Markdown signs and line breaks are removed; of links, the text stays. A longer text is cut
    between two words and ends with an ellipsis. The title is plain text, not escaped.
    """
    words = visible(without_hidden(clean(text[:_READ_LENGTH])))
    words = _fence_line.sub(" ", words)
    words = _link.sub(r"\1", words)
    words = _rule.sub(" ", words)
    words = _block_marker.sub("", words)
    words = " ".join(_sign.sub("", words).split())
    if len(words) <= AUTOMATIC_TITLE_LENGTH:
        return words
    head, _, _ = words[:AUTOMATIC_TITLE_LENGTH].rpartition(" ")
    if len(head) < AUTOMATIC_TITLE_LENGTH // 2:
        head = words[: AUTOMATIC_TITLE_LENGTH - 1]
    return head.rstrip(" ,;:.-–—") + "…"
