"""The client against a real HTTP server that does everything wrong that servers do."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import pytest

from chatapp.llm.client import ChatRequest, Finished, LLMClient, TextChunk, TokenUsage, ToolCall
from chatapp.llm.errors import (
    ContextOverflow,
    EmptyReply,
    LLMError,
    MalformedReply,
    ModelUnknown,
    QuotaExhausted,
    RateLimitedByServer,
    ReplyCut,
    ReplyTooLong,
    RequestRefused,
    ServerFault,
    ServerTimeout,
    ServerUnreachable,
    WrongKey,
)
from chatapp.llm.openai_compatible.adaptation import Learned
from chatapp.llm.openai_compatible.client import OpenAIClient, split_credentials
from chatapp.llm.openai_compatible.limits import Limits
from tests.fake_scripts import (
    Chunk,
    Cut,
    Delay,
    Done,
    Finish,
    KeepAlive,
    Raw,
    Script,
    Text,
    Tool,
    Usage,
    Wait,
    calling,
    failing,
    redirecting,
    saying,
)
from tests.fake_upstream import FakeUpstream

KEY = "sk-test-0123456789abcdef"
QUICK = Limits(retry_wait=0.01, retry_budget=2.0)
REQUEST = ChatRequest(
    model="fake-model",
    messages=({"role": "system", "content": "Rules."}, {"role": "user", "content": "Hello"}),
)
MakeClient = Callable[..., OpenAIClient]


@pytest.fixture
async def upstream() -> AsyncIterator[FakeUpstream]:
    async with FakeUpstream() as server:
        yield server


@pytest.fixture
async def make(upstream: FakeUpstream) -> AsyncIterator[MakeClient]:
    async with AsyncExitStack() as stack:

        def make_client(**options: Any) -> OpenAIClient:
            given = {"base_url": upstream.base_url, "api_key": KEY, "limits": QUICK, **options}
            client = OpenAIClient(**given)
            stack.push_async_callback(client.aclose)
            return client

        yield make_client


async def text_until_error(
    client: LLMClient, request: ChatRequest = REQUEST
) -> tuple[str, LLMError]:
    """The text that came, and the error that ended it."""
    texts: list[str] = []
    with pytest.raises(LLMError) as caught:
        await read_into(texts, client, request)
    return "".join(texts), caught.value


async def read_into(texts: list[str], client: LLMClient, request: ChatRequest) -> None:
    async with client.stream(request) as chunks:
        async for chunk in chunks:
            if isinstance(chunk, TextChunk):
                texts.append(chunk.text)


async def test_it_works(upstream: FakeUpstream, make: MakeClient) -> None:
    upstream.enqueue(saying("Hello to you", usage=Usage(7, 3, 2), reasoning="Be kind"))
    reply = await make().complete(REQUEST)
    assert (reply.text, reply.reasoning, reply.finish_reason) == ("Hello to you", "Be kind", "stop")
    assert reply.usage == TokenUsage(prompt_tokens=7, completion_tokens=3, cached_tokens=2)
    (asked,) = upstream.chats
    assert asked.json == {
        "model": "fake-model",
        "messages": list(REQUEST.messages),
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    assert asked.headers["authorization"] == f"Bearer {KEY}"


async def test_pieces_come_as_they_are_written(upstream: FakeUpstream, make: MakeClient) -> None:
    go_on = asyncio.Event()
    upstream.enqueue(Script(steps=(Text("a"), Wait(go_on), Text("b"), Finish(), Done())))
    async with make().stream(REQUEST) as chunks:
        assert await anext(chunks) == TextChunk(text="a")
        go_on.set()
        assert await anext(chunks) == TextChunk(text="b")
        assert isinstance(await anext(chunks), Finished)


async def test_the_whole_reply_tells_how_far_it_is(
    make: MakeClient, upstream: FakeUpstream
) -> None:
    told: list[int] = []

    async def on_tokens(pieces: int) -> None:
        told.append(pieces)

    upstream.enqueue(saying("one two three", seconds_a_word=0.01))
    await make().complete(REQUEST, on_tokens)
    assert told == [1, 2, 3]


async def test_a_connection_is_used_again(upstream: FakeUpstream, make: MakeClient) -> None:
    client = make()
    for _ in range(3):
        await client.complete(REQUEST)
    assert len({one.peer for one in upstream.chats}) == 1


async def test_tool_calls(upstream: FakeUpstream, make: MakeClient) -> None:
    upstream.enqueue(calling(Tool("look", '{"x": 1}', "c1"), Tool("find", "{}", "c2")))
    reply = await make().complete(REQUEST)
    assert reply.finish_reason == "tool_calls"
    assert reply.tool_calls == (
        ToolCall(id="c1", name="look", arguments='{"x": 1}'),
        ToolCall(id="c2", name="find", arguments="{}"),
    )


async def test_a_server_that_does_not_stream(upstream: FakeUpstream, make: MakeClient) -> None:
    body = b'{"choices": [{"message": {"content": "Whole"}, "finish_reason": "stop"}]}'
    upstream.enqueue(Script(body=body, content_type="application/json; charset=utf-8"))
    assert (await make().complete(REQUEST)).text == "Whole"


async def test_l14_leaving_closes_the_connection_at_once(
    upstream: FakeUpstream, make: MakeClient
) -> None:
    """L14, and I27: no upstream call outlives what it was for.

    Breaks when: ``stream`` reads to the end of the reply before it closes, as a client does that
    wants to keep its connection.
    """
    never = asyncio.Event()
    upstream.enqueue(Script(steps=(Text("a"), Wait(never))))
    async with make().stream(REQUEST) as chunks:
        await anext(chunks)
    await asyncio.wait_for(upstream.chats[0].disconnected.wait(), 2)


async def test_l14_cancelling_closes_the_connection_at_once(
    upstream: FakeUpstream, make: MakeClient
) -> None:
    upstream.enqueue(Script(steps=(Wait(asyncio.Event()),)))
    task = asyncio.create_task(make().complete(REQUEST))
    asked = await upstream.came(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(asked.disconnected.wait(), 2)


@pytest.mark.parametrize(
    ("steps", "text", "kind"),
    [
        ((Text("a"), Text("b"), Delay(0.05), Cut()), "ab", ReplyCut),
        ((Text("a"), Text("b")), "ab", ReplyCut),
        ((Text("a"), Done()), "a", ReplyCut),
        ((), "", EmptyReply),
        ((Done(),), "", ReplyCut),
        ((Text("a"), Raw(b"data: {oops\n\n"), Text("b")), "a", MalformedReply),
        ((Text("a"), Raw(b'data: {"x": "\xff\xfe"}\n\n')), "a", MalformedReply),
        ((Raw(b"data: " + b"x" * 5_000_000 + b"\n\n"),), "", MalformedReply),
        ((Text("a"), Chunk({"error": {"message": "boom", "code": 500}})), "a", ServerFault),
        ((Text("a"), Chunk({"error": "no"}), Text("b"), Done()), "a", ServerFault),
    ],
)
async def test_l01_l02_l03_l06_l15_faults_in_the_stream_keep_what_came(
    upstream: FakeUpstream,
    make: MakeClient,
    steps: tuple[Any, ...],
    text: str,
    kind: type[LLMError],
) -> None:
    upstream.enqueue(Script(steps=steps))
    kept, error = await text_until_error(make())
    assert (kept, type(error)) == (text, kind)
    assert len(upstream.chats) == 1, "no retry once the reply has begun"


async def test_a_cut_after_the_finish_reason_is_an_end(
    upstream: FakeUpstream, make: MakeClient
) -> None:
    upstream.enqueue(Script(steps=(Text("a"), Finish(), Delay(0.05), Cut())))
    assert (await make().complete(REQUEST)).text == "a"


async def test_silence_after_the_finish_reason_is_an_end(
    upstream: FakeUpstream, make: MakeClient
) -> None:
    upstream.enqueue(Script(steps=(Text("a"), Finish(), Wait(asyncio.Event()))))
    assert (await make(limits=Limits(closing=0.05)).complete(REQUEST)).text == "a"


async def test_silence_after_done_is_an_end(upstream: FakeUpstream, make: MakeClient) -> None:
    upstream.enqueue(Script(steps=(Text("a"), Finish(), Done(), Wait(asyncio.Event()))))
    assert (await make().complete(REQUEST)).text == "a"


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        (Script(body=b"<html>Sign in</html>", content_type="text/html"), MalformedReply),
        (Script(body=b"<html>Sign in</html>"), MalformedReply),
        (Script(body=b"", content_type="text/event-stream"), EmptyReply),
        (Script(body=b"", content_type="application/json"), EmptyReply),
        (Script(body=b"not json", content_type="application/json"), MalformedReply),
        (Script(status=204, body=b""), EmptyReply),
        (
            Script(body=b'{"error": {"message": "no"}}', content_type="application/json"),
            ServerFault,
        ),
    ],
)
async def test_l03_a_200_that_is_no_reply(
    upstream: FakeUpstream, make: MakeClient, script: Script, kind: type[LLMError]
) -> None:
    upstream.enqueue(script)
    _, error = await text_until_error(make())
    assert type(error) is kind


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        (failing(401, f"Incorrect API key provided: {KEY}"), WrongKey),
        (failing(403, "Not allowed"), WrongKey),
        (failing(404, "The model `x` does not exist"), ModelUnknown),
        (failing(402, "Payment required"), QuotaExhausted),
        (failing(429, "No money", code="insufficient_quota"), QuotaExhausted),
        (failing(500, "Oops"), ServerFault),
        (failing(400, "Bad temperature"), RequestRefused),
        (failing(418, body=b"\xff\xfe\x00"), RequestRefused),
        (failing(500, body=b"x" * 3_000_000), ServerFault),
        (failing(400, "maximum context length is 4096 tokens"), ContextOverflow),
    ],
)
async def test_l10_refusals_are_named_once_and_without_secrets(
    upstream: FakeUpstream, make: MakeClient, script: Script, kind: type[LLMError]
) -> None:
    upstream.enqueue(script)
    _, error = await text_until_error(make())
    assert type(error) is kind
    assert len(upstream.chats) == 1
    assert KEY not in str(error.as_dict())
    assert "127.0.0.1" not in str(error.as_dict())
    assert error.__cause__ is None


async def test_l10_no_key_at_all(upstream: FakeUpstream, make: MakeClient) -> None:
    upstream.enqueue(failing(401, "Missing"))
    _, error = await text_until_error(make(api_key=""))
    assert error.message == WrongKey.no_key_message
    assert "authorization" not in upstream.chats[0].headers


async def test_l10_connection_refused(make: MakeClient) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        _, error = await text_until_error(make(base_url=f"http://127.0.0.1:{port}/v1"))
    assert type(error) is ServerUnreachable
    assert str(port) not in error.message


async def test_l10_unknown_host(make: MakeClient) -> None:
    _, error = await text_until_error(make(base_url="http://no-such-host.invalid/v1"))
    assert type(error) is ServerUnreachable


async def test_l10_tls_to_a_server_without_it(upstream: FakeUpstream, make: MakeClient) -> None:
    address = upstream.base_url.replace("http:", "https:")
    _, error = await text_until_error(make(base_url=address))
    assert type(error) is ServerUnreachable
    assert "secure connection" in error.message


@pytest.mark.parametrize("address", ["ftp://host/v1", "/v1", "localhost:1/v1"])
async def test_an_address_that_is_none(make: MakeClient, address: str) -> None:
    _, error = await text_until_error(make(base_url=address))
    assert type(error) is ServerUnreachable


@pytest.mark.parametrize("key", ["ключ-ключ", "sk-line\nend", "sk-\x00"])
async def test_a_key_that_no_header_can_carry(make: MakeClient, key: str) -> None:
    _, error = await text_until_error(make(api_key=key))
    assert type(error) is WrongKey
    assert key not in str(error.as_dict())


async def test_text_that_cannot_be_sent(make: MakeClient) -> None:
    request = ChatRequest(model="m", messages=({"role": "user", "content": "a\ud800"},))
    _, error = await text_until_error(make(), request)
    assert type(error) is RequestRefused


async def test_credentials_in_the_address_are_basic_authentication(
    upstream: FakeUpstream, make: MakeClient
) -> None:
    address = upstream.base_url.replace("http://", "http://ann:pass%20word@")
    client = make(base_url=address, api_key="")
    await client.complete(REQUEST)
    assert upstream.chats[0].headers["authorization"] == "Basic YW5uOnBhc3Mgd29yZA=="
    assert split_credentials(address)[0] == upstream.base_url


async def test_l16_a_redirect_is_not_followed(upstream: FakeUpstream, make: MakeClient) -> None:
    """L16: the prompt does not go to another host.

    Breaks when: ``_refuse_errors`` lets 307 pass and ``follow_redirects`` is true; either wall
    holds alone.
    """
    async with FakeUpstream() as elsewhere:
        upstream.enqueue(redirecting(f"{elsewhere.base_url}/chat/completions"))
        _, error = await text_until_error(make())
        assert type(error) is MalformedReply
        assert elsewhere.requests == []


async def test_l08_a_busy_server_is_asked_again(upstream: FakeUpstream, make: MakeClient) -> None:
    upstream.enqueue(failing(429, headers={"Retry-After": "0"}), failing(503))
    assert (await make().complete(REQUEST)).text == "You said: Hello"
    assert len(upstream.chats) == 3


@pytest.mark.parametrize("retry_after", ["119", "121", "3600", "Wed, 21 Oct 2099 07:28:00 GMT"])
async def test_l08_a_wait_beyond_the_budget_is_told_at_once(
    upstream: FakeUpstream, make: MakeClient, retry_after: str
) -> None:
    upstream.enqueue(failing(429, "slow", headers={"Retry-After": retry_after}))
    began = time.monotonic()
    _, error = await text_until_error(make())
    assert type(error) is RateLimitedByServer
    assert time.monotonic() - began < 1
    assert len(upstream.chats) == 1


@pytest.mark.parametrize("retry_after", ["soon", "-5", "", "0"])
async def test_l08_attempts_are_counted(
    upstream: FakeUpstream, make: MakeClient, retry_after: str
) -> None:
    upstream.enqueue(*[failing(429, headers={"Retry-After": retry_after})] * 10)
    _, error = await text_until_error(make())
    assert type(error) is RateLimitedByServer
    assert len(upstream.chats) == QUICK.attempts


async def test_a_connection_closed_without_an_answer_is_tried_again(
    upstream: FakeUpstream, make: MakeClient
) -> None:
    async def close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        asked.append(1)
        writer.close()

    asked: list[int] = []
    server = await asyncio.start_server(close, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        _, error = await text_until_error(make(base_url=f"http://127.0.0.1:{port}/v1"))
    assert type(error) is ServerUnreachable
    assert len(asked) == QUICK.attempts


async def test_a_kept_connection_that_the_server_has_closed_is_no_error(make: MakeClient) -> None:
    """Servers close idle connections, and may do so while the next request is on its way.

    Breaks when: ``opening_error`` takes a connection that broke for one not worth another try.
    """
    body = b'{"choices": [{"message": {"content": "Whole"}, "finish_reason": "stop"}]}'
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"

    async def answer_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for kept in (False, True):
            asked.append(kept)
            await reader.readuntil(b"\r\n\r\n")
            if not kept:
                writer.write(head % len(body) + body)
        writer.close()

    asked: list[bool] = []
    server = await asyncio.start_server(answer_once, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        client = make(base_url=f"http://127.0.0.1:{port}/v1")
        assert [(await client.complete(REQUEST)).text for _ in range(2)] == ["Whole", "Whole"]
    assert asked == [False, True, False, True]


@pytest.mark.parametrize(
    ("limits", "steps", "limit"),
    [
        (Limits(first_token=0.2), (Delay(30),), "first_token"),
        (Limits(first_token=0.2), (KeepAlive(),), "first_token"),
        (Limits(total=0.2), (KeepAlive(),), "total"),
        (Limits(between_tokens=0.2), (Text("a"), Delay(30)), "between_tokens"),
        (Limits(between_tokens=0.2), (Text("a"), KeepAlive()), "between_tokens"),
        (Limits(total=0.4), tuple([Text("a"), Delay(0.05)] * 100), "total"),
    ],
)
async def test_i27_l11_every_wait_ends(
    upstream: FakeUpstream,
    make: MakeClient,
    limits: Limits,
    steps: tuple[Any, ...],
    limit: str,
) -> None:
    """I27: an upstream call has a total deadline, and its connection ends with it.

    Breaks when: ``Clock.within`` takes the end of the phase alone, or comments count as content.
    """
    upstream.enqueue(Script(steps=steps))
    _, error = await text_until_error(make(limits=limits))
    assert type(error) is ServerTimeout
    assert error.fields["limit"] == limit
    await asyncio.wait_for(upstream.chats[0].disconnected.wait(), 2)


async def test_i27_headers_that_never_come(make: MakeClient) -> None:
    async def be_silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(be_silent, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        address = f"http://127.0.0.1:{port}/v1"
        _, error = await text_until_error(make(base_url=address, limits=Limits(first_token=0.2)))
    assert type(error) is ServerTimeout
    assert error.fields["limit"] == "first_token"


async def test_tool_arguments_count_as_content(upstream: FakeUpstream, make: MakeClient) -> None:
    pieces: list[Any] = [Tool("look", '{"x": "')]
    for _ in range(6):
        pieces += [Delay(0.1), Tool("", "y", id="")]
    pieces += [Tool("", '"}', id=""), Finish("tool_calls"), Done()]
    upstream.enqueue(Script(steps=tuple(pieces)))
    reply = await make(limits=Limits(between_tokens=0.4, first_token=5)).complete(REQUEST)
    assert reply.tool_calls[0].arguments == '{"x": "yyyyyy"}'


async def test_l12_the_reply_is_capped_and_the_connection_closed(
    upstream: FakeUpstream, make: MakeClient
) -> None:
    upstream.enqueue(Script(steps=(*[Text("0123456789")] * 1000, Wait(asyncio.Event()))))
    text, error = await text_until_error(make(limits=Limits(max_reply_characters=1005)))
    assert type(error) is ReplyTooLong
    assert len(text) == 1005
    await asyncio.wait_for(upstream.chats[0].disconnected.wait(), 2)


class Lessons:
    """Remembers what a client has learned."""

    def __init__(self) -> None:
        self.learned: list[tuple[str, str, Learned]] = []

    async def __call__(self, model: str, field: str, value: Learned) -> None:
        self.learned.append((model, field, value))


def picky(request: dict[str, Any]) -> Script:
    """A server that knows little, and complains of one thing at a time."""
    if "stream_options" in request:
        return failing(400, "Unrecognized request argument supplied: stream_options")
    if "response_format" in request:
        return failing(422, body=b'{"detail": [{"loc": ["body", "response_format"], "msg": "?"}]}')
    if "max_tokens" in request:
        return failing(400, "Use 'max_completion_tokens' instead.", parameter="max_tokens")
    if request["messages"][0]["role"] == "system":
        return failing(500, "Jinja Exception: System role not supported")
    return saying("Fine")


async def test_what_a_server_does_not_know_is_left_out_and_remembered(
    upstream: FakeUpstream, make: MakeClient
) -> None:
    upstream.handler = picky
    lessons = Lessons()
    client = make(on_learned=lessons)
    request = ChatRequest(
        model="old",
        messages=REQUEST.messages,
        max_tokens=50,
        response_format={"type": "json_object"},
    )
    assert (await client.complete(request)).text == "Fine"
    assert len(upstream.chats) == 5
    assert upstream.chats[-1].json == {
        "model": "old",
        "messages": [{"role": "user", "content": "Rules.\n\nHello"}],
        "stream": True,
        "max_completion_tokens": 50,
    }
    assert sorted(lessons.learned) == [
        ("old", "supports_json_schema", False),
        ("old", "supports_system_role", False),
        ("old", "supports_usage", False),
    ]
    await client.complete(request)
    assert len(upstream.chats) == 6, "the second request is right at once"


async def test_what_was_refused_in_passing_is_asked_for_again_and_taken(
    upstream: FakeUpstream, make: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A 400 of one moment turned off JSON schemas for the life of the process.

    Breaks when: the client remembers a refusal for ever, or does not tell that it has passed.
    """
    monkeypatch.setattr("chatapp.llm.openai_compatible.adaptation.REMEMBERED", 0.0)
    upstream.enqueue(failing(400, "response_format: try again later"))
    lessons = Lessons()
    client = make(on_learned=lessons)
    wanted = ChatRequest(
        model="m", messages=REQUEST.messages, response_format={"type": "json_object"}
    )
    await client.complete(wanted)
    await client.complete(replace(wanted, response_format=None))
    assert lessons.learned == [("m", "supports_json_schema", False)]
    await client.complete(wanted)
    assert "response_format" in upstream.chats[-1].json
    assert lessons.learned[1:] == [("m", "supports_json_schema", True)]
    await client.complete(wanted)
    assert len(lessons.learned) == 2, "once told"


