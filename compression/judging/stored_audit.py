"""Reading a stored audit, which an imported file may have given any shape. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from compression.types import Extracted

_NUMBERS = ("first_seq", "through_seq", "part", "parts")
#: Parts of one summary that are read.
MOST = 1000


def extracted_parts(value: Any) -> tuple[Extracted, ...]:
    """The parts of a summary that an extract wrote; what does not describe one is passed over."""
    return tuple(_parts(value)) if isinstance(value, list | tuple) else ()


def _parts(value: list[Any] | tuple[Any, ...]) -> Iterator[Extracted]:
    for one in value[:MOST]:
        if not isinstance(one, dict):
            continue
        reason = one.get("reason", "")
        numbers = {name: one[name] for name in _NUMBERS if isinstance(one.get(name), int)}
        if isinstance(reason, str) and len(numbers) == len(_NUMBERS):
            yield Extracted(**numbers, reason=reason)
