"""The small parts of a streamed reply: clean text, tool calls in pieces, token counts. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from chatapp.llm.client import TokenUsage, ToolCall

#: In one reply; OpenAI's own limit for parallel calls.
MAX_TOOL_CALLS = 128
#: Characters of a tool call's id or name; what the database keeps.
MAX_NAME = 200
#: In place of what no database stores: NUL, and halves of surrogate pairs.
REPLACEMENT = "\ufffd"


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


def mend(text: str) -> str:
    """The text with surrogate pairs joined, their halves and NUL replaced."""
    text = text.replace("\0", REPLACEMENT)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


@dataclass(slots=True)
class _Growing:
    """A tool call of which more may come."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


class ToolCallAssembler:
    """Puts tool calls together, whichever way a provider cuts them.

    Seen in recorded streams: the arguments in pieces under one ``index`` (OpenAI); a call whole
    and without ``index`` (Mistral); id and name repeated with each piece; ``id: ""`` repeated
    (Alibaba); several whole calls that share the index 0; arguments as an object or null.
    """

    def __init__(self) -> None:
        self._calls: list[_Growing] = []
        self._by_index: dict[int, _Growing] = {}

    def add(self, piece: object) -> int:
        """Take one element of ``delta.tool_calls``; returns by how many characters it grew."""
        part = as_dict(piece)
        function = as_dict(part.get("function"))
        name = _word(function.get("name"))
        call = self._find(part.get("index"), _word(part.get("id")), name)
        if call is None:
            return 0
        # Said again with each piece by some providers: it grows once.
        grown = 0 if call.name else len(name)
        call.name = call.name or name
        arguments = function.get("arguments")
        if isinstance(arguments, dict | list):
            arguments = json.dumps(arguments)
        if not isinstance(arguments, str) or not arguments:
            return grown
        call.arguments.append(arguments)
        return grown + len(arguments)

    def calls(self) -> tuple[ToolCall, ...]:
        """All calls, in the order in which they began."""
        return tuple(
            ToolCall(
                id=call.id or f"call_{number}",
                name=call.name,
                arguments=mend("".join(call.arguments)),
            )
            for number, call in enumerate(self._calls, start=1)
        )

    def _find(self, index: object, call_id: str, name: str) -> _Growing | None:
        """The call that a piece belongs to, begun if need be; None when there are too many."""
        found: _Growing | None = None
        if isinstance(index, int):
            found = self._by_index.get(index)
        elif call_id:
            found = next((call for call in self._calls if call.id == call_id), None)
        elif not name and self._calls:
            found = self._calls[-1]
        another = found is not None and call_id and name and found.id not in {"", call_id}
        if found is None or another:
            if len(self._calls) >= MAX_TOOL_CALLS:
                return None
            found = _Growing()
            self._calls.append(found)
            if isinstance(index, int):
                self._by_index[index] = found
        found.id = found.id or call_id
        return found


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
