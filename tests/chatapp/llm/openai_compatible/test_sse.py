"""The decoder of streamed replies, on streams of the shapes that real servers send."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from chatapp.llm.client import Finished, ReasoningChunk, TextChunk, TokenUsage, ToolCall
from chatapp.llm.errors import (
    ContextOverflow,
    EmptyReply,
    LLMError,
    MalformedReply,
    RateLimitedByServer,
    ReplyCut,
    ReplyTooLong,
    RequestRefused,
    ServerFault,
)
from chatapp.llm.openai_compatible import bounds, sse
from chatapp.llm.openai_compatible.event_stream import parsed
from chatapp.llm.openai_compatible.sse import StreamDecoder

DONE = b"data: [DONE]\n\n"


def event(payload: Any) -> bytes:
    return b"data: " + json.dumps(payload).encode() + b"\n\n"


def delta(finish: str | None = None, **fields: Any) -> bytes:
    return event(
        {"model": "m", "choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}
    )


def usage(prompt: int, completion: int, **more: Any) -> bytes:
    counts = {"prompt_tokens": prompt, "completion_tokens": completion, **more}
    return event({"choices": [], "usage": counts})


class Decoded:
    """What came of a stream, fed in the given pieces."""

    def __init__(self, *pieces: bytes, **options: int) -> None:
        self.text = ""
        self.reasoning = ""
        self.finished: Finished | None = None
        self.error: LLMError | None = None
        decoder = StreamDecoder(**options)
        try:
            for piece in pieces:
                for chunk in decoder.feed(piece):
                    self._take(chunk)
            for chunk in decoder.end():
                self._take(chunk)
        except LLMError as error:
            self.error = error

    def _take(self, chunk: TextChunk | ReasoningChunk | Finished) -> None:
        assert self.finished is None, "Finished comes last"
        if isinstance(chunk, Finished):
            self.finished = chunk
        elif isinstance(chunk, TextChunk):
            assert chunk.text
            self.text += chunk.text
        else:
            assert chunk.text
            self.reasoning += chunk.text

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        assert self.finished is not None
        return self.finished.tool_calls

    @property
    def summary(self) -> tuple[object, ...]:
        said = (type(self.error), self.error.fields) if self.error else None
        return self.text, self.reasoning, self.finished, said


OPENAI = (
    delta(role="assistant", content="", refusal=None)
    + delta(content="Hel")
    + delta(content="lo 😀")
    + delta(finish="stop")
    + usage(9, 2, prompt_tokens_details={"cached_tokens": 4})
    + DONE
)


def test_it_works() -> None:
    decoded = Decoded(OPENAI)
    assert decoded.text == "Hello 😀"
    assert decoded.finished == Finished(
        finish_reason="stop",
        usage=TokenUsage(prompt_tokens=9, completion_tokens=2, cached_tokens=4),
        model="m",
    )


def test_neighbours_of_one_read_come_as_one_chunk_in_order() -> None:
    stream = delta(reasoning="a") + delta(reasoning="b") + delta(content="c") + delta(content="d")
    chunks = list(StreamDecoder().feed(stream + delta(reasoning="e")))
    assert chunks == [
        ReasoningChunk(text="ab"),
        TextChunk(text="cd"),
        ReasoningChunk(text="e"),
    ]


OPENROUTER = (
    b": OPENROUTER PROCESSING\n\n" * 30
    + delta(content="", reasoning=None, reasoning_details=[])
    + delta(content="", reasoning="Think")
    + delta(content="Hi")
    + delta(finish="stop", content="")
    + event(
        {
            "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 1, "cost": 0.1},
        }
    )
    + DONE
)
GROQ_ERROR = (
    delta(role="assistant", content="")
    + delta(reasoning="We", channel="analysis")
    + delta(content="maybe")
    + b"event: error\n"
    + event(
        {
            "error": {
                "message": "Tool choice is required",
                "type": "invalid_request_error",
                "code": "tool_use_failed",
                "status_code": 400,
            }
        }
    )
)
MISTRAL = (
    delta(content=[{"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]}])
    + delta(content=[{"type": "text", "text": "Yes"}, "!"])
    + delta(
        tool_calls=[
            {"id": "a1", "function": {"name": "look", "arguments": '{"x": 1}'}},
            {"id": "b2", "function": {"name": "look", "arguments": {"x": 2}}},
        ]
    )
    + delta(finish="tool_calls")
    + DONE
)
ALIBABA = (
    delta(tool_calls=[{"index": 0, "id": "c1", "function": {"name": "weather", "arguments": ""}}])
    + delta(content=None, tool_calls=[{"index": 0, "id": "", "function": {"arguments": '{"a'}}])
    + delta(content=None, tool_calls=[{"index": 0, "id": "", "function": {"arguments": '": 1}'}}])
    + delta(tool_calls=[{"function": {"arguments": None}, "index": 0, "id": ""}])
    + delta(finish="tool_calls")
)
SURROGATES = (
    b'data: {"choices":[{"delta":{"content":"a\\ud83d"}}]}\r\n\r\n'
    b'data: {"choices":[{"delta":{"content":"\\ude00\\u0000\\uffff\\udc00"}}]}\r\n\r\n'
    b'data: {"choices":[{"delta":{"content":"\\ud800"},"finish_reason":"stop"}]}\r\n\r\n'
)
STREAMS = {
    "openai": OPENAI,
    "openrouter": OPENROUTER,
    "groq": GROQ_ERROR,
    "mistral": MISTRAL,
    "alibaba": ALIBABA,
    "surrogates": SURROGATES,
    "cut": delta(content="ha") + b'data: {"choi',
    "carriage returns": OPENAI.replace(b"\n", b"\r"),
    "bad utf-8": delta(content="ok") + b'data: {"choices": "\xff"}\n\n' + delta(content="no"),
}


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(
    _JSON.map(lambda value: json.dumps(value).encode()) | st.binary() | st.text().map(str.encode)
)
@example(b'{"a": "\\ud83d"}')
@example(b'{"a": 1e400, "a": NaN, "b": -0}')
@example(b"[" * 100_000)
@example(b"1" * 5_000)
def test_a_piece_is_read_as_the_library_reads_it(raw: bytes) -> None:
    """Breaks when: a text that the faster parser refuses is not given to the other one."""

    def read(by: Callable[[bytes], object]) -> object:
        try:
            return repr(by(raw))
        except (ValueError, RecursionError) as error:
            return type(error)

    assert read(parsed) == read(lambda text: json.loads(text.decode("utf-8")))


@pytest.mark.parametrize("name", STREAMS)
def test_byte_by_byte_is_the_same_as_whole(name: str) -> None:
    stream = STREAMS[name]
    by_byte = [stream[i : i + 1] for i in range(len(stream))]
    assert Decoded(*by_byte).summary == Decoded(stream).summary


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from(sorted(STREAMS)), data=st.data())
def test_any_split_is_the_same_as_whole(name: str, data: st.DataObject) -> None:
    stream = STREAMS[name]
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=20)))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert Decoded(*pieces).summary == Decoded(stream).summary


@settings(max_examples=150, deadline=None)
@given(st.lists(st.binary(max_size=60) | st.sampled_from([b"data: ", b"\n\n", b"{", b"}", DONE])))
def test_i24_any_bytes_are_a_reply_or_a_typed_error(pieces: list[bytes]) -> None:
    """I24 for the other side: whatever a server sends.

    Breaks when: ``_dispatch`` lets ValueError or RecursionError of the JSON parser through.
    """
    decoded = Decoded(*pieces)
    assert (decoded.finished is None) == (decoded.error is not None)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)
KEYS = (
    "choices",
    "delta",
    "content",
    "tool_calls",
    "function",
    "name",
    "arguments",
    "id",
    "index",
    "finish_reason",
    "usage",
    "model",
    "error",
    "message",
    "reasoning",
    "refusal",
    "thinking",
    "type",
    "text",
    "prompt_tokens",
)
CHUNK_LIKE = st.recursive(
    JSON,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(KEYS), inner),
    max_leaves=20,
)


@settings(max_examples=200, deadline=None)
@given(choice=CHUNK_LIKE, payload=CHUNK_LIKE)
def test_i24_any_shape_is_a_reply_or_a_typed_error(choice: Any, payload: Any) -> None:
    """I24 for the other side: valid JSON of any shape.

    Breaks when: a field is used without looking at its type, e.g. ``choice["delta"].get``.
    """
    stream = event({"choices": [choice, {"delta": choice}]}) + event(payload) + delta("stop")
    decoded = Decoded(stream)
    assert (decoded.finished is None) == (decoded.error is not None)


def test_openrouter_says_the_finish_reason_twice_and_usage_with_it() -> None:
    decoded = Decoded(OPENROUTER)
    assert (decoded.text, decoded.reasoning) == ("Hi", "Think")
    assert decoded.finished is not None
    assert decoded.finished.usage == TokenUsage(prompt_tokens=3, completion_tokens=1)


def test_l15_an_error_in_mid_stream_comes_after_the_text_before_it() -> None:
    decoded = Decoded(GROQ_ERROR)
    assert (decoded.text, decoded.reasoning) == ("maybe", "We")
    assert isinstance(decoded.error, RequestRefused)
    assert decoded.error.provider_message == "Tool choice is required"


@pytest.mark.parametrize(
    ("payload", "kind"),
    [
        ({"error": "upstream broke"}, ServerFault),
        ({"error": {"code": 429, "message": "slow down"}}, RateLimitedByServer),
        ({"error": {"message": "maximum context length is 4096 tokens"}}, ContextOverflow),
        ({"object": "error", "message": "no", "code": 400}, RequestRefused),
        ({"choices": [{"delta": {}, "finish_reason": "error"}]}, ServerFault),
    ],
)
def test_l15_errors_of_every_shape(payload: Any, kind: type[LLMError]) -> None:
    decoded = Decoded(delta(content="a") + event(payload) + DONE)
    assert decoded.text == "a"
    assert type(decoded.error) is kind


def test_an_error_that_is_null_is_none() -> None:
    whole = {"error": None, "choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}]}
    assert Decoded(event(whole)).text == "a"


def test_thinking_parts_and_whole_tool_calls_without_index() -> None:
    decoded = Decoded(MISTRAL)
    assert (decoded.text, decoded.reasoning) == ("Yes!", "Hm")
    assert decoded.calls == (
        ToolCall(id="a1", name="look", arguments='{"x": 1}'),
        ToolCall(id="b2", name="look", arguments='{"x": 2}'),
    )


def test_tool_calls_in_pieces_with_empty_ids_and_null_content() -> None:
    assert Decoded(ALIBABA).calls == (ToolCall(id="c1", name="weather", arguments='{"a": 1}'),)


def test_tool_calls_whose_id_and_name_are_repeated() -> None:
    stream = b"".join(
        delta(tool_calls=[{"index": 0, "id": "c", "function": {"name": "f", "arguments": part}}])
        for part in ('{"', 'a": ', "1}")
    )
    calls = Decoded(stream + delta("tool_calls")).calls
    assert calls == (ToolCall(id="c", name="f", arguments='{"a": 1}'),)


def test_whole_tool_calls_that_share_an_index() -> None:
    both = [
        {"index": 0, "id": "c1", "function": {"name": "f", "arguments": "{}"}},
        {"index": 0, "id": "c2", "function": {"name": "g", "arguments": "{}"}},
    ]
    calls = Decoded(delta("tool_calls", tool_calls=both)).calls
    assert [(call.id, call.name) for call in calls] == [("c1", "f"), ("c2", "g")]


def test_l17_broken_tool_calls_come_as_they_are() -> None:
    broken = [
        {"index": 0, "id": "same", "function": {"name": "f", "arguments": '{"cut'}},
        {"index": 1, "id": "same", "function": {"name": "f", "arguments": None}},
        {"index": 2, "function": {}},
        {"index": 3, "function": None},
        None,
        "x",
    ]
    calls = Decoded(delta("tool_calls", tool_calls=broken)).calls
    assert calls[0] == ToolCall(id="same", name="f", arguments='{"cut')
    assert calls[1] == ToolCall(id="same", name="f", arguments="")
    assert len(calls) == 2, "a piece that says nothing is no call"


def test_the_old_function_call() -> None:
    stream = delta(function_call={"name": "f", "arguments": "{}"}) + delta("function_call")
    decoded = Decoded(stream)
    assert decoded.calls[0].name == "f"
    assert decoded.finished is not None
    assert decoded.finished.finish_reason == "tool_calls"


def test_usage_wherever_it_comes() -> None:
    in_finish_chunk = event(
        {
            "choices": [{"delta": {}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 5, "completion_tokens": 6, "prompt_cache_hit_tokens": 4},
        }
    )
    decoded = Decoded(delta(content="a") + in_finish_chunk)
    assert decoded.finished is not None
    assert decoded.finished.usage == TokenUsage(
        prompt_tokens=5, completion_tokens=6, cached_tokens=4
    )
    groq = event({"choices": [], "x_groq": {"usage": {"prompt_tokens": 1}}})
    decoded = Decoded(delta("stop", content="a") + groq)
    assert decoded.finished is not None
    assert decoded.finished.usage == TokenUsage(prompt_tokens=1, completion_tokens=0)
    decoded = Decoded(delta("stop", content="a") + usage(-1, True))
    assert decoded.finished is not None
    assert decoded.finished.usage is None


@pytest.mark.parametrize(
    "stream",
    [
        delta(content="ha"),
        delta(content="ha") + DONE,
        delta(content="ha") + b'data: {"choices": [{"del',
        delta(content="ha")
        + event({"choices": [{"index": 1, "delta": {}, "finish_reason": "stop"}]}),
        delta(content="ha") + event({"choices": None}) + event({}) + usage(1, 1),
    ],
)
def test_i6_l02_no_end_without_a_terminal_finish_reason(stream: bytes) -> None:
    """I6: a reply is complete only when a terminal finish reason came.

    Breaks when: ``end`` takes ``[DONE]`` alone or the end of the stream for a finish reason.
    """
    decoded = Decoded(stream)
    assert decoded.text == "ha"
    assert isinstance(decoded.error, ReplyCut)


def test_i6_usage_and_done_are_an_end_of_the_servers_own() -> None:
    """I6: Snowflake never gives a finish reason; its replies are whole all the same.

    Breaks when: ``end`` asks for a finish reason after usage and ``[DONE]``, or for only one of
    these.
    """
    decoded = Decoded(delta(content="four") + usage(22, 5) + DONE)
    assert (decoded.text, decoded.error) == ("four", None)
    assert decoded.finished == Finished(
        finish_reason="stop", usage=TokenUsage(prompt_tokens=22, completion_tokens=5), model="m"
    )
    assert isinstance(Decoded(delta(content="four") + usage(22, 5)).error, ReplyCut)


LENGTH_AND_ERROR = (
    delta("length", content="b") + event({"error": {"message": "too long"}}),
    event(
        {
            "choices": [{"index": 0, "delta": {"content": "b"}, "finish_reason": "length"}],
            "error": {"message": "too long"},
        }
    ),
)


@pytest.mark.parametrize("stream", LENGTH_AND_ERROR)
def test_an_error_beside_the_length_is_kept_beside_it(stream: bytes) -> None:
    """The model's reply ended by its length, and the server complained: both are told.

    Breaks when: an error after or with the finish reason takes its place, or its text is lost.
    """
    decoded = Decoded(delta(content="a") + stream + DONE)
    assert (decoded.text, decoded.error) == ("ab", None)
    assert decoded.finished is not None
    assert decoded.finished.finish_reason == "length"
    assert decoded.finished.error is not None
    assert decoded.finished.error.provider_message == "too long"


def test_reasoning_that_comes_in_details_only() -> None:
    """OpenRouter's ``reasoning_details`` count where nothing else says the same.

    Breaks when: they are not read, or read beside ``reasoning``, which says it all once more.
    """
    details = [
        {"type": "reasoning.text", "text": "Think"},
        {"type": "reasoning.encrypted", "data": "AAAA"},
        {"type": "reasoning.summary", "summary": "ing"},
        "odd",
    ]
    end = delta("stop", content="a") + DONE
    assert Decoded(delta(reasoning_details=details) + end).reasoning == "Thinking"
    both = delta(reasoning="Thinking", reasoning_details=details)
    again = delta(reasoning=None, reasoning_details=[{"type": "reasoning.text", "text": "Think"}])
    assert Decoded(both + again + end).reasoning == "Thinking"


@pytest.mark.parametrize("stream", [b"", b"\n\n\n", b": nothing\n\n", b"data:\n\n"])
def test_l03_nothing_at_all_is_an_empty_reply(stream: bytes) -> None:
    assert isinstance(Decoded(stream).error, EmptyReply)


@pytest.mark.parametrize(
    "stream",
    [
        b"data: {not json}\n\n",
        b'data: {"choices": "\xff"}\n\n',
        b"data: 5\n\n",
        b"data: [[[[]]]]\n\n",
        b"data: " + b"[" * 200_000 + b"\n\n",
        b"data: " + b"9" * 5000 + b"\n\n",
        b"<!doctype html>\n<html></html>\n",
        b'{"choices": []}\n',
    ],
)
def test_l06_what_is_no_chunk_is_malformed(stream: bytes) -> None:
    decoded = Decoded(delta(content="kept") + stream if stream[:1] == b"d" else stream)
    assert isinstance(decoded.error, MalformedReply)
    assert decoded.text == ("kept" if stream[:1] == b"d" else "")


def test_l06_a_huge_event_is_refused_before_it_is_whole() -> None:
    """I26: the buffer is bounded.

    Breaks when: ``_bound`` is not asked for the unfinished line.
    """
    decoder = StreamDecoder(max_event_bytes=1000)
    list(decoder.feed(b"data: " + b"x" * 900))
    with pytest.raises(MalformedReply, match="single piece"):
        list(decoder.feed(b"x" * 200))


def test_l06_a_huge_event_of_many_lines_is_refused() -> None:
    decoder = StreamDecoder(max_event_bytes=1000)
    with pytest.raises(MalformedReply):
        list(decoder.feed(b"data: xxxxxxxxxx\n" * 200))


EMPTY = {
    "comments": b": still here\n",
    "blank lines": b"\n",
    "empty pieces": delta(content=""),
    "no choices": event({"choices": []}),
    "unknown events": b"event: ping\ndata: {}\n\n",
    "tool calls' names": delta(tool_calls=[{"index": 0, "function": {"name": "look"}}]),
    "more tool calls than are taken": delta(
        tool_calls=[{"id": f"c{number}", "function": {}} for number in range(500)]
    ),
    "empty parts": delta(content=[""] * 500),
    "lines of one event": b"data:\n",
    "a megabyte of something else": event({"choices": [], "padding": "x" * 1024**2}),
}


@pytest.mark.parametrize("name", EMPTY)
def test_n06_what_says_nothing_is_ended(name: str) -> None:
    """N06, I26. By what came, not only by the time it took; what was said before is kept.

    Breaks when: lines, parts of lists or bytes are not counted, or the name of a tool that is said
    again counts as something said.
    """
    decoder = StreamDecoder()
    said = list(decoder.feed(delta(content="Said. ")))
    piece = EMPTY[name] * max(1, 65536 // len(EMPTY[name]))
    sent, ended = 0, None
    while ended is None and sent <= 2 * bounds.EMPTY_BYTES:
        sent += len(piece)
        try:
            said += decoder.feed(piece)
        except MalformedReply as error:
            ended = error
    assert ended is not None
    assert ended.retryable
    assert said == [TextChunk(text="Said. ")]
    # Of small ones the pieces are too many, long before the bytes are.
    assert sent <= bounds.EMPTY_BYTES + sse.MAX_EVENT_BYTES
    if len(EMPTY[name]) < 100_000:
        assert sent < bounds.EMPTY_BYTES / 2


def test_n06_a_long_reply_may_come_letter_by_letter() -> None:
    """Breaks when: what says something counts as if it said nothing."""
    whole = b"event: message\n" + delta(content="x", role="assistant")
    decoder = StreamDecoder()
    letters = bounds.EMPTY_PIECES // 2
    for _ in range(letters // 100):
        assert list(decoder.feed(whole * 100)) == [TextChunk(text="x" * 100)]
    assert decoder.characters == letters


def test_n06_a_model_may_think_unheard() -> None:
    """An empty piece for each of 128,000 hidden tokens, and comments between them.

    Breaks when: EMPTY_PIECES is less than the longest reasoning takes.
    """
    hidden = (delta(content="") * 100 + b": still here\n\n") * 1280
    decoded = Decoded(hidden, delta(content="42", finish="stop"), DONE)
    assert (decoded.text, decoded.error) == ("42", None)


def test_l06_other_choices_are_ignored() -> None:
    two = {
        "choices": [
            {"index": 1, "delta": {"content": "other"}, "finish_reason": "length"},
            {"index": 0, "delta": {"content": "mine"}},
        ]
    }
    decoded = Decoded(event(two) + delta("stop"))
    assert decoded.text == "mine"
    assert decoded.finished is not None
    assert decoded.finished.finish_reason == "stop"


def test_l07_nul_and_halves_of_pairs_are_replaced_and_split_pairs_joined() -> None:
    decoded = Decoded(SURROGATES)
    assert decoded.text == "a😀\ufffd\uffff\ufffd\ufffd"
    decoded.text.encode("utf-8")


def test_l12_the_reply_is_capped() -> None:
    decoded = Decoded(delta(content="abc") + delta(content="defgh"), max_reply_characters=5)
    assert decoded.text == "abcde"
    assert isinstance(decoded.error, ReplyTooLong)


def test_l12_tool_arguments_count_too() -> None:
    call = {"index": 0, "id": "c", "function": {"name": "f", "arguments": "x" * 100}}
    decoded = Decoded(delta(tool_calls=[call]), max_reply_characters=50)
    assert isinstance(decoded.error, ReplyTooLong)


def test_l13_what_follows_done_is_ignored() -> None:
    decoded = Decoded(
        delta("stop", content="a", role="assistant"), DONE, delta(content="b", role="user"), b"\xff"
    )
    assert decoded.text == "a"
    assert decoded.error is None


def test_x11_foreign_events_and_fields_are_ignored() -> None:
    stream = (
        b"event: execute\ndata: alert(1)\n\n"
        b"event: html\ndata: <script>alert(1)</script>\n\n"
        b"id: 7\nretry: 10\n"
        + delta(content="safe", html="<b>", execute="x")
        + event({"type": "ping"})
        + event({"event": {"type": "execute"}})
        + delta("stop")
    )
    decoded = Decoded(stream)
    assert (decoded.text, decoded.error) == ("safe", None)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("max_tokens", "length"),
        ("end_turn", "stop"),
        ("content_filter", "content_filter"),
        ("SAFETY", "content_filter"),
        ("something new", "something new"),
    ],
)
def test_l04_finish_reasons(said: str, meant: str) -> None:
    decoded = Decoded(delta(said, content="a"))
    assert decoded.finished is not None
    assert decoded.finished.finish_reason == meant


def test_l04_a_reply_that_is_only_a_refusal_is_shown_and_named() -> None:
    """The model's own, and no provider's filter."""
    decoded = Decoded(delta(refusal="I cannot") + delta(refusal=" do that.") + delta("stop"))
    assert decoded.text == "I cannot do that."
    assert decoded.finished is not None
    assert decoded.finished.finish_reason == "refusal"


def test_a_whole_completion_instead_of_a_stream() -> None:
    decoder = StreamDecoder()
    body = json.dumps(
        {
            "object": "chat.completion",
            "choices": [{"message": {"content": "Whole"}, "finish_reason": "stop"}],
        },
        indent=1,
    )
    chunks = [*decoder.feed_whole(body.encode()), *decoder.end()]
    assert chunks[0] == TextChunk(text="Whole")
    assert isinstance(chunks[1], Finished)


def test_perplexity_repeats_the_whole_message_beside_each_delta() -> None:
    pieces = [
        event({"choices": [{"delta": {"content": "a"}, "message": {"content": "a"}}]}),
        event({"choices": [{"delta": {"content": "b"}, "message": {"content": "ab"}}]}),
        delta("stop"),
    ]
    assert Decoded(*pieces).text == "ab"


def test_the_last_event_may_lack_its_blank_line() -> None:
    decoded = Decoded(delta(content="a") + delta("stop").rstrip())
    assert decoded.finished is not None


def test_a_byte_order_mark_is_skipped() -> None:
    assert Decoded(b"\xef\xbb\xbf" + OPENAI).text == "Hello 😀"
