"""What the fake upstream is told to answer, and what it answers when it is told nothing."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from compression.tokens import default_counter

Json = dict[str, Any]

# Characters of a text that is counted exactly, which takes some ten milliseconds.
_RULED = 50_000


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of the reply."""

    text: str


@dataclass(frozen=True, slots=True)
class Reasoning:
    """A piece of reasoning, under the key ``reasoning_content`` or another."""

    text: str
    key: str = "reasoning_content"


@dataclass(frozen=True, slots=True)
class SummaryHalf:
    """The first or the second half of :func:`summary_delta` of what is asked."""

    number: int


@dataclass(frozen=True, slots=True)
class Tool:
    """A whole tool call."""

    name: str
    arguments: str = "{}"
    id: str = "call_fake"
    index: int = 0


@dataclass(frozen=True, slots=True)
class Delay:
    """Wait so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait until the test sets the event, or asks the server to with ``POST /release``."""

    event: asyncio.Event


@dataclass(frozen=True, slots=True)
class Raw:
    """Bytes, sent as they are."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Chunk:
    """One JSON event of the test's own making."""

    payload: Any


@dataclass(frozen=True, slots=True)
class Finish:
    """The chunk with the finish reason."""

    reason: str = "stop"


@dataclass(frozen=True, slots=True)
class Usage:
    """The chunk with the token counts. None: counted from the request and what was sent."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Done:
    """``data: [DONE]``."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Close the connection in the middle."""


@dataclass(frozen=True, slots=True)
class KeepAlive:
    """Comment lines for ever, one every so many seconds."""

    every: float = 0.02


Step = (
    Text
    | Reasoning
    | SummaryHalf
    | Tool
    | Delay
    | Wait
    | Raw
    | Chunk
    | Finish
    | Usage
    | Done
    | Cut
    | KeepAlive
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """One answer. With ``body`` it is sent whole; else ``steps`` are streamed in order."""

    steps: tuple[Step, ...] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    content_type: str = "text/event-stream"

    def followed_by(self, *steps: Step) -> Script:
        """The same with more steps at its end."""
        return replace(self, steps=(*self.steps, *steps))


def saying(
    text: str,
    *,
    finish: str | None = "stop",
    usage: Usage | None = Usage(),
    seconds_a_word: float = 0.0,
    reasoning: str = "",
) -> Script:
    """A usual reply, word by word; ``finish=None`` leaves it without an end."""
    steps: list[Step] = [Reasoning(word) for word in words(reasoning)]
    for word in words(text):
        if seconds_a_word:
            steps.append(Delay(seconds_a_word))
        steps.append(Text(word))
    if finish is not None:
        steps += [Finish(finish), *([usage] if usage else []), Done()]
    return Script(steps=tuple(steps))


def failing(
    status: int,
    message: str = "",
    *,
    code: str | int | None = None,
    headers: Mapping[str, str] | None = None,
    parameter: str | None = None,
    body: bytes | None = None,
) -> Script:
    """An HTTP error with OpenAI's error object, or with a ``body`` of the test's own."""
    error = {"message": message, "code": code, "param": parameter, "type": "error"}
    return Script(
        status=status,
        headers=headers or {},
        body=json.dumps({"error": error}).encode() if body is None else body,
        content_type="application/json",
    )


def redirecting(location: str) -> Script:
    """A 307 to another address."""
    return Script(status=307, headers={"Location": location}, body=b"")


def calling(*tools: Tool) -> Script:
    """A reply that consists of tool calls."""
    numbered = tuple(replace(tool, index=number) for number, tool in enumerate(tools))
    return Script(steps=(*numbered, Finish("tool_calls"), Usage(), Done()))


def from_json(described: Json) -> Script:
    """A script from its description in JSON, for tests in another process.

    ``{"text": "…", "finish": "stop", "seconds_a_word": 0.02, "reasoning": "…"}`` is
    :func:`saying`; ``{"status": 500, "message": "…", "headers": {…}}`` is :func:`failing`;
    ``{"steps": [{"text": "…"}, {"delay": 1}, {"cut": true}, …]}`` spells the steps out: text,
    reasoning, summary (1 or 2: that half of one), delay, wait (until the test says so), raw, chunk,
    tool (an object), finish, usage (an object), done, cut, keep_alive.
    """
    if "steps" in described:
        return Script(steps=tuple(_step(step) for step in described["steps"]))
    if described.get("status", 200) != 200:
        return failing(
            described["status"],
            described.get("message", ""),
            code=described.get("code"),
            headers=described.get("headers"),
        )
    return saying(
        described["text"],
        finish=described.get("finish", "stop"),
        seconds_a_word=described.get("seconds_a_word", 0.0),
        reasoning=described.get("reasoning", ""),
    )


def _step(described: Json) -> Step:
    ((name, value),) = described.items()
    match name:
        case "text":
            return Text(value)
        case "reasoning":
            return Reasoning(value)
        case "summary":
            return SummaryHalf(int(value))
        case "delay":
            return Delay(float(value))
        case "wait":
            return Wait(asyncio.Event())
        case "raw":
            return Raw(value.encode())
        case "chunk":
            return Chunk(value)
        case "tool":
            return Tool(**value)
        case "finish":
            return Finish(value)
        case "usage":
            return Usage(**value)
        case "keep_alive":
            return KeepAlive(float(value))
        case "done":
            return Done()
        case "cut":
            return Cut()
    raise ValueError(f"unknown step: {name}")


def words(text: str) -> list[str]:
    """The text in pieces of about one token; joined, they are the text."""
    return re.findall(r"\s*\S+|\s+$", text)


@lru_cache(maxsize=1_000)
def tokens(text: str) -> int:
    """As our ruler counts them, so that no text teaches another calibration; long ones roughly."""
    return default_counter().count(text) if len(text) <= _RULED else len(text) // 4


def prompt_tokens(request: Json) -> int:
    """The estimate for all that a request holds."""
    return sum(tokens(text_of(message)) + 4 for message in request.get("messages", ()))


def text_of(message: Json) -> str:
    """A message's text, whether a string or a list of parts."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))


def default_answer(request: Json) -> Script:
    """A summary delta for a summary request, else a short echo of the last user message."""
    if is_summary_request(request):
        return saying(json.dumps(summary_delta(request)))
    said = [text_of(m) for m in request.get("messages", ()) if m.get("role") == "user"]
    last = " ".join(said[-1].split())[:200] if said else ""
    return saying(f"You said: {last}")


def is_summary_request(request: Json) -> bool:
    """Recognised by the JSON schema's name, or by the words of the instructions."""
    wanted = request.get("response_format") or {}
    if (wanted.get("json_schema") or {}).get("name") == "compression":
        return True
    system = " ".join(
        text_of(m) for m in request.get("messages", ()) if m.get("role") in {"system", "user"}
    )
    return '"supersede"' in system and '"narrative"' in system


_QUOTED = re.compile(
    r'<message-(?P<nonce>\w+) seq="(?P<seq>\d+)" role="(?P<role>\w+)"[^\n]*>\n'
    r"(?P<text>[\s\S]*?)\n</message-(?P=nonce)>"
)
"""As :func:`compression.summarizers.quoting.quote_item` writes them."""
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]?")
_RULE = re.compile(r"\b(?:always|never|must|do not|don't)\b", re.I)


