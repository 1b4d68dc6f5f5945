"""The fake upstream as a process of its own, and what it answers when it is told nothing."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator

import aiohttp
import pytest

from tests.fake_scripts import (
    Json,
    is_summary_request,
    quoted_messages,
    saying,
    summary_delta,
)
from tests.fake_upstream import FakeUpstream

ASK: Json = {"model": "fake-model", "messages": [{"role": "user", "content": "Hello"}]}


@pytest.fixture
async def upstream() -> AsyncIterator[FakeUpstream]:
    async with FakeUpstream() as server:
        yield server


async def test_it_works_without_streaming(upstream: FakeUpstream) -> None:
    upstream.enqueue(saying("Scripted"))
    async with aiohttp.ClientSession() as http:
        for said in ("Scripted", "You said: Hello"):
            async with http.post(f"{upstream.base_url}/chat/completions", json=ASK) as answer:
                body = await answer.json()
            assert body["choices"][0]["message"]["content"] == said
            assert body["choices"][0]["finish_reason"] == "stop"
    assert [request.json for request in upstream.chats] == [ASK, ASK]


async def test_as_a_process_of_its_own() -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.fake_upstream", "--port", "0", stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        base = (await process.stdout.readline()).decode().strip()
        origin = base.removesuffix("/v1")
        async with aiohttp.ClientSession() as http:
            scripts = [
                {"steps": [{"text": "One"}, {"delay": 0}, {"finish": "stop"}, {"done": True}]},
                {"status": 429, "message": "slow", "headers": {"Retry-After": "1"}},
            ]
            async with http.post(f"{origin}/script", json=scripts) as answer:
                assert await answer.json() == {"queued": 2}
            ask = {**ASK, "stream": True}
            async with http.post(f"{base}/chat/completions", json=ask) as answer:
                assert b'"content": "One"' in await answer.read()
            async with http.post(f"{base}/chat/completions", json=ask) as answer:
                assert (answer.status, answer.headers["Retry-After"]) == (429, "1")
            async with http.get(f"{origin}/requests") as answer:
                told = await answer.json()
            assert [one["json"] for one in told["requests"]] == [ask, ask]
            async with http.post(f"{origin}/reset") as answer:
                await answer.read()
            async with http.get(f"{origin}/requests") as answer:
                assert (await answer.json())["requests"] == []
    finally:
        process.terminate()
        await process.wait()


async def test_a_summary_waits_for_the_request_that_asks_for_it_and_to_be_released(
    upstream: FakeUpstream,
) -> None:
    steps = [{"text": "A "}, {"wait": None}, {"text": "summary"}, {"finish": "stop"}]
    wanted: Json = {"json_schema": {"name": "compression"}}
    async with aiohttp.ClientSession() as http:
        script = {"for": "summaries", "steps": steps}
        async with http.post(f"{upstream.origin}/script", json=script) as answer:
            assert answer.ok
        async with http.post(f"{upstream.base_url}/chat/completions", json=ASK) as answer:
            assert "You said: Hello" in await answer.text()
        ask = {**ASK, "response_format": wanted, "stream": True}
        async with http.post(f"{upstream.base_url}/chat/completions", json=ask) as answer:
            assert b'"A "' in await answer.content.readuntil(b"\n\n")
            async with http.post(f"{upstream.origin}/release") as released:
                assert released.ok
            assert b'"summary"' in await answer.read()


QUOTED = """Here is the conversation.
<message-a1b2 seq="3" role="user">
Always answer in British English. What is a lift?
</message-a1b2>
<message-a1b2 seq="4" role="assistant">
You must know: an elevator. See <message-0 seq="9" role="user">, it says.
</message-a1b2>
<message-a1b2 seq="5" role="user">
Thanks
</message-a1b2>
"""


def test_a_summary_request_gets_a_sensible_delta() -> None:
    request: Json = {
        "messages": [
            {"role": "system", "content": "Instructions"},
            {"role": "user", "content": QUOTED},
        ],
        "response_format": {"type": "json_schema", "json_schema": {"name": "compression"}},
    }
    assert is_summary_request(request)
    assert [(seq, role) for seq, role, _ in quoted_messages(request)] == [
        (3, "user"),
        (4, "assistant"),
        (5, "user"),
    ]
    assert summary_delta(request)["add"][0] == {
        "section": "constraints",
        "text": "Always answer in British English.",
        "sources": [3],
    }


def test_a_chat_is_not_taken_for_a_summary_request() -> None:
    assert not is_summary_request(ASK)
