"""The small parts of a streamed reply: clean text, tool calls in pieces, token counts. Pure."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from chatapp.llm.client import TokenUsage, ToolCall
from compression.tools.texts import REPLACEMENT, mend, mended

#: In one reply; OpenAI's own limit for parallel calls.
MAX_TOOL_CALLS = 128
#: Characters of a tool call's id or name; what the database keeps.
MAX_NAME = 200
#: The fields of a tool call, and of its function, that are read. All others are kept as they are.
_READ = frozenset({"index", "id", "type", "function"})
_READ_OF_FUNCTION = frozenset({"name", "arguments"})
#: The marks by which JSON opens and closes; an escaped character is none.
_JSON_MARK = re.compile(r'\\.|["{}\[\]]', re.DOTALL)


def as_dict(value: object) -> dict[str, Any]:
    """The value if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


class TextCleaner:
    """Replaces what no database stores: NUL, and halves of surrogate pairs.

    A pair may be split between two pieces, so a first half at the end is held back until the
    next piece, or until :meth:`rest`.
    """

    def __init__(self) -> None:
        self._held = ""

    def clean(self, text: str) -> str:
        """The piece, cleaned; possibly empty when all of it is held back."""
        if not self._held and text.isascii():
            return text.replace("\0", REPLACEMENT) if "\0" in text else text
        text = self._held + text
        self._held = ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            self._held = text[-1]
            text = text[:-1]
        return mend(text)

    def rest(self) -> str:
        """The characters held back at the end, replaced."""
        held, self._held = self._held, ""
        return REPLACEMENT if held else ""


@dataclass(slots=True)
class _Growing:
    """A tool call of which more may come."""

    index: object = None
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)
    _depth: int = 0
    _quoted: bool = False
    _escaped: bool = False
    _closed: bool = False

    @property
    def whole(self) -> bool:
        """Whether the arguments are a closed object or list, so that nothing can continue them."""
        return self._closed

    def grow(self, arguments: str) -> None:
        """Append a piece of the arguments."""
        self.arguments.append(arguments)
        for mark in _JSON_MARK.finditer(arguments, 1 if self._escaped else 0):
            found = mark[0]
            if self._quoted:
                self._quoted = found != '"'
            elif found == '"':
                self._quoted = True
            elif found in "{[":
                self._depth += 1
            elif found in "}]":
                self._depth -= 1
                self._closed = self._depth <= 0
        backslashes = len(arguments) - len(arguments.rstrip("\\"))
        carried = self._escaped and backslashes == len(arguments)
        self._escaped = self._quoted and (backslashes - carried) % 2 == 1


