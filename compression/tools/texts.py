"""Texts of models and tools as any database stores them. Pure."""

from __future__ import annotations

import re
from math import isfinite
from typing import Any

#: In place of what no database stores: NUL, and halves of surrogate pairs.
REPLACEMENT = "\ufffd"
#: Control characters that are in no text; tabs and line ends are.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
#: With more control and replaced characters than this share, a text is something else.
_BINARY = 0.05


def mend(text: str) -> str:
    """The text with surrogate pairs joined, their halves and NUL replaced."""
    text = text.replace("\0", REPLACEMENT)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def mended(value: Any) -> Any:
    """A JSON value whose texts a database stores: every text in it as :func:`mend` returns it."""
    if isinstance(value, str):
        return mend(value)
    if isinstance(value, list):
        return [mended(one) for one in value]
    if isinstance(value, dict):
        return {mend(key): mended(one) for key, one in value.items()}
    # NaN and the infinities are no JSON, although Python reads and writes them.
    return None if isinstance(value, float) and not isfinite(value) else value


def is_binary(text: str) -> bool:
    """Whether a text is data that was taken for text: many of its characters are in no text."""
    beginning = text[:10_000]
    odd = len(_CONTROL.findall(beginning)) + beginning.count(REPLACEMENT)
    return odd > max(1, len(beginning) * _BINARY)


def without_control(text: str) -> str:
    """The text, mended, without control characters other than tabs and line ends."""
    return _CONTROL.sub(REPLACEMENT, mend(text))
