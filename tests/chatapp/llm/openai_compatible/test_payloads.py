"""The objects of a reply, read one by one; whole streams are in ``test_sse``."""

from __future__ import annotations

from typing import Any

import pytest

from chatapp.llm.client import ReasoningChunk, TextChunk, TokenUsage, ToolCall
from chatapp.llm.openai_compatible.bounds import Bounds
from chatapp.llm.openai_compatible.chunks import ChunkBuffer
from chatapp.llm.openai_compatible.event_stream import ServerSaid
from chatapp.llm.openai_compatible.payloads import PayloadReader


class Reading:
    """A reader, and what it has handed on."""

    def __init__(self) -> None:
        self.bounds = Bounds(max_characters=1000, max_event_bytes=1000)
        self.chunks = ChunkBuffer(self.bounds)
        self.reply = PayloadReader(self.chunks, self.bounds)

    def take(self, finish: str | None = None, **delta: Any) -> list[TextChunk | ReasoningChunk]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        self.reply.take({"choices": [choice]}, is_error=False)
        return self.chunks.drain()


def test_it_reads_a_reply() -> None:
    reading = Reading()
    assert reading.take(reasoning="Hm. ") == [ReasoningChunk(text="Hm. ")]
    assert reading.take(content="Yes.") == [TextChunk(text="Yes.")]
    call = {"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}
    assert reading.take("tool_use", tool_calls=[call]) == []
    usage = {"prompt_tokens": 3, "completion_tokens": 2}
    reading.reply.take({"model": "m", "usage": usage}, is_error=False)
    assert reading.reply.finish_reason == "tool_calls"
    assert reading.reply.tool_calls() == (ToolCall(id="c", name="f", arguments="{}"),)
    assert reading.reply.usage == TokenUsage(prompt_tokens=3, completion_tokens=2, cached_tokens=0)
    assert reading.reply.model == "m"
    assert reading.bounds.characters == len("Hm. Yes.f{}")


def test_only_the_first_reason_to_finish_counts() -> None:
    reading = Reading()
    reading.take("length")
    reading.take("stop")
    assert reading.reply.finish_reason == "length"


def test_a_refusal_is_all_only_without_content() -> None:
    reading = Reading()
    assert reading.take(refusal="No.") == [TextChunk(text="No.")]
    assert reading.reply.only_refused
    reading.take(content="Well.")
    assert not reading.reply.only_refused


def test_details_of_reasoning_count_where_they_are_all_there_is() -> None:
    details = [{"text": "detail"}]
    reading = Reading()
    assert reading.take(reasoning_details=details) == [ReasoningChunk(text="detail")]
    assert reading.take(reasoning="plain", reasoning_details=details) == [
        ReasoningChunk(text="plain")
    ]
    assert reading.take(reasoning_details=details) == []


@pytest.mark.parametrize(
    ("payload", "is_error", "error"),
    [
        ({"error": {"message": "down"}}, False, {"message": "down"}),
        ({"object": "error", "message": "x"}, False, {"object": "error", "message": "x"}),
        ({"message": "x"}, True, {"message": "x"}),
        ({"choices": [{"finish_reason": "error"}]}, False, ""),
    ],
)
def test_an_error_is_told(payload: dict[str, Any], is_error: bool, error: object) -> None:
    with pytest.raises(ServerSaid) as said:
        Reading().reply.take(payload, is_error=is_error)
    assert said.value.error == error


def test_the_last_words_beside_an_error_are_kept() -> None:
    """Breaks when: an error is told before the text of its own object is read."""
    reading = Reading()
    choice = {"delta": {"content": "almost"}, "finish_reason": "error"}
    with pytest.raises(ServerSaid):
        reading.reply.take({"error": "down", "choices": [choice]}, is_error=False)
    assert reading.chunks.drain() == [TextChunk(text="almost")]
    assert reading.reply.finish_reason == ""


@pytest.mark.parametrize("odd", [None, 1, "x", [], {}, [None], [1], [[]], {"index": 0}])
def test_what_is_odd_is_ignored(odd: object) -> None:
    """Breaks when: a field is taken to have the type that it should."""
    reading = Reading()
    for field in ("choices", "usage", "x_groq", "model"):
        reading.reply.take({field: odd}, is_error=False)
    for field in ("delta", "message", "finish_reason"):
        if (field, odd) != ("finish_reason", "x"):
            reading.reply.take({"choices": [{field: odd}]}, is_error=False)
    for field in ("tool_calls", "function_call", "reasoning_details"):
        assert reading.take(None, **{field: odd}) == []
    assert reading.reply.finish_reason == ""
