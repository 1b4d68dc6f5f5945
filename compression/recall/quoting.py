"""Messages quoted as data for a model, each under a heading with its number. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Final

from compression.recall.ports import Original
from compression.recall.terms import Terms, pattern_of, window

_HEADING = re.compile(
    r"^\[(\d{1,18}), (?:user|assistant|tool)(?: [^\n,\]]{1,64})?(?:, [\d-]{10} [\d:]{5})?\]$", re.M
)
# What a text could open to look like a heading; wider than a heading, so that a model is not
# deceived by one that is almost right.
_ALMOST = re.compile(r"^(\s*)\[(?=\s*\d+\s*,\s*(?:user|assistant|tool)\b)", re.M | re.IGNORECASE)
_MARK = re.compile(r"^=== \d{6} ===$", re.M)
# Characters of a tool's name that stand in a heading.
_NAME = re.compile(r"[^\w.-]")
_LONGEST_NAME: Final = 64


def heading(message: Original) -> str:
    """``[12, user, 2026-05-03 14:02]``; the time is left out if it is not known."""
    parts = [str(message.seq), message.role]
    if message.tool_name:
        parts[1] += f" {_NAME.sub('', message.tool_name)[:_LONGEST_NAME]}".rstrip()
    if message.at is not None:
        parts.append(f"{message.at:%Y-%m-%d %H:%M}")
    return f"[{', '.join(parts)}]"


def quoted(passages: Iterable[tuple[Original, str]]) -> str:
    """The passages between two equal lines, each under the heading of its message.

    The lines hold a number that is worked out from the texts, so that no text holds it but by
    chance; one that does, and a line of a text that looks like a heading, are defused.
    """
    pairs = [(heading(one), _ALMOST.sub(r"\1\\[", text)) for one, text in passages]
    body = "\n\n".join(f"{head}\n{text}" for head, text in pairs)
    digest = hashlib.sha256(body.encode("utf-8", "replace")).hexdigest()
    mark = f"=== {int(digest, 16) % 10**6:06d} ==="
    return f"{mark}\n{_MARK.sub('=== ===', body)}\n{mark}"


def numbers(text: str) -> tuple[int, ...]:
    """The numbers of the messages that :func:`quoted` has put into a text, each once, in order."""
    found = []
    marks = list(_MARK.finditer(text))
    for first, last in zip(marks[::2], marks[1::2], strict=False):
        found += [int(one[1]) for one in _HEADING.finditer(text, first.end(), last.start())]
    return tuple(dict.fromkeys(found))


def stretch(text: str, terms: Terms, length: int) -> str:
    """The part of a text with the most different terms, about ``length`` characters long."""
    if len(text) <= length:
        return text
    pattern = pattern_of(terms)
    spans = [match.span() for match in pattern.finditer(text)] if pattern else []
    start, end = window(text, spans, length)
    return ("… " if start else "") + text[start:end].strip() + (" …" if end < len(text) else "")


def ranges(seqs: Sequence[int]) -> str:
    """Ascending numbers in words: "3, 5–8"."""
    found: list[list[int]] = []
    for seq in seqs:
        if found and seq == found[-1][1] + 1:
            found[-1][1] = seq
        else:
            found.append([seq, seq])
    return ", ".join(f"{a}" if a == b else f"{a}–{b}" for a, b in found)
