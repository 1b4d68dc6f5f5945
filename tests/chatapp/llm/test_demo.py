"""The demo model: honest, deterministic, and useful for seeing what a compression kept."""

from __future__ import annotations

import pytest

from chatapp.llm.client import ChatRequest, Finished, TextChunk
from chatapp.llm.demo import WINDOW, DemoClient, compose, look
from chatapp.llm.errors import ContextOverflow

SUMMARY = """You are helpful.

## Summary
They planned a trip. [1–4]

## Constraints
- “Never book a flight before nine” [3]
- “Answer in British English” [5, 7–9]

## Decisions
- Hotel Rialto, because it is quiet [6]
"""


class WordCounter:
    """A ruler that needs no table: a word is a token."""

    estimated = True

    def count(self, text: str) -> int:
        return len(text.split())


class Pauses:
    """Waits for nothing and remembers what it was asked for."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def demo() -> tuple[DemoClient, Pauses]:
    pauses = Pauses()
    return DemoClient(counter=WordCounter(), pause=pauses), pauses


def asked(*texts: str, system: str = "", max_tokens: int | None = None) -> ChatRequest:
    messages = [{"role": "system", "content": system}] if system else []
    for text in texts:
        messages += [{"role": "user", "content": text}, {"role": "assistant", "content": "Yes."}]
    return ChatRequest(model="demo", messages=tuple(messages[:-1]), max_tokens=max_tokens)


async def test_it_works() -> None:
    client, _ = demo()
    reply = await client.complete(asked("Hello there"))
    assert reply.text.startswith("This is the built-in demo model, no language model")
    assert "**1 message**" in reply.text
    assert "no summary yet" in reply.text
    assert reply.finish_reason == "stop"
    assert reply.usage is not None
    assert reply.usage.prompt_tokens == 2 + 4
    assert reply.usage.completion_tokens == len(reply.text.split())


async def test_the_stream_is_the_whole_reply_word_by_word_at_the_pace_of_a_reader() -> None:
    client, pauses = demo()
    request = asked("Hello there")
    async with client.stream(request) as chunks:
        seen = [chunk async for chunk in chunks]
    text = "".join(chunk.text for chunk in seen if isinstance(chunk, TextChunk))
    assert text == (await client.complete(request)).text
    assert isinstance(seen[-1], Finished)
    assert len(seen) > 80
    assert 1 / 80 <= pauses.seconds[0] <= 1 / 60


async def test_a_reply_is_left_in_the_middle() -> None:
    client, pauses = demo()
    async with client.stream(asked("Hello there")) as chunks:
        await anext(aiter(chunks))
    assert len(pauses.seconds) <= 1


async def test_it_shows_what_survived_a_compression() -> None:
    client, _ = demo()
    reply = await client.complete(
        asked("When may a flight leave, and which hotel?", system=SUMMARY)
    )
    assert "**2 constraints**" in reply.text
    assert "- “Answer in British English”" in reply.text
    assert "> from the summary: “Never book a flight before nine”" in reply.text
    assert "> from the summary: Hotel Rialto, because it is quiet" in reply.text


async def test_it_quotes_earlier_messages_of_the_user() -> None:
    client, _ = demo()
    reply = await client.complete(asked("My cat is called Mika.", "And what is my cat called?"))
    assert "> from an earlier message: My cat is called Mika." in reply.text


@pytest.mark.parametrize("turns", range(1, 6))
async def test_replies_are_long_enough_to_fill_the_window_soon(turns: int) -> None:
    client, _ = demo()
    reply = await client.complete(asked(*[f"Question number {n}" for n in range(turns)]))
    assert 100 <= len(reply.text.split()) <= 240


def test_some_replies_hold_a_table_a_list_and_code() -> None:
    replies = [compose(look(asked(*["question"] * turns).messages), 100) for turns in range(1, 5)]
    assert any("\n|---|" in reply for reply in replies)
    assert any("\n1. " in reply for reply in replies)
    assert any("```json" in reply for reply in replies)


async def test_it_keeps_to_max_tokens() -> None:
    client, _ = demo()
    reply = await client.complete(asked("Hello there", max_tokens=20))
    assert reply.finish_reason == "length"
    assert reply.usage is not None
    assert 10 <= reply.usage.completion_tokens <= 20


async def test_it_refuses_what_does_not_fit_and_names_its_window() -> None:
    client, _ = demo()
    with pytest.raises(ContextOverflow) as caught:
        await client.complete(asked("word " * WINDOW))
    assert caught.value.fields["window"] == WINDOW


async def test_it_answers_a_request_without_text() -> None:
    client, _ = demo()
    reply = await client.complete(ChatRequest(model="demo", messages=({"role": "user"},)))
    assert "no text" in reply.text


async def test_it_offers_one_model() -> None:
    client, _ = demo()
    (model,) = await client.models()
    assert (model.name, model.window) == ("demo", 4096)
    await client.aclose()