def quoted_messages(request: Json) -> list[tuple[int, str, str]]:
    """(seq, role, text) of the messages that a summary request quotes."""
    prompt = "\n".join(text_of(m) for m in request.get("messages", ()) if m.get("role") == "user")
    return [
        (int(found["seq"]), found["role"], found["text"].strip())
        for found in _QUOTED.finditer(prompt)
    ]


def summary_delta(request: Json) -> Json:
    """A sensible delta: rules of the user word for word, and lines about what was asked."""
    quoted = quoted_messages(request)
    added: list[Json] = []
    for seq, role, text in quoted:
        if role != "user":
            continue
        rule = next(filter(_RULE.search, _SENTENCE.findall(text)), "")
        if rule:
            added.append({"section": "constraints", "text": rule.strip()[:400], "sources": [seq]})
    told = [(seq, text) for seq, role, text in quoted if role == "user" and text]
    told = told or [(seq, text) for seq, role, text in quoted if text]
    # One of the beginning, one of the middle, one of the end: a summary tells of all its messages.
    for seq, text in dict.fromkeys((told[0], told[len(told) // 2], told[-1])) if told else ():
        # A piece of a giant message begins in the middle of a word.
        line = text.split(". ", 1)[-1] if len(text) > 2000 else text
        first = re.split(r"[\n<]", line)[0].strip()
        if len(first) > 160:
            first = first[:160].rsplit(" ", 1)[0]
        if first:
            added.append({"section": "done", "text": first, "sources": [seq]})
    return {
        "narrative": "The user asked and the assistant answered.",
        "add": added,
        "resolve": [],
        "supersede": [],
        "lift": [],
    }
