"""A program's whole conversation by the documented contract, with no browser and no HTML."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

import pytest

from tests.fake_scripts import is_summary_request
from tests.json_client import JsonClient
from tests.servers import RunningServer
from tests.upstreams import running_upstream

Json = dict[str, Any]
Serve = Callable[..., RunningServer]
# Seconds until something must have happened; a busy computer is slow.
PATIENCE = 60
WORDS = "Always keep in mind that the harbour of Malmö opens at nine and closes at five. " * 25


@pytest.fixture
async def client(server: RunningServer) -> AsyncIterator[JsonClient]:
    """Signed in to a server with the demo model, in a conversation of its own."""
    client = JsonClient(server.base_url)
    await client.sign_in(server.signin_link)
    await client.create(title="Harbours")
    yield client
    await client.close()


async def until(client: JsonClient, last: str) -> list[Json]:
    """Events up to and with the first of type ``last``."""
    seen: list[Json] = []
    async with asyncio.timeout(PATIENCE), aclosing(client.events()) as events:  # type: ignore[type-var]
        async for event in events:
            seen.append(event)
            if event["type"] == last:
                return seen
    raise AssertionError(f"the socket was closed before {last}")


async def answered(client: JsonClient, turn: int) -> list[Json]:
    """Follow until the turn has ended, as an event or as part of a ``state``; its events."""
    seen: list[Json] = []
    async with asyncio.timeout(PATIENCE), aclosing(client.events()) as events:  # type: ignore[type-var]
        async for event in events:
            seen.append(event)
            if event["type"] == "turn-finished" and event["turn"] == turn:
                return seen
            if event["type"] == "state" and event["turn"] is None:
                return seen
    raise AssertionError("the socket was closed")


async def chat_past_threshold(client: JsonClient) -> list[Json]:
    """Send long messages until one of them is preceded by a compression; the last turn's events."""
    for number in range(20):
        turn = (await client.send(f"Message {number}. {WORDS}"))["turn"]
        events = await answered(client, turn)
        if any(event["type"] == "compression-completed" for event in events):
            return events
    raise AssertionError("never compressed")


def of_type(events: list[Json], type_: str) -> list[Json]:
    return [event for event in events if event["type"] == type_]


async def test_it_holds_a_conversation(client: JsonClient) -> None:
    begun = await client.send("Hello there")
    assert set(begun) == {"turn", "message_seq", "reply_seq"}
    await answered(client, begun["turn"])
    page = await client.get()
    assert [message["role"] for message in page["messages"]] == ["user", "assistant"]
    assert page["messages"][0]["text"] == "Hello there"
    assert page["messages"][1]["status"] == "complete"
    assert page["turn"] is None
    assert page["event_no"] == client.event_no
    turn = await client.get(f"turns/{begun['turn']}/")
    assert turn["status"] == "complete"
    assert turn["error"] is None
    assert {"prompt_tokens", "completion_tokens"} <= set(turn["usage"])
    assert turn["manifest"]


async def test_it_compresses_and_undoes(client: JsonClient) -> None:
    events = await chat_past_threshold(client)
    told = of_type(events, "compression-started")
    # Who follows a little later learns of the run by the first state.
    started = told[0] if told else events[0]["compression"]
    assert started["trigger"] == "threshold"
    assert started["locks_input"] is True
    if told:
        assert started["message_count"] > 0
        assert started["source_tokens"] > 0
    progress = of_type(events, "compression-progress")
    assert progress
    assert len({event["event_no"] for event in progress}) == 1
    written = [event["tokens_written"] for event in progress]
    assert written == sorted(written)
    (completed,) = of_type(events, "compression-completed")
    assert completed["success"] is True
    assert completed["tokens_after"] < completed["tokens_before"]
    assert completed["usage_after"] < completed["usage_before"]
    assert of_type(events, "summary-changed")[0]["version"] == completed["version"] == 1

    status, undone = await client.post("summary/undo/")
    assert status == 200
    page = await client.get()
    assert page["compression"]["version"] == undone["version"]
    assert page["compression"]["boundary"] == 0
    assert page["compression"]["summary"] == ""
    assert page["compression"]["can_redo"] is True
    assert (await client.post("summary/redo/"))[0] == 200
    # Everything that was said is still there, word for word.
    assert any(WORDS.strip() in message["text"] for message in page["messages"])


async def test_it_reconnects_in_the_middle_of_a_reply(client: JsonClient) -> None:
    turn = (await client.send(WORDS))["turn"]
    first = await until(client, "delta")
    again = await answered(client, turn)
    state = again[0]
    assert state["type"] == "state"
    assert state["after"] == max(event["event_no"] for event in first)
    deltas = [event for event in again if event["type"] == "delta"]
    text = state["turn"]["text"] if state["turn"] else ""
    for delta in deltas:
        assert delta["offset"] == len(text)
        text += delta["text"]
    ended = of_type(again, "turn-finished")
    if ended:
        assert ended[0]["message"]["text"].startswith(text)


async def test_compact_answers_at_once_and_refuses_what_is_too_short(client: JsonClient) -> None:
    status, answer = await client.post("compact/")
    assert status == 422
    assert answer["error"]["code"] == "nothing_to_compress"
    for number in range(5):
        turn = (await client.send(f"Question {number}. {WORDS}"))["turn"]
        await answered(client, turn)
    assert await client.post("compact/", focus="harbours") == (202, {"state": "started"})
    assert await client.post("compact/") == (202, {"state": "running"})
    completed = (await until(client, "compression-completed"))[-1]
    assert completed["trigger"] == "manual"
    assert completed["success"] is True


async def test_the_model_gets_one_system_message_with_the_summary_and_then_the_tail(
    serve: Serve,
) -> None:
    """The product and the model server as two processes, as in a deployment."""
    with running_upstream() as upstream:
        server = serve(OPENAI_BASE_URL=upstream.base_url, OPENAI_API_KEY="k", CONTEXT_WINDOW="4096")
        client = JsonClient(server.base_url)
        await client.sign_in(server.signin_link)
        await client.create()
        events = await chat_past_threshold(client)
        assert of_type(events, "compression-completed")[0]["success"] is True
        turn = (await client.send("And the next one?"))["turn"]
        await answered(client, turn)
        summary = (await client.get())["compression"]["summary"]
        await client.close()
        # The next summary may have been asked for since, ahead of its time.
        asked = [chat["messages"] for chat in upstream.chats() if not is_summary_request(chat)]
    messages = asked[-1]
    assert [message["role"] for message in messages].count("system") == 1
    assert messages[0]["role"] == "system"
    assert summary
    assert summary in messages[0]["content"]
    assert messages[1]["role"] == "user"
    roles = [message["role"] for message in messages[1:]]
    assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"]
    assert messages[-1]["content"] == "And the next one?"
