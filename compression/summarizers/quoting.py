"""The input of a summariser: notes and messages, quoted as data. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from compression.types import Entry, EntryState, Item, Ledger, Origin, Section

#: Characters up to which an argument of a call, such as a path, stays whole when others are cut.
CALL_KEPT = 200

#: Characters of a tool's name.
LONGEST_NAME = 100

WORD = re.compile(r"[\w./-]{4,}")


def quote_item(item: Item, nonce: str) -> str:
    """One message between delimiters that its text cannot forge, because it cannot know the
    nonce."""
    calls = "".join(f"\n(calls {call.get('function', call)})" for call in item.tool_calls)
    name = f" tool={item.tool_name[:LONGEST_NAME]!r}" if item.tool_name else ""
    text = (item.text + calls).replace(nonce, "")
    return (
        f'<message-{nonce} seq="{item.seq}" role="{item.role}"{name}>\n{text}\n</message-{nonce}>'
    )


def quote_ledger(
    ledger: Ledger, nonce: str, *, about: str = "", limit: int, count: Callable[[str], int]
) -> str:
    """The present notes with their ids, as many of them as fit in ``limit`` ruler tokens.

    Constraints and pending entries come first, since only they can be lifted or resolved; then
    those that share most words with ``about``, the messages to be summarised; then the newest.
    """
    words = _words(about)
    shown = [one for one in ledger.entries if one.state in (EntryState.LIVE, EntryState.DONE)]
    lines: dict[int, str] = {}
    used = 0
    for entry in sorted(shown, key=lambda entry: _rank(entry, words)):
        line = _note(entry).replace(nonce, "")
        used += count(line) + 1
        if used > limit:
            break
        lines[entry.id] = line
    body = "\n".join(lines[entry.id] for entry in shown if entry.id in lines) or "(none yet)"
    return f"<notes-{nonce}>\n{body}\n</notes-{nonce}>"


def _rank(entry: Entry, words: frozenset[str]) -> tuple[int, float, int]:
    if entry.section is Section.CONSTRAINTS:
        return (0, 0.0, entry.id)
    if entry.section is Section.PENDING and entry.state is EntryState.LIVE:
        return (1, 0.0, -entry.id)
    own = _words(entry.text)
    return (2, -len(own & words) / max(1, len(own)), -entry.id)


def _words(text: str) -> frozenset[str]:
    return frozenset(WORD.findall(text.casefold()))


def _note(entry: Entry) -> str:
    fixed = " (written by a person: fixed)" if entry.origin is Origin.PERSON else ""
    return f"[{entry.id}] {entry.section.value}{fixed}: {' '.join(entry.text.split())}"


def shortened(item: Item, longest: int) -> Item:
    """The item, its tool result or call arguments cut to ``longest`` characters, head and tail."""
    if item.role == "tool":
        return item if len(item.text) <= longest else replace(item, text=_cut(item.text, longest))
    if not any(
        len(str(_function(call).get("arguments", ""))) > longest for call in item.tool_calls
    ):
        return item
    calls = tuple(
        {**call, "function": {**_function(call), "arguments": _cut_arguments(call, longest)}}
        for call in item.tool_calls
    )
    return replace(item, tool_calls=calls)


def _function(call: Mapping[str, Any]) -> Mapping[str, Any]:
    function = call.get("function")
    return function if isinstance(function, Mapping) else {}


def _cut_arguments(call: Mapping[str, Any], longest: int) -> Any:
    """The arguments of a call cut to ``longest`` characters; short ones, such as a path, whole."""
    arguments = _function(call).get("arguments", "")
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    if len(text) <= longest:
        return arguments
    try:
        named = json.loads(text)
    except (ValueError, RecursionError):
        named = None
    if not isinstance(named, dict):
        return _cut(text, longest)
    written = {name: json.dumps(one, ensure_ascii=False) for name, one in named.items()}
    long = [name for name, one in written.items() if len(one) > CALL_KEPT]
    short = sum(len(name) + len(one) for name, one in written.items() if name not in long)
    if not long or short > longest // 2:
        return _cut(text, longest)
    share = max(8, (longest - short) // len(long))
    for name in long:
        # The value of a string is cut; of anything else, its JSON.
        said = named[name] if isinstance(named[name], str) else written[name]
        named[name] = _cut(said, max(4, share * len(said) // len(written[name])))
    return json.dumps(named, ensure_ascii=False)


def _cut(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    head, tail = text[: longest * 3 // 4], text[-(longest // 4) :]
    left_out = len(text) - len(head) - len(tail)
    return f"{head}\n[… {left_out:,} characters …]\n{tail}"
