"""Messages quoted as data for a model, each under a heading with its number. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from compression.recall.ports import Original
from compression.recall.terms import Terms, pattern_of, window

#: Characters of one message that are looked at, as many as a full-text index takes in.
MOST_OF_ONE: Final = 100_000
_HEADING = re.compile(
    r"^\[(\d{1,18}), (?:user|assistant|tool)(?: [^\n,\]]{1,64})?(?:, [\d-]{10} [\d:]{5})?\]$", re.M
)
# Where a passage is cut.
_CUT: Final = "…"
_BREAKS: Final = "\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029"
# The start of a line, and spaces that stay on it: over a run of line ends, spaces that cross them
# would take a time that grows with the square of its length.
_START: Final = f"(?:^|(?<=[{_BREAKS}]))"
_SPACES: Final = rf"[^\S{_BREAKS}]*"
# What a text could open to look like a heading; wider than a heading, so that a model is not
# deceived by one that is almost right.
_ALMOST = re.compile(
    rf"{_START}({_SPACES})\[(?={_SPACES}\d+{_SPACES},{_SPACES}(?:user|assistant|tool)\b)", re.I
)
_MARK = re.compile(r"^=== \d{6} ===$", re.M)
_ALMOST_MARK = re.compile(
    rf"{_START}{_SPACES}={{3,}}{_SPACES}\d{{6}}{_SPACES}={{3,}}{_SPACES}(?=[{_BREAKS}]|\Z)"
)
# Characters of a tool's name that stand in a heading.
_NAME = re.compile(r"[^\w.-]")
_LONGEST_NAME: Final = 64
#: Ranges of numbers that are listed; the end of the last one stands for the others.
MOST_RANGES: Final = 10


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

    Lines of a text that look like one of these or like a heading are defused, so that no text
    ends the quotation or adds a message to it. The number in the lines is worked out from the
    texts: the same passages are always quoted in the same way.
    """
    pairs = [(heading(one), _ALMOST.sub(r"\1\\[", text)) for one, text in passages]
    body = "\n\n".join(f"{head}\n{text}" for head, text in pairs)
    digest = hashlib.sha256(body.encode("utf-8", "replace")).hexdigest()
    mark = f"=== {int(digest, 16) % 10**6:06d} ==="
    return f"{mark}\n{_ALMOST_MARK.sub('=== ===', body)}\n{mark}"


def numbers(text: str) -> tuple[int, ...]:
    """The numbers of the messages that :func:`quoted` has put into a text, each once, in order."""
    return tuple(dict.fromkeys(number for number, _ in _passages(text)))


def in_full(text: str) -> frozenset[int]:
    """The numbers of the messages that :func:`quoted` has put whole into a text.

    A message that itself begins or ends as if it were cut is not among them.
    """
    return frozenset(
        number
        for number, passage in _passages(text)
        if passage and not passage.startswith(_CUT) and not passage.endswith(_CUT)
    )


def _passages(text: str) -> Iterator[tuple[int, str]]:
    """The number and the passage of each message that a text quotes."""
    marks = list(_MARK.finditer(text))
    for first, last in zip(marks[::2], marks[1::2], strict=False):
        heads = list(_HEADING.finditer(text, first.end(), last.start()))
        ends = [*(one.start() for one in heads[1:]), last.start()]
        for head, end in zip(heads, ends, strict=False):
            yield int(head[1]), text[head.end() : end].strip()


def cut(text: str, length: int) -> str:
    """The first characters of a text, so many at most, with the mark of a cut if it is longer."""
    if len(text) <= length:
        return text
    kept = text[: max(0, length - 2)].rstrip()
    return f"{kept} {_CUT}" if kept else ""


def stretch(text: str, terms: Terms, length: int) -> str:
    """The part of a text with the most different terms, about ``length`` characters long."""
    if len(text) <= length:
        return text
    searched = text[:MOST_OF_ONE]
    pattern = pattern_of(terms)
    spans = [match.span() for match in pattern.finditer(searched)] if pattern else []
    start, end = window(searched, spans, length)
    # A match may be as long as the text.
    end = min(end, start + 2 * length)
    before, after = f"{_CUT} " if start else "", f" {_CUT}" if end < len(text) else ""
    return before + text[start:end].strip() + after


def ranges(seqs: Sequence[int]) -> str:
    """Ascending numbers in words: "3, 5–8", or "3, 5–8, … to 99" where there are very many."""
    found: list[list[int]] = []
    for seq in seqs:
        if found and seq == found[-1][1] + 1:
            found[-1][1] = seq
        else:
            found.append([seq, seq])
    told = [f"{a}" if a == b else f"{a}–{b}" for a, b in found[:MOST_RANGES]]
    if len(found) > MOST_RANGES:
        told.append(f"… to {found[-1][1]}")
    return ", ".join(told)


def with_calls(text: str, calls: Sequence[Mapping[str, Any]]) -> str:
    """A message's text and its calls, with their arguments as they were before they became JSON."""
    return "\n".join([*([text] if text else []), *map(_called, calls)])


def _called(call: Mapping[str, Any]) -> str:
    function = call.get("function")
    if not isinstance(function, Mapping):
        return "(calls a tool)"
    arguments = function.get("arguments")
    written = str(arguments or "")
    try:
        values = json.loads(arguments) if isinstance(arguments, str) else arguments
        if isinstance(values, Mapping):
            written = "\n".join(f"{name}: {_written(value)}" for name, value in values.items())
            # Half of a character, escaped in JSON, cannot be sent as it is.
            written.encode()
    except (ValueError, RecursionError):
        written = str(arguments)
    return f"(calls {function.get('name') or 'a tool'})\n{written}".rstrip()


def _written(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
