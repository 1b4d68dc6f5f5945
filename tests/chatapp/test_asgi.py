"""The entrances of the real server: who is let in over a socket, and what every answer carries."""

from __future__ import annotations

import asyncio
import http.client
import json
import random
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.json_client import JsonClient
from tests.servers import RunningServer, manage, start_server, status_of

NOBODY = "00000000-0000-4000-8000-000000000000"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """One server for all tests here; none of them may leave a traceback in its log."""
    server = start_server(tmp_path_factory.mktemp("asgi"))
    yield server
    server.kill()


async def signed_in(server: RunningServer) -> JsonClient:
    """The owner, by a new link."""
    client = JsonClient(server.base_url)
    printed = manage(server, "signin_link").split()
    await client.sign_in(next(word for word in printed if word.startswith("http")))
    await client.create()
    return client


def cookies_of(client: JsonClient) -> dict[str, str]:
    jar = client._http.cookie_jar
    return {"Cookie": "; ".join(f"{cookie.key}={cookie.value}" for cookie in jar)}


def socket_of(
    server: RunningServer, code: str, headers: dict[str, str] | None = None, **options: Any
) -> connect:
    """A websocket with the right Origin unless another is given."""
    return connect(
        f"{server.websocket_url}/ws/c/{code}/?format=json",
        origin=options.pop("origin", server.origin),
        additional_headers=headers or {},
        **options,
    )


async def closed_with(connection: ClientConnection) -> int:
    await asyncio.wait_for(connection.wait_closed(), 10)
    assert connection.close_code is not None
    return connection.close_code


ORIGINS = {
    "missing": None,
    "null": "null",
    "other scheme": "https://127.0.0.1:{port}",
    "other port": "http://127.0.0.1:1",
    "no port": "http://127.0.0.1",
    "other host": "http://localhost:{port}",
    "below": "http://sub.127.0.0.1:{port}",
    "longer host": "http://127.0.0.1.evil.example:{port}",
    "user": "http://user@127.0.0.1:{port}",
    "path": "http://127.0.0.1:{port}/c/",
    "websocket": "ws://127.0.0.1:{port}",
}


@pytest.mark.parametrize("name", ORIGINS)
async def test_i21_only_our_own_origin_is_let_in(shared: RunningServer, name: str) -> None:
    """I21, W01: refused with 403 before any code of ours looks at it, and nothing in the log.

    Breaks when: ``same_origin`` compares hosts only, or lets a missing Origin in.
    """
    origin: Any = ORIGINS[name]
    if origin is not None:
        origin = origin.format(port=shared.port)
    with pytest.raises(InvalidStatus) as refused:
        async with socket_of(shared, NOBODY, origin=origin):
            raise AssertionError("it was let in")
    assert refused.value.response.status_code == 403
    # A refused handshake is a status line: there is nothing to frame, to sniff or to cache.
    assert not refused.value.response.body
    assert "Traceback" not in shared.log


@pytest.mark.parametrize(
    "lines",
    [
        ["Origin: http://[::1"],
        ["Origin: *"],
        ["Origin: {origin}.evil.example"],
        ["Origin: {origin} http://evil.example"],
        ["Origin: {origin}", "Origin: http://evil.example"],
        ["Origin: http://evil.example", "Origin: {origin}"],
        ["X: a\x0bOrigin: {origin}"],
        ["Origin: {origin}\x00"],
        ["Origin: \xff\xfe"],
    ],
)
def test_w01_w02_a_handshake_that_is_malformed(shared: RunningServer, lines: list[str]) -> None:
    """W01, W02: never upgraded, no traceback, and the next one is served."""
    connection = http.client.HTTPConnection("127.0.0.1", shared.port, timeout=10)
    connection.connect()
    head = [
        f"GET /ws/c/{NOBODY}/ HTTP/1.1",
        f"Host: 127.0.0.1:{shared.port}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version: 13",
        *(line.format(origin=shared.origin) for line in lines),
    ]
    connection.sock.sendall("\r\n".join([*head, "", ""]).encode("latin-1"))
    answer = connection.sock.recv(4096)
    connection.close()
    assert answer.split(b" ")[1] in {b"400", b"403"}, answer
    assert "Traceback" not in shared.log
    assert status_of(f"{shared.base_url}/healthz") == 200


