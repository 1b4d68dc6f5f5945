"""How often a server is asked for its models, and who is told."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from chatapp.llm.client import ModelInfo
from chatapp.llm.errors import LLMError, ServerFault
from chatapp.llm.model_list import LIST_LIVES, SILENCE_LIVES, ModelList


class Server:
    """A server that lists ``names``, or fails; and what was heard of it."""

    def __init__(self, *names: str) -> None:
        self.names = names
        self.failure: LLMError | None = None
        self.asked = 0
        self.heard: list[list[str]] = []
        self.now = 1000.0
        self.models = ModelList(self.fetch, self.hear, lambda: self.now)

    async def fetch(self) -> tuple[ModelInfo, ...]:
        self.asked += 1
        await asyncio.sleep(0)
        if self.failure is not None:
            raise self.failure
        return tuple(ModelInfo(name=name) for name in self.names)

    async def hear(self, listed: Sequence[ModelInfo]) -> None:
        self.heard.append([one.name for one in listed])


async def test_it_works() -> None:
    server = Server("first", "second")
    assert (server.models.names, server.models.default) == ([], "")
    await server.models.ask()
    assert (server.models.names, server.models.default) == (["first", "second"], "first")
    assert server.heard == [["first", "second"]]


async def test_many_at_once_ask_once() -> None:
    """Breaks when: who asks while another asks does not wait for that answer."""
    server = Server("first")
    await asyncio.gather(*(server.models.ask() for _ in range(5)))
    assert (server.asked, len(server.heard)) == (1, 1)


async def test_a_list_is_believed_for_a_while() -> None:
    server = Server("first")
    await server.models.ask()
    server.names = ("second",)
    server.now += LIST_LIVES - 1
    await server.models.ask()
    assert server.models.default == "first"
    server.now += 1
    await server.models.ask()
    assert (server.models.default, server.asked) == ("second", 2)


async def test_a_failure_is_told_again_for_a_while_and_keeps_the_last_list() -> None:
    """Breaks when: a silent server is asked by every request, or its models are forgotten."""
    server = Server("first")
    await server.models.ask()
    server.now += LIST_LIVES
    server.failure = ServerFault("down")
    for _ in range(2):
        with pytest.raises(ServerFault):
            await server.models.ask()
    assert (server.asked, server.models.names) == (2, ["first"])
    server.failure = None
    server.now += SILENCE_LIVES
    await server.models.ask()
    assert (server.asked, len(server.heard)) == (3, 2)


async def test_a_list_that_could_not_be_taken_in_is_asked_for_again() -> None:
    """As when the database is away. Breaks when: a list is believed before it is stored."""
    server = Server("first")
    server.models = ModelList(server.fetch, _fail, lambda: server.now)
    with pytest.raises(ConnectionError):
        await server.models.ask()
    assert server.models.names == ["first"]
    with pytest.raises(ConnectionError):
        await server.models.ask()
    assert server.asked == 2


async def _fail(listed: Sequence[ModelInfo]) -> None:
    raise ConnectionError(f"nowhere to put {len(listed)} models")
