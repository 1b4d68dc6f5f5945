"""Masking: a line that describes an old tool result takes the result's place, and the long
arguments of old calls are cut in the same way. Pure.

Masking removes no message, no call and no call id, and cut arguments are valid JSON. Messages are
masked in batches, because every change to an earlier message makes the provider's cache useless
from there on. What a masked message looks like follows from the stored message alone, so that
requests stay the same from one to the next.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from compression.planning.defaults import HIGHEST_THRESHOLD
from compression.planning.planner import usage
from compression.types import Item, Sizes

#: The least share of the budget that a batch must free.
BATCH = 0.05
#: The same at a compression, where the provider's cache is lost anyway.
BATCH_AT_COMPRESSION = 0.01
#: What a batch may make the provider read again, as a multiple of what it frees. A freed token
#: postpones the next compression, which reads the whole prompt once more for its summary, and loses
#: the cache of what remains: at the usual thresholds that comes to two tokens read.
MOST_REREAD = 2.0
#: Messages at the end of the conversation that are not masked.
RECENT = 6
#: Ruler tokens that masking a message must save at least.
LEAST_SAVED = 16
#: Characters: of a result longer than ``LONG``, the first ``KEPT`` stay below its description.
LONG = 2000
KEPT = 200
#: Characters of an argument's JSON up to which it is kept; for a path or an address the second one.
SHORT = 200
LONG_PATH = 1000
#: From this many lines on, the description gives the number of lines instead of the bytes.
MANY_LINES = 10
#: Ruler tokens that a message takes besides its text, roughly.
OVERHEAD = 8

# Few spaces only: this is asked of every result in every request, and some results are spaces.
_EXIT_CODE = re.compile(
    r"\bexit(?:ed with)?[ _-]?(?:code|status)?[\"']?\s{0,3}[:=]?\s{0,3}(-?\d{1,5})\b", re.I
)
_MASKED = re.compile(r"\[[^\n\[\]]{1,100} result masked: ")
_PATH = re.compile(r"path|file|folder|dir|url|uri", re.I)
#: The name of what stands for arguments that were left out, beside those that were kept.
REST = "masked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Messages that are masked together."""

    seqs: tuple[int, ...]
    """Oldest first."""
    frees: float
    """Share of the budget, roughly."""
    rereads: float
    """Share of the budget that lies behind the first of them, and leaves the provider's cache."""

    @property
    def pays(self) -> bool:
        """Whether it frees more than the lost cache is worth."""
        return self.rereads <= MOST_REREAD * self.frees


def batch(items: Sequence[Item], sizes: Sizes, *, at_compression: bool = False) -> Batch | None:
    """The messages to mask now; None when they would free less than 0.05 B.

    The last six messages are left alone, and nothing is masked twice. What a person has unmasked
    is left alone too, until there is hardly any room. The turn may still be open.
    ``at_compression``: the provider's cache is lost anyway, so that 0.01 B is enough.
    """
    again = usage(items, sizes).share >= HIGHEST_THRESHOLD
    old = items[: max(0, len(items) - RECENT)]
    saved = {item.seq: _saved(item) for item in old if _may_be_masked(item, again)}
    saved = {seq: tokens for seq, tokens in saved.items() if tokens >= LEAST_SAVED}
    if not saved:
        return None
    freed = sum(saved.values())
    behind = sum(item.sent_tokens for item in items if item.seq >= min(saved))
    found = Batch(
        seqs=tuple(sorted(saved)), frees=sizes.share(freed), rereads=sizes.share(behind - freed)
    )
    return found if found.frees >= (BATCH_AT_COMPRESSION if at_compression else BATCH) else None


def as_sent(item: Item) -> Item:
    """The item with the text and the calls that the model is sent; its ``tokens`` stay."""
    if not item.masked:
        return item
    if item.role == "tool":
        return replace(item, text=placeholder(item))
    return replace(item, tool_calls=cut_calls(item.tool_calls))


def tokens_masked(item: Item, count: Callable[[str], int]) -> int:
    """Ruler tokens of an item once it is masked; ``count`` is the ruler."""
    sent = as_sent(replace(item, masked=True))
    whole = count(item.text) + _count_calls(item, count)
    return max(1, item.tokens - whole + count(sent.text) + _count_calls(sent, count))


def _count_calls(item: Item, count: Callable[[str], int]) -> int:
    calls = [dict(call) for call in item.tool_calls]
    return count(json.dumps(calls, ensure_ascii=False)) if calls else 0


