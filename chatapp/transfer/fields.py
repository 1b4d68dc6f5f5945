"""Single values of foreign files made storable; odd ones are repaired or left out, and counted.

The exports of other products change without notice and have many gaps. A person wants their
conversations anyway, and wants to know what is missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from chatapp.text.lengths import NAME_LENGTH, TITLE_LENGTH
from chatapp.text.safety import clean, without_hidden
from chatapp.transfer.openai_messages import (
    TIME_LEFT_OUT,
    moment,
    shortened,
    shown_only,
)

UNSTORABLE = "character that cannot be stored, replaced"


def mapping(value: Any) -> Mapping[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def listing(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def text(value: Any, left_out: Counter[str]) -> str:
    """The same as :func:`storable`, with newlines as LF."""
    return storable(value, left_out).replace("\r\n", "\n")


def storable(value: Any, left_out: Counter[str]) -> str:
    """A text in a form that both databases can store; empty for any other value.

    Hidden characters are removed, and a text longer than a message may be is cut.
    """
    if not isinstance(value, str):
        return ""
    value = shortened(value, left_out)
    cleaned = clean(value)
    if cleaned != value:
        left_out[UNSTORABLE] += 1
    return shown_only(cleaned, left_out)


def joined(parts: Iterable[str], left_out: Counter[str]) -> str:
    """The parts that are not blank, joined by blank lines and cut like one text."""
    return shortened("\n\n".join(part for part in parts if part.strip()), left_out)


def name(value: Any) -> str:
    """A short name or id, cut to the length of its column; empty for any other value."""
    return without_hidden(clean(value))[:NAME_LENGTH] if isinstance(value, str) else ""


def title(value: Any) -> str:
    """A title on one line, cut; empty for any other value."""
    if not isinstance(value, str):
        return ""
    return " ".join(without_hidden(clean(value)).split())[:TITLE_LENGTH]


def time(value: Any, left_out: Counter[str]) -> datetime | None:
    """A time in UTC; an invalid one is counted, and gives None."""
    if value is None:
        return None
    try:
        return moment(value)
    except (ValueError, OverflowError, OSError):
        left_out[TIME_LEFT_OUT] += 1
        return None


def fenced(content: str, language: str = "") -> str:
    """``content`` as a fenced block whose fence no line of it can end."""
    longest = run = 0
    for character in content:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    fence = "`" * max(3, longest + 1)
    safe = "".join(one for one in language if one.isalnum() or one in "+-#")[:30]
    return f"{fence}{safe}\n{content}\n{fence}"
