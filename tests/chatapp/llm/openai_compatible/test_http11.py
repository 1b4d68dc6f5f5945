from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatapp.llm.openai_compatible.http11 import MAX_LINE, ChunkDecoder, DirectTransport

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
HEAD = b"HTTP/1.1 200 OK\r\n"


class Server:
    """Answers each request with the bytes that a test gives; counts connections."""

    def __init__(self) -> None:
        self.address = ""
        self.connections = 0
        self.requests: list[bytes] = []
        self.answer: Answer = self.says(HEAD + b"content-length: 2\r\n\r\nok")

    @staticmethod
    def says(*parts: bytes, close: bool = False) -> Answer:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            for part in parts:
                writer.write(part)
                await writer.drain()
            if close:
                writer.close()

        return answer

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        while not writer.is_closing():
            try:
                self.requests.append(await reader.readuntil(b"\r\n\r\n"))
            except (asyncio.IncompleteReadError, ConnectionError):
                break
            await self.answer(reader, writer)
        writer.close()


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    made = Server()
    listening = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.address = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/"
    yield made
    listening.close()


@pytest.fixture
async def http() -> AsyncIterator[httpx2.AsyncClient]:
    transport = DirectTransport(most=3, keepalive=30.0)
    async with httpx2.AsyncClient(transport=transport, timeout=5.0) as client:
        yield client


async def get(http: httpx2.AsyncClient, server: Server) -> httpx2.Response:
    return await http.get(server.address)


async def test_it_works(server: Server, http: httpx2.AsyncClient) -> None:
    first, second = await get(http, server), await get(http, server)
    assert (first.status_code, first.text, second.text) == (200, "ok", "ok")
    assert server.connections == 1
    assert server.requests[0].startswith(b"GET / HTTP/1.1\r\n")


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (
            b"transfer-encoding: chunked\r\n\r\n2\r\nab\r\n3;x=y\r\ncde\r\n0\r\nt: 1\r\n\r\n",
            "abcde",
        ),
        (b"Content-Length: 3\r\n\r\nabc", "abc"),
        (b"content-length: 0\r\n\r\n", ""),
    ],
)
async def test_bodies(server: Server, http: httpx2.AsyncClient, answer: bytes, text: str) -> None:
    server.answer = Server.says(HEAD + answer)
    assert (await get(http, server)).text == text
    assert (await get(http, server)).text == text
    assert server.connections == 1


async def test_a_body_without_length_ends_with_the_connection(
    server: Server, http: httpx2.AsyncClient
) -> None:
    server.answer = Server.says(HEAD + b"\r\n", b"all of it", close=True)
    assert (await get(http, server)).text == "all of it"
    assert (await get(http, server)).text == "all of it"
    assert server.connections == 2


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"<html>",
        b"HTTP/2 200 OK\r\n\r\n",
        HEAD + b"no colon\r\n\r\n",
        HEAD + b"content-length: 2x\r\n\r\nab",
        HEAD + b"content-length: 2\r\ncontent-length: 3\r\n\r\nabc",
        HEAD + b"content-length: 3\r\n\r\nab",
        HEAD + b"transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        HEAD + b"transfer-encoding: chunked\r\n\r\n-1\r\n",
        HEAD + b"transfer-encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n",
        HEAD + b"transfer-encoding: chunked\r\n\r\n2\r\nab\r\n",
        HEAD + b"transfer-encoding: chunked\r\n\r\n" + b"0" * (MAX_LINE + 1),
        HEAD + b"x: " + b"y" * 100_000,
        b"HTTP/1.1 100 Continue\r\n\r\n" * 1000 + HEAD + b"content-length: 0\r\n\r\n",
        HEAD + b"transfer-encoding: chunked\r\n\r\n0\r\n" + b"x: y\r\n" * 100_000 + b"\r\n",
    ],
)
async def test_what_is_not_http_is_refused(
    server: Server, http: httpx2.AsyncClient, answer: bytes
) -> None:
    server.answer = Server.says(answer, close=True)
    with pytest.raises((httpx2.RemoteProtocolError, httpx2.ReadError)):
        await get(http, server)


