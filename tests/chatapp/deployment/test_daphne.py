"""The real product as a process: it starts, says where it is, and ends in order."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from chatapp.deployment import daphne as serving
from tests.benchmarks._processes import resident_bytes
from tests.faults.following import cookies_of
from tests.json_client import JsonClient
from tests.ports import free_port
from tests.servers import ROOT, RunningServer, ServerDied, manage, start_server, status_of

Serve = Callable[..., RunningServer]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """One server for the tests that leave it as it was."""
    server = start_server(tmp_path_factory.mktemp("server"))
    yield server
    server.kill()


def test_it_works(serve: Serve, tmp_path: Path) -> None:
    """Its first start, from nothing.

    Breaks when: ``serve`` leaves the tables or the owner to other commands.
    """
    assert list(tmp_path.iterdir()) == []
    server = serve(fresh=True)
    assert server.signin_link.startswith(f"{server.base_url}/accounts/link/")
    assert status_of(f"{server.base_url}/healthz") == 200
    assert server.terminate() == 0
    assert "Traceback" not in server.log


def test_the_link_shows_a_page(shared: RunningServer) -> None:
    assert status_of(shared.signin_link) == 200
    used = shared.signin_link.replace("/accounts/link/", "/accounts/link/x")
    assert status_of(used) == 410


def test_a_second_start_finds_the_owner(serve: Serve) -> None:
    """Breaks when: the first one makes another owner, or keeps what its migrations took."""
    first = serve(fresh=True)
    taken = resident_bytes(first.process.pid)
    first.kill()
    second = serve(port=first.port)
    assert taken < 1.1 * resident_bytes(second.process.pid)
    assert status_of(second.signin_link) == 200
    assert "already" in manage(second, "ensure_owner")


def test_a_second_process_beside_the_first(serve: Serve) -> None:
    first = serve()
    second = serve(prepare=False)
    assert second.signin_link == ""
    assert status_of(f"{second.base_url}/healthz") == 200
    assert status_of(f"{first.base_url}/healthz") == 200


def test_a_taken_port_is_one_sentence(serve: Serve, tmp_path: Path) -> None:
    first = serve()
    with pytest.raises(ServerDied) as died:
        serve(port=first.port)
    said = str(died.value).splitlines()
    assert said[1:] == [
        f"CommandError: Port {first.port} on 127.0.0.1 is in use: "
        "stop the other program or choose another PORT."
    ]


@pytest.mark.parametrize("arguments", [["--host", "nowhere.invalid"], ["--port", "70000"]])
def test_an_impossible_address_is_one_sentence(shared: RunningServer, arguments: list[str]) -> None:
    with pytest.raises(subprocess.CalledProcessError) as failed:
        manage(shared, "serve", *arguments)
    assert failed.value.returncode == 1
    assert failed.value.stderr.startswith("CommandError: Cannot listen on ")
    assert failed.value.stderr.count("\n") == 1


def test_a_free_port_is_chosen_and_told() -> None:
    with serving.listen("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(serving.PortInUse):
            serving.listen("127.0.0.1", port)


async def test_i26_a_message_that_is_too_large_closes_the_socket(shared: RunningServer) -> None:
    """I26: nobody makes the process hold more than a megabyte of one message.

    Breaks when: WEBSOCKET_MAX_SIZE is raised.
    """
    person = JsonClient(shared.base_url)
    # A link of its own: the one that was printed is another test's.
    await person.sign_in(manage(shared, "signin_link").strip())
    await person.create()
    cookies = "; ".join(f"{name}={value}" for name, value in cookies_of(person))
    url = f"{shared.websocket_url}/ws/c/{person.code}/?format=json"
    async with connect(
        url,
        origin=shared.origin,  # type: ignore[arg-type]
        additional_headers={"Cookie": cookies},
        max_size=None,
    ) as socket:
        assert json.loads(await socket.recv())["type"] == "state"
        # As large as may be: it is read, and answered.
        await socket.send("x" * 1024 * 1024)
        assert json.loads(await socket.recv())["type"] == "error"
        with suppress(ConnectionClosed):  # it may be cut off while it is still sending
            await socket.send("x" * (1024 * 1024 + 1))
        with pytest.raises(ConnectionClosed):
            await asyncio.wait_for(socket.recv(), 10)
    await person.close()
    assert status_of(f"{shared.base_url}/healthz") == 200


def test_half_a_request_keeps_nobody_waiting(shared: RunningServer) -> None:
    slow = http.client.HTTPConnection("127.0.0.1", shared.port, timeout=10)
    slow.connect()
    slow.sock.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n")
    assert status_of(f"{shared.base_url}/healthz") == 200
    slow.close()


def test_without_its_own_values_it_refuses_to_start(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "serve", "--port", str(free_port())],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert "SECRET_KEY is not set" in done.stderr
