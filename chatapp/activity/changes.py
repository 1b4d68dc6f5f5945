"""The difference between two requests: which messages came, went or changed. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any, Final, Literal

#: Messages that are compared one with another, and lines of two texts; beyond that, whatever is not
#: the same at the beginning counts as gone and come.
MOST_COMPARED: Final = 600
#: Unchanged lines shown around a changed one.
AROUND: Final = 1

Kind = Literal["same", "added", "gone", "changed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffLine:
    """One line of a changed text; ``kind`` is same, added, gone, or skipped."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Messages that stayed, or one that came, went or changed."""

    kind: Kind
    count: int = 1
    """Number of messages that stayed."""
    role: str = ""
    text: str = ""
    lines: tuple[DiffLine, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """A field of the request besides the messages, before and after; empty for none."""

    name: str
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What is different in a request."""

    steps: tuple[Step, ...]
    options: tuple[Option, ...]

    @property
    def is_continued(self) -> bool:
        """Whether the request is the former one with messages at its end: a cache may serve it."""
        first = next((n for n, one in enumerate(self.steps) if one.kind != "same"), None)
        rest = self.steps[first:] if first is not None else ()
        return not self.options and all(one.kind == "added" for one in rest)


def text_of(message: Mapping[str, Any]) -> str:
    """The text of a message; calls of tools, and parts that are no text, as JSON."""
    content = message.get("content")
    if not isinstance(content, str):
        content = "" if content is None else json.dumps(content, indent=2, ensure_ascii=False)
    calls = message.get("tool_calls")
    if calls:
        written = json.dumps(calls, indent=2, ensure_ascii=False)
        content = f"{content}\n\n{written}" if content else written
    return content


def messages_of(request: object) -> list[Mapping[str, Any]]:
    """The messages of a request; empty for whatever is none."""
    found = request.get("messages") if isinstance(request, Mapping) else None
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def compared(before: Mapping[str, Any], after: Mapping[str, Any]) -> Changes:
    """What is different in ``after``."""
    old, new = messages_of(before), messages_of(after)
    return Changes(steps=tuple(_steps(old, new)), options=tuple(_options(before, after)))


def _options(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Option]:
    for name in sorted((before.keys() | after.keys()) - {"messages"}):
        if before.get(name) != after.get(name):
            yield Option(name=name, before=_short(before.get(name)), after=_short(after.get(name)))


def _short(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        names = [_name(one) for one in value]
        return ", ".join(name for name in names if name) or f"{len(value)}"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else f"{text[:200]}…"


def _name(tool: object) -> str:
    function = tool.get("function") if isinstance(tool, Mapping) else None
    return str(function.get("name") or "") if isinstance(function, Mapping) else ""


def _steps(old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]) -> Iterator[Step]:
    keys_old = [json.dumps(one, sort_keys=True) for one in old]
    keys_new = [json.dumps(one, sort_keys=True) for one in new]
    same = _same_beginning(keys_old, keys_new)
    if same:
        yield Step(kind="same", count=same)
    for kind, a, b, c, d in _operations(keys_old[same:], keys_new[same:]):
        if kind == "equal":
            yield Step(kind="same", count=b - a)
        else:
            yield from _replaced(old[same + a : same + b], new[same + c : same + d])


def _same_beginning(old: Sequence[str], new: Sequence[str]) -> int:
    count = 0
    for one, other in zip(old, new, strict=False):
        if one != other:
            break
        count += 1
    return count


def _operations(old: Sequence[str], new: Sequence[str]) -> Sequence[tuple[str, int, int, int, int]]:
    if max(len(old), len(new)) > MOST_COMPARED:
        return [("replace", 0, len(old), 0, len(new))]
    return SequenceMatcher(None, old, new, autojunk=False).get_opcodes()


def _replaced(old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]) -> Iterator[Step]:
    for one, other in zip_longest(old, new):
        if one and other and one.get("role") == other.get("role"):
            lines = tuple(_line_changes(text_of(one), text_of(other)))
            yield Step(kind="changed", role=_role(other), lines=lines)
            continue
        if one is not None:
            yield Step(kind="gone", role=_role(one), text=text_of(one))
        if other is not None:
            yield Step(kind="added", role=_role(other), text=text_of(other))


def _role(message: Mapping[str, Any]) -> str:
    return str(message.get("role") or "")


def _line_changes(before: str, after: str) -> Iterator[DiffLine]:
    """The changed lines with few around them."""
    old, new = before.split("\n"), after.split("\n")
    operations = _operations(old, new)
    for number, (kind, a, b, c, d) in enumerate(operations):
        if kind != "equal":
            yield from (DiffLine(kind="gone", text=line) for line in old[a:b])
            yield from (DiffLine(kind="added", text=line) for line in new[c:d])
            continue
        head = AROUND if number else 0
        tail = AROUND if number < len(operations) - 1 else 0
        if b - a <= head + tail + 1:
            yield from (DiffLine(kind="same", text=line) for line in old[a:b])
            continue
        yield from (DiffLine(kind="same", text=line) for line in old[a : a + head])
        yield DiffLine(kind="skipped", text=f"{b - a - head - tail}")
        yield from (DiffLine(kind="same", text=line) for line in old[b - tail : b])
