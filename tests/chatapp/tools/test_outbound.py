"""The client of tools, against a real server on this computer."""

from __future__ import annotations

import asyncio
import gzip
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any
from unittest.mock import patch

import httpx2
import pytest
import pytest_asyncio
from aiohttp import web

from chatapp.tools.addresses import Reach
from chatapp.tools.outbound import BodyTooLarge, HostRefused, outbound_client
from compression.tools.calls import MOST_CALLS

HERE = Reach(hosts=frozenset({"127.0.0.1", "localhost"}), private=True)


class _Site:
    """Answers, and counts who came."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.origin = ""
        self.port = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.path)
        match request.path:
            case "/redirect":
                raise web.HTTPFound(f"{self.origin}/secret")
            case "/zip":
                packed = gzip.compress(b"x" * 100_000)
                return web.Response(body=packed, headers={"Content-Encoding": "gzip"})
            case "/long":
                response = web.StreamResponse()
                await response.prepare(request)
                for _ in range(100):
                    await response.write(b"x" * 1000)
                return response
            case "/silent":
                await asyncio.Event().wait()
            case "/stops":
                response = web.StreamResponse()
                await response.prepare(request)
                await response.write(b"x")
                await asyncio.Event().wait()
            case "/headers":
                return web.json_response(dict(request.headers))
        return web.Response(text="hello")


@pytest_asyncio.fixture
async def site() -> AsyncIterator[_Site]:
    made = _Site()
    app = web.Application()
    app.router.add_get("/{rest:.*}", made.answer)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.port = runner.addresses[0][1]
    made.origin = f"http://127.0.0.1:{made.port}"
    yield made
    await runner.cleanup()


async def _get(address: str, reach: Reach = HERE, **options: Any) -> httpx2.Response:
    async with outbound_client(reach, most_bytes=50_000, seconds=5.0, **options) as client:
        return await client.get(address)


async def test_it_works(site: _Site) -> None:
    answer = await _get(f"{site.origin}/page")
    assert answer.text == "hello"


async def test_t03_a_private_address_is_refused_at_the_connection(site: _Site) -> None:
    """T03.

    Breaks when: the client connects without ``open_socket``.
    """
    for address in (site.origin, f"http://localhost:{site.port}", "http://169.254.169.254/"):
        with pytest.raises(HostRefused, match="private address"):
            await _get(address, Reach(hosts=frozenset({"*"})))
    assert site.asked == []


@pytest.mark.parametrize("host", ["[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "2130706433", "127.1"])
async def test_t03_however_it_is_written(site: _Site, host: str) -> None:
    """T03.

    Breaks when: an address is compared as text.
    """
    with pytest.raises(httpx2.RequestError):
        await _get(f"http://{host}:{site.port}/", Reach(hosts=frozenset({"*"})))
    assert site.asked == []


async def test_t03_a_name_that_resolves_to_another_address_later(site: _Site) -> None:
    """T03: DNS rebinding. The name is public when looked up first, and private from then on.

    Breaks when: a name is resolved and checked, and resolved again to connect.
    """
    answers = iter(["192.0.2.1"])

    async def rebinding(_loop: Any, _host: str, port: int, **_: Any) -> list[Any]:
        address = next(answers, "127.0.0.1")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    with patch.object(asyncio.BaseEventLoop, "getaddrinfo", rebinding):
        for _ in range(2):
            with pytest.raises(HostRefused):
                await _get(f"http://rebinding.example:{site.port}/", Reach(hosts=frozenset({"*"})))
    assert site.asked == []


async def test_t03_another_host_than_the_configured_one(site: _Site) -> None:
    """T03.

    Breaks when: ``Reach.allows`` is not asked.
    """
    with pytest.raises(HostRefused, match="configured"):
        await _get(site.origin, Reach(hosts=frozenset({"tools.example"}), private=True))
    assert site.asked == []


async def test_t03_a_redirect_is_not_followed(site: _Site) -> None:
    """T03.

    Breaks when: the client follows redirects.
    """
    answer = await _get(f"{site.origin}/redirect")
    assert answer.status_code == 302
    assert site.asked == ["/redirect"]


async def test_t04_a_body_that_is_too_long(site: _Site) -> None:
    """T04.

    Breaks when: ``_Bounded`` counts nothing.
    """
    with pytest.raises(BodyTooLarge):
        await _get(f"{site.origin}/long")


async def test_t04_a_body_that_would_grow(site: _Site) -> None:
    """T04: 100,000 bytes in a body of 130.

    Breaks when: what is compressed is taken.
    """
    with pytest.raises(httpx2.RemoteProtocolError):
        await _get(f"{site.origin}/zip")


async def test_headers_go_along_and_a_proxy_is_not_asked(
    site: _Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Breaks when: the client trusts the environment, whose proxy would connect anywhere."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    answer = await _get(f"{site.origin}/headers", headers={"Authorization": "Bearer x"})
    assert answer.json()["Authorization"] == "Bearer x"


@pytest.mark.parametrize("path", ["/silent", "/stops"])
async def test_t04_an_answer_that_does_not_come(site: _Site, path: str) -> None:
    """T04: neither its head, nor the rest of its body.

    Breaks when: only the connecting has a limit of time.
    """
    async with outbound_client(HERE, most_bytes=50_000, seconds=0.2) as client:
        with pytest.raises(httpx2.ReadTimeout):
            async with asyncio.timeout(5):
                await client.get(f"{site.origin}{path}")


async def test_as_many_requests_at_once_as_a_reply_can_make(site: _Site) -> None:
    """Breaks when: a reply's calls are refused because they are many."""
    async with (
        outbound_client(HERE, most_bytes=50_000, seconds=5.0) as client,
        AsyncExitStack() as stack,
    ):
        for _ in range(MOST_CALLS * 2 + 1):
            streaming = client.stream("GET", f"{site.origin}/stops")
            await stack.enter_async_context(streaming)
        assert (await client.get(f"{site.origin}/page")).text == "hello"
