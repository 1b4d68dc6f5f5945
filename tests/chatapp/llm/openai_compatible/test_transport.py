"""Connections to servers that send bytes of every kind, over real sockets."""

from __future__ import annotations

import asyncio
import datetime
import ipaddress
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given, settings
from hypothesis import strategies as st

from chatapp.llm.openai_compatible.transport import MAX_FRAMING, MAX_HEADER, AiohttpTransport

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
HEAD = b"HTTP/1.1 200 OK\r\n"
OK = HEAD + b"content-length: 2\r\n\r\nok"
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n"


class Server:
    """Answers each request with the bytes that a test gives; counts connections."""

    def __init__(self) -> None:
        self.address = ""
        self.connections = 0
        self.requests: list[bytes] = []
        self.answer: Answer = self.says(OK)

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
            with suppress(ConnectionError):
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
async def secure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Server]:
    """A server with a certificate that the HTTP library is told to trust."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path / "certificate.pem"
    file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(file)
    made = Server()
    listening = await asyncio.start_server(made.serve, "127.0.0.1", 0, ssl=context)
    made.address = f"https://127.0.0.1:{listening.sockets[0].getsockname()[1]}/"
    yield made
    listening.close()


class AiohttpClient(httpx2.AsyncClient):
    def __init__(self) -> None:
        super().__init__(transport=AiohttpTransport(most=3, keepalive=30.0), timeout=5.0)


@pytest.fixture
async def http() -> AsyncIterator[httpx2.AsyncClient]:
    async with AiohttpClient() as client:
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
        CHUNKED + b"-1\r\n",
        CHUNKED + b"2\r\nabc\r\n0\r\n\r\n",
        CHUNKED + b"2\r\nab\r\n",
        CHUNKED + b"0" * 5000,
        HEAD + b"x: " + b"y" * (MAX_HEADER + 1) + b"\r\ncontent-length: 0\r\n\r\n",
        HEAD + b"x: y\r\n" * 1000 + b"content-length: 0\r\n\r\n",
        HEAD + b"x: a\x01b\r\ncontent-length: 0\r\n\r\n",
        HEAD + b"content-length: 0\r\ntransfer-encoding: gzip\r\n\r\n",
        b"HTTP/1.1 200 " + b"x" * (MAX_HEADER + 1) + b"\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 1000 + HEAD + b"content-length: 0\r\n\r\n",
        CHUNKED + b"0\r\n" + b"x: y\r\n" * 100_000 + b"\r\n",
    ],
)
async def test_what_is_not_http_is_refused(
    server: Server, http: httpx2.AsyncClient, answer: bytes
) -> None:
    server.answer = Server.says(answer, close=True)
    with pytest.raises((httpx2.RemoteProtocolError, httpx2.ReadError)):
        await get(http, server)


@pytest.mark.parametrize("answer", [b"zz\r\n", b"1\r\nabc\r\n", b"0\r\n" + b"x: y\r\n" * 1000])
async def test_whoever_reads_learns_at_once_that_the_rest_is_nonsense(
    server: Server, http: httpx2.AsyncClient, answer: bytes
) -> None:
    """The server keeps the connection open, and aiohttp tells only those who wait for a head.

    Breaks when: ``_Connection.set_exception`` does not tell the reader.
    """
    read = asyncio.Event()

    async def answered(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(CHUNKED + b"1\r\na\r\n")
        await read.wait()
        writer.write(answer)

    server.answer = answered
    async with http.stream("GET", server.address) as response:
        pieces = response.aiter_bytes()
        assert await anext(pieces) == b"a"
        read.set()
        async with asyncio.timeout(5):
            with pytest.raises(httpx2.ReadError):
                [piece async for piece in pieces]


@pytest.mark.parametrize("nonsense", [b"", b"zz\r\n"])
async def test_what_came_before_a_break_is_read(
    server: Server, http: httpx2.AsyncClient, nonsense: bytes
) -> None:
    """A reply is read at the pace at which it is shown, so that much waits when it breaks.

    Breaks when: the body stops at the first exception, as aiohttp does, without a look at what
    waits to be read.
    """
    read = asyncio.Event()

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(CHUNKED + b"1\r\na\r\n")
        await read.wait()
        writer.write(b"5\r\nlater\r\n" + nonsense)
        writer.close()

    server.answer = answer
    async with http.stream("GET", server.address) as response:
        pieces = response.aiter_bytes()
        assert await anext(pieces) == b"a"
        read.set()
        # All has arrived when another exchange has ended after it.
        server.answer = Server.says(OK)
        for _ in range(3):
            assert (await get(http, server)).text == "ok"
        assert await anext(pieces) == b"later"
        with pytest.raises(httpx2.ReadError):
            await anext(pieces)


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_closing_the_client_ends_what_is_being_read(
    server: Server, secure: Server, http: httpx2.AsyncClient, scheme: str
) -> None:
    """Breaks when: ``_Connection.abort`` does not tell the reader, who then waits for ever."""
    asked = server if scheme == "http" else secure
    asked.answer = Server.says(CHUNKED + b"1\r\na\r\n")
    async with http.stream("GET", asked.address) as response:
        pieces = response.aiter_bytes()
        assert await anext(pieces) == b"a"
        reading = asyncio.create_task(anext(pieces))
        await asyncio.sleep(0)
        await http.aclose()
        async with asyncio.timeout(5):
            with pytest.raises(httpx2.ReadError):
                await reading


@pytest.mark.parametrize("at_once", [True, False])
async def test_an_answer_that_nobody_asked_for_is_nobodys(
    server: Server, http: httpx2.AsyncClient, at_once: bool
) -> None:
    """The next request would get it: one person's reply on another's screen.

    It comes with the end of an answer, or after that.

    Breaks when: ``_Connection.feed_data`` takes a head that no request waits for.
    """
    unasked = HEAD + b"content-length: 5\r\n\r\nstale"
    go_on, read = asyncio.Event(), asyncio.Event()

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD + b"content-length: 2\r\n\r\no")
        await go_on.wait()
        writer.write(b"k" + unasked if at_once else b"k")
        await read.wait()
        writer.write(b"" if at_once else unasked)

    server.answer = answer
    async with http.stream("GET", server.address) as response:
        go_on.set()
        assert await response.aread() == b"ok"
    read.set()
    server.answer = Server.says(OK)
    async with AiohttpClient() as other:
        # After these, what was sent before them has come.
        for _ in range(3):
            assert (await get(other, server)).text == "ok"
    assert (await get(http, server)).text == "ok"
    assert server.connections == 3


async def test_announcements_without_end_are_not_taken_in(
    server: Server, http: httpx2.AsyncClient
) -> None:
    """Breaks when: ``_Connection.feed_data`` takes any number of heads."""

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while not writer.is_closing():
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)
            await writer.drain()

    server.answer = answer
    async with asyncio.timeout(5):
        with pytest.raises(httpx2.ReadError):
            await get(http, server)


async def test_a_chunk_that_never_begins_ends_the_connection(
    server: Server, http: httpx2.AsyncClient
) -> None:
    """Its first line may hold anything behind the size, and aiohttp reads on and on.

    Breaks when: ``_Connection.data_received`` counts nothing.
    """

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(CHUNKED + b"1;")
        while not writer.is_closing():
            writer.write(b"x" * 100_000)
            await writer.drain()

    server.answer = answer
    async with asyncio.timeout(5):
        with pytest.raises(httpx2.ReadError):
            await get(http, server)


async def test_many_small_chunks_are_a_body(server: Server, http: httpx2.AsyncClient) -> None:
    """Breaks when: what surrounds a chunk is not weighed against the size of the body."""
    count = MAX_FRAMING // 4
    server.answer = Server.says(CHUNKED + b"1\r\na\r\n" * count + b"0\r\n\r\n")
    assert (await get(http, server)).content == b"a" * count


async def test_leaving_while_the_request_is_sent_drops_the_rest_of_it(
    http: httpx2.AsyncClient,
) -> None:
    """Breaks when: ``_Connection.close`` lets what waits go out first, as aiohttp does."""
    came: asyncio.Queue[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.Queue()
    server = await asyncio.start_server(lambda *both: came.put_nowait(both), "127.0.0.1", 0)
    async with server:
        address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        sending = asyncio.create_task(http.post(address, content=bytes(50_000_000)))
        reader, writer = await came.get()
        size = len(await reader.read(1))
        # A reader that does not read makes the network wait, and the rest stay with who sends it.
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        async with asyncio.timeout(5):
            with suppress(ConnectionError):
                while piece := await reader.read(2**20):
                    size += len(piece)
        writer.close()
    assert size < 50_000_000


async def test_the_request_goes_out_as_it_was_given(
    server: Server, http: httpx2.AsyncClient
) -> None:
    """However long; aiohttp warns of long ones, and has headers of its own.

    Breaks when: ``skip_auto_headers`` goes, or the body is given to aiohttp as bytes.
    """
    taken: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        taken.append(await reader.readexactly(3_000_000))
        writer.write(OK)

    server.answer = answer
    given = {"User-Agent": "x", "Accept": "y", "Accept-Encoding": "identity"}
    address = f"{server.address}a%2Fb?c=%2B+d"
    await http.post(address, content=b"b" * 3_000_000, headers=given)
    assert taken == [b"b" * 3_000_000]
    first, *lines = server.requests[0].decode().split("\r\n")
    assert first == "POST /a%2Fb?c=%2B+d HTTP/1.1"
    sent = dict(line.split(": ") for line in lines if line)
    assert sent.pop("Host") in server.address
    assert sent == given | {"Connection": "keep-alive", "Content-Length": "3000000"}


async def test_a_certificate_decides_and_its_connection_is_kept(
    secure: Server, http: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Breaks when: connections are made without the HTTP library's certificates."""
    for _ in range(2):
        assert (await get(http, secure)).text == "ok"
    assert secure.connections == 1
    monkeypatch.delenv("SSL_CERT_FILE")
    async with AiohttpClient() as other:
        with pytest.raises(httpx2.ConnectError) as caught:
            await get(other, secure)
    assert isinstance(caught.value.__cause__, ssl.SSLError)