class ToolCallAssembler:
    """Puts tool calls together, whichever way a provider cuts them.

    Seen in recorded streams: the arguments in pieces under one ``index`` (OpenAI); a call whole
    and without ``index`` (Mistral); id and name repeated with each piece; ``id: ""`` repeated
    (Alibaba); several whole calls that share the index 0; arguments as an object or null.

    A piece belongs to the call whose id it has, else to the call at its index, and if it has no
    id, no name and no known index, to the call that grew last. Fields that are not read here, such
    as signatures of reasoning, are kept with the call.
    """

    def __init__(self) -> None:
        self._calls: list[_Growing] = []
        self._by_index: dict[int, _Growing] = {}
        self._by_id: dict[str, list[_Growing]] = {}
        self._current: _Growing | None = None

    def add(self, piece: object) -> int:
        """Take one element of ``delta.tool_calls``; returns by how many characters it grew."""
        part = as_dict(piece)
        function = as_dict(part.get("function"))
        name, call_id = _word(function.get("name")), _word(part.get("id"))
        arguments = function.get("arguments")
        if isinstance(arguments, dict | list):
            arguments = json.dumps(arguments)
        if not isinstance(arguments, str):
            arguments = ""
        extra, size = _unread(part, function)
        if not (name or call_id or arguments or extra):
            return 0
        call = self._find(part.get("index"), call_id, name, arguments)
        if call is None:
            return 0
        self._current = call
        # Said again with each piece by some providers: it grows once.
        grown = size + (0 if call.name else len(name))
        call.name = call.name or name
        call.extra |= extra
        if arguments:
            call.grow(arguments)
        return grown + len(arguments)

    def calls(self) -> tuple[ToolCall, ...]:
        """All calls, in the order in which they began."""
        return tuple(
            ToolCall(
                id=call.id or f"call_{number}",
                name=call.name,
                arguments=mend("".join(call.arguments)),
                extra=call.extra,
            )
            for number, call in enumerate(self._calls, start=1)
        )

    def _find(self, index: object, call_id: str, name: str, arguments: str) -> _Growing | None:
        """The call that a piece belongs to, begun if need be; None when there are too many."""
        place = index if isinstance(index, int) and not isinstance(index, bool) else None
        if call_id in self._by_id:
            found = self._of_id(place, call_id, name, arguments)
        elif place is not None and place in self._by_index:
            found = self._by_index[place]
            # Another id with a name is another call; an id alone may be new with each piece.
            other_id = call_id and found.id not in {"", call_id}
            if name and (other_id or _begins_another(found, name, arguments)):
                found = None
        elif call_id or name:
            # A name alone may belong to the id that came before it, or be repeated.
            found = None if call_id or place is not None else self._current
            if found is not None and _begins_another(found, name, arguments):
                found = None
        else:
            found = self._current
        return self._begin(place, call_id) if found is None else self._named(found, call_id)

    def _of_id(self, place: int | None, call_id: str, name: str, arguments: str) -> _Growing | None:
        """The call with this id; None if the piece begins another call under the same id."""
        known = self._by_id[call_id]
        at_place = next((call for call in known if place is not None and call.index == place), None)
        found = at_place or known[-1]
        if not name:
            return found
        here = at_place is not None or place is None or place in self._by_index
        if found.whole:
            return None if not here or _begins_another(found, name, arguments) else found
        if here:
            return found
        # A new index: the call goes on only if this cannot be the beginning of its arguments.
        return found if arguments and not arguments.lstrip().startswith("{") else None

    def _begin(self, place: int | None, call_id: str) -> _Growing | None:
        if len(self._calls) >= MAX_TOOL_CALLS:
            return None
        call = _Growing(index=place)
        self._calls.append(call)
        if place is not None:
            self._by_index[place] = call
        return self._named(call, call_id)

    def _named(self, call: _Growing, call_id: str) -> _Growing:
        """The call, which has this id from now on unless it had another."""
        if call_id and not call.id:
            call.id = call_id
            self._by_id.setdefault(call_id, []).append(call)
        return call


def _begins_another(call: _Growing, name: str, arguments: str) -> bool:
    """Whether a piece with a name but without a new id is the beginning of another call.

    A piece that only repeats the name of a whole call is none: some servers end a call by one.
    """
    return bool(call.name) and (call.name != name or (call.whole and bool(arguments.strip())))


def _unread(part: dict[str, Any], function: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """The fields of a piece that the assembler does not read, and their characters as JSON."""
    extra = {key: value for key, value in part.items() if key not in _READ and value is not None}
    inside = {
        key: value
        for key, value in function.items()
        if key not in _READ_OF_FUNCTION and value is not None
    }
    if inside:
        extra["function"] = inside
    if not extra:
        return {}, 0
    try:
        kept: dict[str, Any] = mended(extra)
        return kept, len(json.dumps(kept))
    except RecursionError:
        # Nested deeper than anything meant to be sent back.
        return {}, 0


def detailed_reasoning(details: object) -> str:
    """The text of ``reasoning_details``, OpenRouter's form: texts and summaries, one after another.

    Encrypted details hold nothing for a reader.
    """
    texts = []
    for one in details if isinstance(details, list) else ():
        part = as_dict(one)
        text = part.get("text") or part.get("summary")
        if isinstance(text, str):
            texts.append(text)
    return "".join(texts)


def token_usage(usage: object) -> TokenUsage | None:
    """A provider's ``usage`` object; None when it holds no usable counts."""
    counts = as_dict(usage)
    prompt = _count(counts.get("prompt_tokens"))
    completion = _count(counts.get("completion_tokens"))
    if prompt is None and completion is None:
        return None
    cached = _count(as_dict(counts.get("prompt_tokens_details")).get("cached_tokens"))
    if cached is None:
        cached = _count(counts.get("prompt_cache_hit_tokens"))
    return TokenUsage(
        prompt_tokens=prompt or 0, completion_tokens=completion or 0, cached_tokens=cached or 0
    )


def _count(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53:
        return value
    return None


def _word(value: object) -> str:
    return mend(value)[:MAX_NAME] if isinstance(value, str) else ""