async def test_what_is_refused_again_is_told_again(
    upstream: FakeUpstream, make: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that the lesson is confirmed. Breaks when: only what is new to the client is told."""
    monkeypatch.setattr("chatapp.llm.openai_compatible.adaptation.REMEMBERED", 0.0)
    upstream.handler = picky
    lessons = Lessons()
    client = make(on_learned=lessons)
    for _ in range(2):
        await client.complete(REQUEST)
    usage = (REQUEST.model, "supports_usage", False)
    assert lessons.learned.count(usage) == 2


async def test_a_server_that_always_complains_is_not_asked_for_ever(
    upstream: FakeUpstream, make: MakeClient
) -> None:
    upstream.handler = lambda request: failing(400, "stream_options, system role: no")
    lessons = Lessons()
    _, error = await text_until_error(make(on_learned=lessons))
    assert type(error) is RequestRefused
    assert len(upstream.chats) == 3
    assert lessons.learned == [], "nothing is learned from what did not help"


async def test_l09_the_window_is_learned_from_an_overflow(
    upstream: FakeUpstream, make: MakeClient
) -> None:
    upstream.enqueue(failing(400, "This model's maximum context length is 4096 tokens."))
    lessons = Lessons()
    _, error = await text_until_error(make(on_learned=lessons))
    assert type(error) is ContextOverflow
    assert lessons.learned == [("fake-model", "window", 4096)]


async def test_models(upstream: FakeUpstream, make: MakeClient) -> None:
    upstream.models = ({"id": "a", "max_model_len": 4096}, {"id": "b", "extra": {}})
    models = await make().models()
    assert [(model.name, model.window) for model in models] == [("a", 4096), ("b", None)]


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        (Script(body=b"<html>", content_type="text/html"), MalformedReply),
        (failing(401, "no"), WrongKey),
        (failing(500, "no"), ServerFault),
    ],
)
async def test_models_that_cannot_be_had(
    upstream: FakeUpstream, make: MakeClient, script: Script, kind: type[LLMError]
) -> None:
    upstream.models = script
    with pytest.raises(kind):
        await make().models()


async def test_many_streams_at_once(upstream: FakeUpstream, make: MakeClient) -> None:
    # Server and client share a loop here, so that a connection waits for all the others.
    client = make(limits=Limits(connect=60))
    upstream.handler = lambda request: saying("one two three", seconds_a_word=0.02)
    replies = await asyncio.gather(*(client.complete(REQUEST) for _ in range(100)))
    assert {reply.text for reply in replies} == {"one two three"}


async def test_i29_nothing_is_logged_that_holds_the_key(
    upstream: FakeUpstream, make: MakeClient, caplog: pytest.LogCaptureFixture
) -> None:
    """I29, its second half: no secret in a log.

    Breaks when: a header that cannot be sent is logged.
    """
    caplog.set_level("DEBUG")
    upstream.enqueue(failing(429, f"{KEY} is slow", headers={"Retry-After": "0"}))
    address = upstream.base_url.replace("http://", "http://ann:hunter2hunter2@")
    await make(base_url=address).complete(REQUEST)
    await text_until_error(make(api_key="sk-line\nend-of-key"))
    for secret in (KEY, "hunter2hunter2", "end-of-key"):
        assert secret not in caplog.text