def placeholder(item: Item) -> str:
    """The line that replaces a tool result, such as ``[shell result masked: exit code 0, …]``."""
    name = re.sub(r"[^\w.:-]+", "_", item.tool_name)[:60] or "tool"
    exit_code = _EXIT_CODE.search(item.text[:2000]) or _EXIT_CODE.search(item.text[-500:])
    if exit_code is not None:
        what = f"exit code {exit_code[1]}, {_bytes(item.text)}"
    else:
        what = _described(item.text)
    line = f"[{name} result masked: {what}]"
    return f"{line}\n{item.text[:KEPT]}" if len(item.text) > LONG else line


def cut_calls(calls: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], ...]:
    """The calls with their long arguments described; ids, names and unknown fields stay.

    Paths, addresses and short arguments are kept. Cut arguments are a valid JSON object.
    """
    return tuple(_cut(call) for call in calls)


def _cut(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call.get("function")
    arguments = function.get("arguments") if isinstance(function, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(arguments, str):
        return dict(call)
    if len(arguments) <= SHORT:
        return dict(call)
    return {**call, "function": {**function, "arguments": _cut_arguments(arguments)}}


def _cut_arguments(arguments: str) -> str:
    try:
        values = json.loads(arguments)
        kept = _short_arguments(values) if isinstance(values, dict) else None
    except (ValueError, RecursionError):
        # Not JSON, or JSON that no strict reader takes, such as an infinite number.
        kept = None
    if kept is None:
        kept = {REST: f"[arguments masked: {_described(arguments)}]"}
    return json.dumps(kept, ensure_ascii=False)


def _short_arguments(values: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with long ones described; a few are left out if there are very many."""
    kept: dict[str, Any] = {}
    size = 0
    left_out = 0
    for name, value in values.items():
        written = json.dumps(value, allow_nan=False, ensure_ascii=False)
        f"{name}{written}".encode()
        if len(written) > (LONG_PATH if _is_path(name, value) else SHORT):
            text = value if isinstance(value, str) else written
            masked = f"[masked: {'; '.join([_described(text), *_kept_paths(name, value)])}]"
            # Of what is half paths, hardly anything would be saved.
            if isinstance(value, str) or 2 * len(masked) < len(written):
                value = written = masked
        size += len(name) + len(written)
        if len(name) > SHORT or size > LONG:
            left_out += 1
        else:
            kept[name] = value
    if left_out:
        kept[REST] = f"[{left_out:,} more arguments masked]"
    return kept


def _is_path(name: str, value: Any) -> bool:
    return isinstance(value, str) and "\n" not in value and _PATH.search(name) is not None


def _kept_paths(name: str, value: Any) -> list[str]:
    """The first paths and addresses within a list or an object that is described."""
    kept: list[str] = []
    if not isinstance(value, str):
        for path in dict.fromkeys(_paths(name, value)):
            if sum(map(len, kept)) + len(path) > LONG_PATH:
                break
            kept.append(path)
    return kept


def _paths(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for inner, one in value.items():
            yield from _paths(inner, one)
    elif isinstance(value, list):
        for one in value:
            yield from _paths(name, one)
    elif _is_path(name, value):
        yield value


def _described(text: str) -> str:
    """``214 lines, starts with: import os`` of a text with many lines, else its bytes."""
    lines = text.count("\n") + 1
    if lines < MANY_LINES:
        return _bytes(text)
    first = next((line.strip() for line in text.split("\n") if line.strip()), "")
    return f"{lines:,} lines, starts with: {first[:80]}"


def _bytes(text: str) -> str:
    return f"{len(text.encode('utf-8', 'surrogatepass')):,} bytes"


def _may_be_masked(item: Item, again: bool) -> bool:
    if item.masked or item.pinned or (item.unmasked and not again):
        return False
    if item.role == "tool":
        return not _MASKED.match(item.text)
    return item.role == "assistant" and bool(item.tool_calls)


def _saved(item: Item) -> int:
    """Ruler tokens that masking the item saves, roughly.

    Not counted, because this is asked again before each request: a placeholder has about one token
    for three bytes, and a call's arguments as many for a character as the whole message.
    """
    if item.role == "tool":
        kept = len(placeholder(item).encode("utf-8", "surrogatepass")) // 3
        return item.tokens - kept - OVERHEAD
    before = sum(len(_arguments(call)) for call in item.tool_calls)
    after = sum(len(_arguments(call)) for call in cut_calls(item.tool_calls))
    return item.tokens * (before - after) // max(1, before + len(item.text))


def _arguments(call: Mapping[str, Any]) -> str:
    function = call.get("function")
    arguments = function.get("arguments") if isinstance(function, Mapping) else None
    return arguments if isinstance(arguments, str) else ""