async def test_what_comes_while_the_last_piece_is_looked_at_is_not_waited_for(
    server: Server, http: httpx2.AsyncClient
) -> None:
    """Breaks when: the body waits for more bytes without a look at those that have come."""
    looked = asyncio.Event()

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + b"transfer-encoding: chunked\r\n\r\n1\r\na\r\n")
        await looked.wait()
        writer.write(b"1\r\nb\r\n1\r\nc\r\n0\r\n\r\n")

    server.answer = answer
    async with http.stream("GET", server.address) as response:
        pieces = response.aiter_bytes()
        assert await anext(pieces) == b"a"
        looked.set()
        # The rest arrives while nobody reads: a second exchange shows that it has.
        server.answer = Server.says(HEAD + b"content-length: 2\r\n\r\nok")
        assert (await get(http, server)).text == "ok"
        async with asyncio.timeout(5):
            assert [piece async for piece in pieces] == [b"bc"]


async def test_a_reply_that_is_left_closes_its_connection(
    server: Server, http: httpx2.AsyncClient
) -> None:
    server.answer = Server.says(HEAD + b"transfer-encoding: chunked\r\n\r\n1\r\na\r\n")
    for _ in range(5):
        async with http.stream("GET", server.address) as response:
            assert await anext(response.aiter_bytes()) == b"a"
    assert server.connections == 5


async def test_too_many_connections_are_refused(server: Server, http: httpx2.AsyncClient) -> None:
    came: asyncio.Queue[bool] = asyncio.Queue()

    async def silence(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        came.put_nowait(True)
        await reader.read()

    server.answer = silence
    waiting = [asyncio.create_task(get(http, server)) for _ in range(3)]
    for _ in waiting:
        await came.get()
    with pytest.raises(httpx2.PoolTimeout):
        await get(http, server)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


async def test_who_asked_may_go_away_while_a_connection_is_made(
    server: Server, http: httpx2.AsyncClient
) -> None:
    """At each step of it in turn: no socket stays open, and none is counted as in use.

    Breaks when: asyncio is cancelled while it connects, or what came late is not closed.
    """
    server.answer = Server.says(HEAD + b"connection: close\r\ncontent-length: 2\r\n\r\nok")
    for steps in range(20):
        asking = asyncio.create_task(get(http, server))
        for _ in range(steps):
            await asyncio.sleep(0)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        async with asyncio.timeout(5):
            while True:
                try:
                    assert (await get(http, server)).text == "ok"
                    break
                except httpx2.PoolTimeout:
                    await asyncio.sleep(0)


async def test_a_header_that_would_break_the_request_is_not_sent(
    server: Server, http: httpx2.AsyncClient
) -> None:
    for value in ("key\r\nx: y", "key ", "k\0y"):
        with pytest.raises(httpx2.LocalProtocolError):
            await http.get(server.address, headers={"Authorization": value})
    assert not server.requests


async def test_nobody_there(http: httpx2.AsyncClient) -> None:
    listening = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    listening.close()
    await listening.wait_closed()
    with pytest.raises(httpx2.ConnectError):
        await http.get(f"http://127.0.0.1:{port}/")
    with pytest.raises(httpx2.UnsupportedProtocol):
        await http.get("ftp://127.0.0.1/")


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=8), st.integers(1, 7))
def test_chunks_may_come_in_any_pieces(chunks: list[bytes], step: int) -> None:
    wire = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\nnext"
    decoder, buffer, body = ChunkDecoder(), bytearray(), b""
    for start in range(0, len(wire), step):
        buffer += wire[start : start + step]
        body += decoder.take(buffer)
    assert (body, decoder.done, bytes(buffer)) == (b"".join(chunks), True, b"next")
