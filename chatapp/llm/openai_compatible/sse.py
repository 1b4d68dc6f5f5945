"""Server-sent events in, chunks out: pure, incremental, strict, bounded.

The SDK builds a model object for each chunk, which costs about ten times as much as the JSON
itself, and passes stray exceptions on. This decoder takes bytes at any split and yields the
values of :mod:`chatapp.llm.client`. It ignores what it does not know, and raises an
:class:`chatapp.llm.errors.LLMError` for what cannot be a reply.

The framing follows the WHATWG HTML standard, section 9.2.6 "Interpreting an event stream".
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from chatapp.llm.client import Chunk, Finished, ReasoningChunk, TextChunk, TokenUsage
from chatapp.llm.errors import EmptyReply, LLMError, MalformedReply, ReplyCut, ReplyTooLong
from chatapp.llm.openai_compatible.classify import from_error_event
from chatapp.llm.openai_compatible.pieces import (
    TextCleaner,
    ToolCallAssembler,
    as_dict,
    detailed_reasoning,
    token_usage,
)

#: One event. Servers that send the token ids of the prompt along reach about 1 MB; 4 MB of JSON
#: are decoded in about 40 ms.
MAX_EVENT_BYTES = 4 * 1024 * 1024
#: Text, reasoning and tool arguments together.
MAX_REPLY_CHARACTERS = 400_000
#: What a reply may be made of, beside what it says: lines and parts of lists. An event takes two
#: or three lines and says a character or more, so that this is left for what says nothing: comments
#: that keep a connection open, and an empty event for each hidden token of the longest reasoning
#: that a model is sold with (128,000). They are decoded in about a second.
EMPTY_LINES = 300_000
LINES_PER_CHARACTER = 4
#: The same in bytes: an event without content takes 300 to 450, and a server that repeats the whole
#: message beside each piece (Perplexity) has sent 200 MB after 40,000 characters.
EMPTY_BYTES = 256 * 1024 * 1024
BYTES_PER_CHARACTER = 1024
#: Characters of a finish reason or half of those of a model's name that are kept.
MAX_WORD = 64

#: Other servers' words for the four that OpenAI has.
_FINISH_WORDS = {
    "end_turn": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_length": "length",
    "function_call": "tool_calls",
    "tool_use": "tool_calls",
    "safety": "content_filter",
}


class StreamDecoder:
    """One streamed reply. Feed bytes until they end, then call :meth:`end` once.

    ``done`` is true once ``[DONE]`` has come: what follows is ignored. ``finish_reason`` is
    empty until the model said why it stopped. ``error`` is what the server complained of after
    that, or with it: the reply is whole as far as the model was concerned.
    """

    def __init__(
        self,
        *,
        max_reply_characters: int = MAX_REPLY_CHARACTERS,
        max_event_bytes: int = MAX_EVENT_BYTES,
    ) -> None:
        self.done = False
        self.finish_reason = ""
        self.usage: TokenUsage | None = None
        self.model = ""
        self.error: LLMError | None = None
        self._max_event_bytes = max_event_bytes
        self._max_characters = max_reply_characters
        self._characters_left = max_reply_characters
        self._out: list[Chunk] = []
        self._line = bytearray()
        self._after_return = False
        self._at_start = True
        self._event_name = ""
        self._data: list[bytes] = []
        self._data_bytes = 0
        self._events = 0
        self._bytes = self._pieces = 0
        self._text = TextCleaner()
        self._reasoning = TextCleaner()
        self._refused = False
        self._said = False
        self._reasoned = False
        self._tools = ToolCallAssembler()

    @property
    def characters(self) -> int:
        """Characters of text, reasoning and tool arguments that have come so far."""
        return self._max_characters - self._characters_left

    def feed(self, data: bytes) -> Iterator[Chunk]:
        """The chunks that these bytes complete; neighbours of one kind come as one.

        Raises MalformedReply, ReplyTooLong, or the error that the server sent, each after the
        chunks that came before it.
        """
        error: Exception | None = None
        try:
            self._split(data)
        except (MalformedReply, ReplyTooLong) as caught:
            error = caught
        except ServerSaid as caught:
            error = self._complaint(from_error_event(caught.error))
        yield from self._taken()
        if error is not None:
            raise error from None

    def feed_whole(self, body: bytes) -> Iterator[Chunk]:
        """The chunks of an answer that is one JSON object instead of a stream."""
        yield from self.feed(b"data: " + b" ".join(body.splitlines()) + b"\n\n")

    def end(self) -> Iterator[Chunk]:
        """The chunks still held back, and then :class:`Finished`.

        Some servers (Snowflake) give no finish reason: their usage and ``[DONE]`` together are the
        end that they mean. Raises ReplyCut when neither has come, EmptyReply when nothing at all
        has, and what :meth:`feed` raises.
        """
        if not self.done and (self._line or self._data):
            yield from self._last_words()
        for kind, cleaner in ((TextChunk, self._text), (ReasoningChunk, self._reasoning)):
            if rest := cleaner.rest():
                yield kind(text=rest)
        if not self._events and not self.done:
            raise EmptyReply("The model server closed the reply without sending anything. Retry.")
        calls = self._tools.calls()
        if not self.finish_reason:
            if not self.done or self.usage is None:
                raise ReplyCut
            self.finish_reason = "tool_calls" if calls else "stop"
        refused = self._refused and not self._said and self.finish_reason == "stop"
        yield Finished(
            finish_reason="refusal" if refused else self.finish_reason,
            tool_calls=calls,
            usage=self.usage,
            model=self.model,
            error=self.error,
        )

    def _complaint(self, error: LLMError) -> LLMError | None:
        """The error if it ends the reply; None if the model had ended it, and it is only kept."""
        if not self.finish_reason:
            return error
        self.error = error
        self.done = True
        return None

    def _last_words(self) -> Iterator[Chunk]:
        """An event without its blank line; half an event is what a cut leaves, so no error."""
        is_event = bool(self._data) or self._line.startswith(b"data:")
        try:
            yield from self.feed(b"\n\n")
        except MalformedReply:
            if not is_event:
                raise
            self._events += 1

    def _taken(self) -> Iterator[Chunk]:
        """Hand over what was decoded, joining neighbours."""
        chunks, self._out = self._out, []
        kind: type[TextChunk] | type[ReasoningChunk] = TextChunk
        texts: list[str] = []
        for chunk in chunks:
            if not isinstance(chunk, kind):
                if texts:
                    yield kind(text="".join(texts))
                texts = []
                kind = ReasoningChunk if kind is TextChunk else TextChunk
            if not isinstance(chunk, Finished):
                texts.append(chunk.text)
        if texts:
            yield kind(text="".join(texts))

    def _split(self, data: bytes) -> None:
        """Bytes to lines. A line ends with LF, CR LF or CR, which may be split as well."""
        if self._after_return and data[:1] == b"\n":
            data = data[1:]
            self._after_return = False
        if not data or self.done:
            return
        self._bytes += len(data)
        if self._bytes > EMPTY_BYTES + BYTES_PER_CHARACTER * self.characters:
            raise _says_nothing()
        self._after_return = data.endswith(b"\r")
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = data.split(b"\n")
        for line in lines:
            if self._line:
                self._bound(len(self._line) + len(line))
                line = bytes(self._line) + line
                self._line.clear()
            self._take_line(line)
            if self.done:
                return
        self._bound(len(self._line) + len(rest))
        self._line += rest

    def _bound(self, size: int) -> None:
        if size + self._data_bytes > self._max_event_bytes:
            raise MalformedReply(
                "The model server sent a single piece of more than "
                f"{self._max_event_bytes // 1024} KiB, which is no reply. Retry."
            )

    def _count_piece(self) -> None:
        self._pieces += 1
        if self._pieces > EMPTY_LINES + LINES_PER_CHARACTER * self.characters:
            raise _says_nothing()

    def _take_line(self, line: bytes) -> None:
        self._count_piece()
        if self._at_start:
            self._at_start = False
            line = line.removeprefix(b"\xef\xbb\xbf")
        if not line:
            self._dispatch()
        elif line.startswith(b"data:"):
            value = line[6:] if line.startswith(b"data: ") else line[5:]
            # Each with the line end that will join it to the next: empty ones take room as well.
            self._bound(len(value) + 1)
            self._data.append(value)
            self._data_bytes += len(value) + 1
        elif line.startswith(b"event:"):
            self._event_name = line[6:].strip().decode("utf-8", "replace")
        elif self._events == 0 and line.lstrip()[:1] in (b"<", b"{"):
            raise MalformedReply

    def _dispatch(self) -> None:
        """One event is whole. Events of a foreign name count only when they look like ours."""
        data, name = self._data, self._event_name
        if not data and not name:
            return
        self._data, self._event_name, self._data_bytes = [], "", 0
        raw = b"\n".join(data).strip()
        if not raw:
            return
        if raw == b"[DONE]":
            self.done = True
            return
        foreign = name not in {"", "message", "error"}
        try:
            payload = json.loads(raw.decode("utf-8"))
        except (ValueError, RecursionError):
            if foreign:
                return
            if name == "error":
                raise ServerSaid(raw.decode("utf-8", "replace")) from None
            raise MalformedReply(fault="not JSON") from None
        if not isinstance(payload, dict):
            if foreign:
                return
            raise MalformedReply(fault="not an object")
        self._events += 1
        self._take_payload(payload, is_error=name == "error")

    def _take_payload(self, payload: dict[str, Any], *, is_error: bool) -> None:
        error = payload.get("error")
        if error:
            # The last words and the finish reason may come in the same object.
            self._take_choices(payload, failed=True)
            raise ServerSaid(error)
        if payload.get("object") == "error" or (is_error and "choices" not in payload):
            raise ServerSaid(payload)
        usage = payload.get("usage") or as_dict(payload.get("x_groq")).get("usage")
        if usage:
            self.usage = token_usage(usage) or self.usage
        if not self.model and isinstance(payload.get("model"), str):
            self.model = TextCleaner().clean(payload["model"])[: 2 * MAX_WORD]
        self._take_choices(payload)

    def _take_choices(self, payload: dict[str, Any], *, failed: bool = False) -> None:
        choices = payload.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if isinstance(choice, dict) and not choice.get("index"):
                self._take_choice(choice, failed=failed)

    def _take_choice(self, choice: dict[str, Any], *, failed: bool) -> None:
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            delta = as_dict(choice.get("message"))
        if content := delta.get("content"):
            self._take_content(content)
        self._take_reasoning(delta)
        if refusal := delta.get("refusal"):
            self._refused = True
            self._emit_text(refusal)
        calls = delta.get("tool_calls")
        if isinstance(calls, list):
            for call in calls:
                self._count_piece()
                self._spend(self._tools.add(call))
        elif isinstance(delta.get("function_call"), dict):
            self._spend(self._tools.add({"index": 0, "function": delta["function_call"]}))
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason and not self.finish_reason:
            if reason == "error":
                if failed:
                    return
                raise ServerSaid("")
            word = TextCleaner().clean(reason)[:MAX_WORD]
            self.finish_reason = _FINISH_WORDS.get(word.lower(), word)

    def _take_reasoning(self, delta: dict[str, Any]) -> None:
        """Reasoning under the name that this server has for it.

        OpenRouter says it twice, as ``reasoning`` and in ``reasoning_details``: the details count
        only where they are all there is.
        """
        if plain := delta.get("reasoning_content") or delta.get("reasoning"):
            self._reasoned = True
            self._emit_reasoning(plain)
        elif not self._reasoned:
            self._emit_reasoning(detailed_reasoning(delta.get("reasoning_details")))

    def _take_content(self, content: object) -> None:
        """Text, or a list of parts of which some are thinking (Mistral)."""
        if isinstance(content, str):
            self._said = True
            self._emit_text(content)
        for part in content if isinstance(content, list) else ():
            self._count_piece()
            if isinstance(part, str):
                self._take_content(part)
            elif isinstance(part, dict) and part.get("type") == "thinking":
                self._emit_reasoning(_joined(part.get("thinking")))
            elif isinstance(part, dict) and isinstance(part.get("text"), str):
                self._take_content(part["text"])

    def _emit_text(self, text: object) -> None:
        if isinstance(text, str) and (clean := self._text.clean(text)):
            self._emit(TextChunk, clean)

    def _emit_reasoning(self, text: object) -> None:
        if isinstance(text, str) and (clean := self._reasoning.clean(text)):
            self._emit(ReasoningChunk, clean)

    def _emit(self, kind: type[TextChunk] | type[ReasoningChunk], text: str) -> None:
        kept = text[: self._characters_left]
        if kept:
            self._out.append(kind(text=kept))
        self._spend(len(text))

    def _spend(self, characters: int) -> None:
        self._characters_left -= characters
        if self._characters_left < 0:
            self._characters_left = 0
            raise ReplyTooLong


class ServerSaid(Exception):
    """An error object of the server inside a stream; internal to this module."""

    def __init__(self, error: object) -> None:
        self.error = error
        super().__init__("error event")


def _says_nothing() -> MalformedReply:
    return MalformedReply(
        "The model server kept sending without saying anything, so its reply was ended here. "
        "Retry, or choose another model.",
        fault="empty pieces",
    )


def _joined(parts: object) -> str:
    """The text of a string or of a list of text parts."""
    if isinstance(parts, str):
        return parts
    texts = [as_dict(part).get("text") for part in parts] if isinstance(parts, list) else []
    return "".join(text for text in texts if isinstance(text, str))
