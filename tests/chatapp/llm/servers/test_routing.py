"""Which request goes to which server, and what its client is told and made of."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatapp.llm.client import (
    ChatRequest,
    Chunk,
    Finished,
    ModelInfo,
    OnTokens,
    TextChunk,
    WholeReply,
    collect,
)
from chatapp.llm.errors import LLMError, ModelUnknown, ServerUnreachable, WrongKey
from chatapp.llm.openai_compatible.limits import Limits
from chatapp.llm.servers.making import client_of
from chatapp.llm.servers.names import SUMMARIES, parted, qualified, server_of
from chatapp.llm.servers.pool import Clients, Server
from chatapp.llm.servers.routing import RoutingClient
from chatapp.tools.sealing import seal
from tests.fake_scripts import failing, redirecting
from tests.fake_upstream import FakeUpstream

HOME = Server(name="home", address="http://127.0.0.1:1/v1")
PLAIN = [{"role": "user", "content": "Hi"}]


class Told:
    """A client that notes what it was asked, and answers with its own name."""

    def __init__(self, name: str, error: LLMError | None = None) -> None:
        self.name = name
        self.asked: list[str] = []
        self.closed = 0
        self._error = error

    @asynccontextmanager
    async def stream(self, request: ChatRequest) -> AsyncIterator[AsyncIterator[Chunk]]:
        self.asked.append(request.model)
        if self._error is not None:
            raise self._error
        yield self._chunks()

    async def _chunks(self) -> AsyncIterator[Chunk]:
        yield TextChunk(text=self.name)
        yield Finished(finish_reason="stop")

    async def complete(self, request: ChatRequest, on_tokens: OnTokens | None = None) -> WholeReply:
        return await collect(self.stream(request), on_tokens)

    async def models(self) -> tuple[ModelInfo, ...]:
        return (ModelInfo(name=f"of {self.name}"),)

    async def aclose(self) -> None:
        self.closed += 1


class Pool:
    """Connections of one test: what ``find`` gives, and the clients that were made."""

    def __init__(self, **servers: Server) -> None:
        self.servers = servers
        self.made: list[Told] = []
        self.clients = Clients(self.make)

    async def make(self, server: Server) -> Told:
        await asyncio.sleep(0)
        self.made.append(Told(server.address))
        return self.made[-1]

    async def find(self, name: str, model: str) -> Server:
        if name not in self.servers:
            raise ModelUnknown("gone")
        return self.servers[name]


def asking(model: str) -> ChatRequest:
    return ChatRequest(model=model, messages=tuple(PLAIN))


async def reply(client: RoutingClient, model: str) -> str:
    return (await client.complete(asking(model))).text


@given(st.text(min_size=1), st.from_regex(r"\A\w+([ .-]\w+)*\Z"))
def test_a_name_says_its_server(model: str, server: str) -> None:
    """Whatever a server calls its models, the end of the name is the connection's.

    Breaks when: ``parted`` cuts at the first separator.
    """
    assert parted(qualified(model, server)) == (model, server)
    assert parted(qualified(f"x @ {SUMMARIES}", server))[1] == server
    assert server_of("gpt-4o") == "" == server_of("someone@example.org/model")


async def test_each_request_goes_to_the_server_of_its_model() -> None:
    """And never to another: not when there is none of that name, either; and a server for summaries
    writes these with its one model, and answers nobody.

    Breaks when: a name whose server is not known is sent to the chat's own, or a conversation with
    the summaries' model to their server.
    """
    own, summaries, pool = Told("own"), Told("summaries"), Pool(home=HOME)
    client = RoutingClient(
        own,
        summaries={f"small @ {SUMMARIES}": summaries},
        find=pool.find,
        clients=pool.clients,
    )
    assert await reply(client, "qwen3:8b") == "own"
    assert await reply(client, "qwen3:8b @ home") == HOME.address
    summary = replace(asking(f"small @ {SUMMARIES}"), summary=True)
    assert (await client.complete(summary)).text == "summaries"
    for missing in ("qwen3:8b @ gone", f"small @ {SUMMARIES}"):
        with pytest.raises(ModelUnknown):
            await reply(client, missing)
    with pytest.raises(ModelUnknown):
        await client.complete(replace(summary, model=f"large @ {SUMMARIES}"))
    assert own.asked == ["qwen3:8b"] == pool.made[0].asked
    assert summaries.asked == ["small"]
    assert await client.models() == (ModelInfo(name="of own"),)
    await client.aclose()
    assert [one.closed for one in (own, summaries, *pool.made)] == [1, 1, 1]


async def test_a_changed_connection_ends_no_request_under_way() -> None:
    """The old client is closed with the last of its requests; an equal connection keeps its own.

    Breaks when: ``Clients`` closes the old client at once, or never.
    """
    pool = Pool()
    moved = Server(name="home", address="http://127.0.0.1:2/v1")
    async with pool.clients.lent(HOME) as first, pool.clients.lent(HOME) as again:
        assert first is again
        async with pool.clients.lent(moved) as second:
            assert second is not first
        assert [one.closed for one in pool.made] == [0, 0]
    assert [one.closed for one in pool.made] == [1, 0]
    async with pool.clients.lent(moved) as third:
        assert third is second
    assert len(pool.made) == 2
    await asyncio.gather(*(_use(pool, HOME) for _ in range(5)))
    assert len(pool.made) == 3
    await pool.clients.aclose()
    assert [one.closed for one in pool.made] == [1, 1, 1]


async def _use(pool: Pool, server: Server) -> None:
    async with pool.clients.lent(server):
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("m", "should check OPENAI_API_KEY."),
        (f"m @ {SUMMARIES}", "should check SUMMARY_API_KEY."),
        ("m @ home", "should check the key of “home”."),
    ],
)
async def test_what_is_wrong_is_said_of_the_right_server(model: str, words: str) -> None:
    """Breaks when: ``about`` is left out of ``RoutingClient.stream``."""

    async def make(_: Server) -> Told:
        return Told("home", WrongKey())

    pool = Pool(home=HOME)
    client = RoutingClient(
        Told("own", WrongKey()),
        summaries={f"m @ {SUMMARIES}": Told("summaries", WrongKey())},
        find=pool.find,
        clients=Clients(make),
    )
    with pytest.raises(WrongKey) as caught:
        await client.complete(replace(asking(model), summary=True))
    assert caught.value.message.endswith(words)


@pytest.fixture
async def upstream() -> AsyncIterator[FakeUpstream]:
    async with FakeUpstream() as running:
        yield running


async def listed(server: Server) -> tuple[ModelInfo, ...]:
    client = client_of(server, limits=Limits(attempts=1))
    try:
        return await client.models()
    finally:
        await client.aclose()


async def test_a_connection_is_told_its_own_key_and_nothing_of_the_chats(
    upstream: FakeUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither in lists nor in replies.

    Breaks when: the SDK's own headers, or its environment variables, reach a connection.
    """
    chats = {
        "OPENAI_API_KEY": "sk-of-the-chat",
        "OPENAI_ORG_ID": "org-of-the-chat",
        "OPENAI_PROJECT_ID": "project-of-the-chat",
        "OPENAI_CUSTOM_HEADERS": "X-Chat: secret\nAuthorization: Bearer of-the-chat",
        "HTTP_PROXY": "http://127.0.0.1:9",
    }
    for name, value in chats.items():
        monkeypatch.setenv(name, value)
    for key, sent in (("a-key", "Bearer a-key"), ("", None)):
        server = Server(name="home", address=upstream.base_url, sealed_key=seal(key), private=True)
        upstream.requests.clear()
        client = client_of(server)
        await client.models()
        await client.complete(asking("fake-model"))
        await client.aclose()
        assert len(upstream.requests) == 2
        for one in upstream.requests:
            assert one.headers.get("authorization") == sent
            assert "chat" not in str({**one.headers, "host": "", "user-agent": ""})