async def test_what_comes_while_the_last_piece_is_looked_at_is_not_waited_for(
    server: Server, http: httpx2.AsyncClient
) -> None:
    """Breaks when: the body waits for more bytes without a look at those that have come."""
    looked = asyncio.Event()

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(CHUNKED + b"1\r\na\r\n")
        await looked.wait()
        writer.write(b"1\r\nb\r\n1\r\nc\r\n0\r\n\r\n")

    server.answer = answer
    async with http.stream("GET", server.address) as response:
        pieces = response.aiter_bytes()
        assert await anext(pieces) == b"a"
        looked.set()
        # The rest arrives while nobody reads: a second exchange shows that it has.
        server.answer = Server.says(OK)
        assert (await get(http, server)).text == "ok"
        async with asyncio.timeout(5):
            assert [piece async for piece in pieces] == [b"bc"]


async def test_a_reply_that_is_left_closes_its_connection(
    server: Server, http: httpx2.AsyncClient
) -> None:
    server.answer = Server.says(CHUNKED + b"1\r\na\r\n")
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


@settings(max_examples=50)
@given(st.lists(st.binary(min_size=1, max_size=40), max_size=8), st.integers(1, 7))
def test_a_body_may_come_in_any_pieces(chunks: list[bytes], step: int) -> None:
    framed = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
    wire = CHUNKED + framed + b"0\r\n\r\n"

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for start in range(0, len(wire), step):
            writer.write(wire[start : start + step])
            # So that it is read by itself.
            await asyncio.sleep(0)

    async def body() -> bytes:
        server = Server()
        server.answer = answer
        listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
        server.address = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/"
        async with listening, AiohttpClient() as http:
            whole = [(await get(http, server)).content for _ in range(2)]
        assert server.connections == 1
        return b"".join(whole)

    assert asyncio.run(body()) == b"".join(chunks) * 2