@pytest.mark.parametrize("cookie", ["", "sessionid=nonsense", "sessionid=" + "x" * 4000])
@pytest.mark.parametrize("code", [NOBODY, "nonsense", "%C3%A9", "a b", "x" * 120, "a/b", "."])
async def test_w03_who_is_not_signed_in_is_told_so(
    shared: RunningServer, cookie: str, code: str
) -> None:
    """W03, W12: accepted, then 4401, the same for every code; no group is named by an address."""
    async with socket_of(shared, code.replace(" ", "%20"), {"Cookie": cookie}) as connection:
        assert await closed_with(connection) == 4401
    assert "Traceback" not in shared.log


async def test_a_code_that_is_not_ones_own_is_4404(shared: RunningServer) -> None:
    client = await signed_in(shared)
    for code in (NOBODY, "nonsense", client.code.upper(), "%00", "a/b", client.code + "/x"):
        async with socket_of(shared, code, cookies_of(client)) as connection:
            assert await closed_with(connection) == 4404
    async with socket_of(shared, client.code, cookies_of(client)) as connection:
        assert json.loads(await connection.recv())["type"] == "state"
    await client.close()
    assert "Traceback" not in shared.log


FRAMES: list[str | bytes] = [
    "{",
    "",
    b"\x00\xff",
    b"",
    "[]",
    "null",
    "5",
    '"x"',
    "NaN",
    '{"a":1,"a":2}',
    "9" * 5000,
    "[" * 200_000,
    '{"type": "\\ud800"}',
    '{"type": "send", "text": "Hello"}',
    '{"type": "websocket_disconnect"}',
    '{"type": "websocket.close"}',
    '{"type": "_follow"}',
    '{"type": "compact", "code": "' + NOBODY + '"}',
]


async def test_i24_w04_w05_whatever_is_sent_is_answered_and_dispatched_nowhere(
    shared: RunningServer,
) -> None:
    """I24, A06, W04, W05: a typed error for each frame, and the conversation is as it was.

    Breaks when: ``receive`` decodes what it gets, or calls anything by its name.
    """
    client = await signed_in(shared)
    before = await client.get()
    async with socket_of(shared, client.code, cookies_of(client)) as connection:
        assert json.loads(await connection.recv())["type"] == "state"
        for frame in FRAMES:
            await connection.send(frame)
            event = json.loads(await asyncio.wait_for(connection.recv(), 10))
            assert event["type"] == "error", frame
            assert event["error"]["code"] in {"invalid_input", "rate_limited"}
            assert set(event) == {"type", "event_no", "at", "error"}
    assert await client.get() == before
    await client.close()
    assert "Traceback" not in shared.log


async def test_i24_bytes_that_are_no_frames_close_the_socket(shared: RunningServer) -> None:
    """I24: half frames, reserved bits, text that is not UTF-8: closed, others go on."""
    client = await signed_in(shared)
    rng = random.Random(24)
    garbage = [
        b"\x81\x82\x00\x00\x00\x00\xff\xfe",
        b"\xf1\x80\x00\x00\x00\x00",
        b"\x81\x05hello",
        *(rng.randbytes(rng.randrange(1, 200)) for _ in range(10)),
    ]
    async with socket_of(shared, client.code, cookies_of(client)) as other:
        assert json.loads(await other.recv())["type"] == "state"
        for piece in garbage:
            connection = await socket_of(shared, client.code, cookies_of(client))
            connection.transport.write(piece)
            with suppress(OSError):
                # The server may have gone already, which is what is wanted.
                connection.transport.write_eof()
            await asyncio.wait_for(connection.wait_closed(), 10)
            connection.transport.abort()
        await other.send("still there?")
        assert json.loads(await asyncio.wait_for(other.recv(), 10))["type"] == "error"
    await client.close()
    assert "Traceback" not in shared.log