@pytest.mark.parametrize(
    ("change", "refused"),
    [
        (lambda base: base, "in its network"),
        (lambda base: base.replace("127.0.0.1", "localhost"), "in its network"),
        (lambda base: "http://169.254.169.254/v1", "never connected to"),
    ],
)
async def test_private_addresses_are_reached_only_if_an_owner_says_so(
    upstream: FakeUpstream, change: Callable[[str], str], refused: str
) -> None:
    """Where clouds serve their machines' keys, never, and then nobody is told to allow it.

    Breaks when: ``client_of`` passes no ``open_socket``, or another than the connection's.
    """
    address = change(upstream.base_url)
    with pytest.raises(ServerUnreachable, match=refused):
        await listed(Server(name="home", address=address))
    assert not upstream.requests
    server = Server(name="home", address=address, private=True)
    if "never" not in refused:
        assert (await listed(server))[0].name == "fake-model"
    else:
        with pytest.raises(ServerUnreachable, match=refused):
            await listed(server)


async def test_no_redirect_is_followed_and_no_foreign_key_is_used(
    upstream: FakeUpstream, settings: Any
) -> None:
    """A server that redirects gets no second request, wherever that would go.

    Breaks when: the client follows redirects, or an unreadable key becomes none.
    """
    server = Server(name="home", address=upstream.base_url, sealed_key=seal("k"), private=True)
    upstream.models = redirecting(f"{upstream.base_url}/elsewhere")
    with pytest.raises(LLMError):
        await listed(server)
    assert len(upstream.requests) == 1
    upstream.models = failing(401, "no")
    with pytest.raises(WrongKey):
        await listed(server)
    settings.SECRET_KEY = "another " + "0123456789" * 5
    with pytest.raises(WrongKey, match="another SECRET_KEY"):
        await listed(server)
    assert len(upstream.requests) == 2