async def _until_closed(connection: ClientConnection) -> list[dict[str, Any]]:
    """All events that still come."""
    events = []
    with suppress(ConnectionClosed):
        while True:
            events.append(json.loads(await asyncio.wait_for(connection.recv(), 10)))
    return events


async def test_w06_a_thousand_frames_close_the_socket(shared: RunningServer) -> None:
    """W06: some are answered, the last of these says wait, and then 1008; the reply goes on.

    Breaks when: ``FRAMES_ANSWERED`` is not looked at.
    """
    client = await signed_in(shared)
    async with socket_of(shared, client.code, cookies_of(client)) as connection:
        turn = (await client.send("Hello"))["turn"]
        # Who does not listen meanwhile may miss the close.
        listening = asyncio.create_task(_until_closed(connection))
        with suppress(ConnectionClosed):
            for _ in range(1000):
                await connection.send("x")
        events = await listening
        assert await closed_with(connection) == 1008
    errors = [event["error"] for event in events if event["type"] == "error"]
    assert len(errors) == 20
    assert errors[-1]["code"] == "rate_limited"
    assert errors[-1]["retry_after"] > 0
    async with asyncio.timeout(60):
        while (ended := await client.get(f"turns/{turn}/"))["finished_at"] is None:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    assert ended["status"] == "complete"
    await client.close()
    assert "Traceback" not in shared.log


async def test_w08_sockets_of_one_person_are_bounded(shared: RunningServer) -> None:
    """W08: the newest above twenty is refused clearly; when one goes there is room again.

    Breaks when: ``_open_sockets`` is not counted down in ``disconnect``.
    """
    client = await signed_in(shared)

    async def another() -> ClientConnection:
        return await socket_of(shared, client.code, cookies_of(client))

    connections = [await another() for _ in range(20)]
    for connection in connections:
        assert json.loads(await connection.recv())["type"] == "state"
    assert await closed_with(await another()) == 4429
    await connections.pop().close()
    async with asyncio.timeout(10):
        while True:
            connection = await another()
            try:
                assert json.loads(await connection.recv())["type"] == "state"
                break
            except ConnectionClosed:
                continue  # the server has not heard yet of the one that went
    for one in (connection, *connections):
        await one.close()
    await client.close()
    assert "Traceback" not in shared.log


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/", 302),
        ("/accounts/login/", 200),
        ("/admin/", 302),
        ("/nowhere/", 404),
        (f"/c/{NOBODY}/", 302),
        ("/healthz", 200),
        ("/readyz", 200),
        ("/static/nowhere.css", 404),
        ("/static/../chatapp/settings.py", 404),
    ],
)
def test_i23_every_answer_carries_its_headers(
    shared: RunningServer, path: str, status: int
) -> None:
    """I23, A13, S02, with whatever lies between Django and the wire.

    Breaks when: a middleware is taken out, or the ASGI router answers by itself without headers.
    """
    connection = http.client.HTTPConnection("127.0.0.1", shared.port, timeout=10)
    connection.request("GET", path)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    assert answer.status == status
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "no-store" in answer.headers["Cache-Control"]
    assert answer.headers["Referrer-Policy"] == "same-origin"


def test_a_host_that_is_not_served_is_400(shared: RunningServer) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", shared.port, timeout=10)
    connection.request(
        "GET", "/accounts/login/", headers={"Host": "evil.example", "Accept": "application/json"}
    )
    answer = connection.getresponse()
    assert answer.status == 400
    assert json.loads(answer.read())["error"]["code"] == "bad_request"
    assert "no-store" in answer.headers["Cache-Control"]
    connection.close()
