"""The SDK's client against a real server in a process of its own, and all that can go wrong."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
import pytest_asyncio

from chatapp.conversations.tools.servers import ServerAccess
from chatapp.tools.mcp import client
from chatapp.tools.mcp.client import MOST_WORDS, open_session
from chatapp.tools.mcp.connection import UNKNOWN, Connection, ConnectionBroken
from chatapp.tools.mcp.results import MOST_CHARACTERS
from chatapp.tools.sealing import seal
from compression.exceptions import ToolFailed
from tests.chatapp.tools.mcp.serving import Server
from tests.servers import ROOT

PATIENCE = 20


@pytest_asyncio.fixture
async def connection(server: Server) -> AsyncIterator[Connection]:
    made = Connection(partial(open_session, server.access()))
    yield made
    async with asyncio.timeout(PATIENCE):
        await made.aclose()


async def call(connection: Connection, name: str, **arguments: Any) -> str:
    async with asyncio.timeout(PATIENCE):
        return await connection.run(lambda session: session.call(name, arguments))


async def listing(connection: Connection) -> dict[str, str]:
    async with asyncio.timeout(PATIENCE):
        return await connection.run(lambda session: session.listing())


async def test_it_works(server: Server, connection: Connection) -> None:
    listed = await listing(connection)
    assert {"echo", "write", "hang"} <= listed.keys()
    # To the letter, as the server sent it: its own fields and none of the SDK's.
    assert '"description":"Write a text."' in listed["write"]
    assert '"readOnlyHint":true' in listed["echo"]
    assert await call(connection, "echo", text="Hallå") == "Hallå"
    headers = server.control()["asked"][-1]["headers"]
    assert headers["x-key"] == "sesame"


async def test_what_a_tool_fails_with_is_a_sentence(connection: Connection) -> None:
    with pytest.raises(ToolFailed, match="It did not work here"):
        await call(connection, "fail")
    with pytest.raises(ToolFailed):
        await call(connection, "nothing")
    with pytest.raises(ToolFailed):
        await call(connection, "echo", wrong=1)
    assert await call(connection, "echo", text="still") == "still"


async def test_t04_binary_and_much(connection: Connection) -> None:
    """T04."""
    shown = await call(connection, "binary")
    assert shown == "[image: image/png, about 10,242 bytes, not shown]\na picture"
    much = await call(connection, "big", megabytes=1)
    assert len(much) < MOST_CHARACTERS + 100
    with pytest.raises((ToolFailed, ConnectionBroken)):
        await call(connection, "big", megabytes=10)
    assert await call(connection, "echo", text="still") == "still"


async def test_a_schema_of_results_is_not_run(server: Server, connection: Connection) -> None:
    """Nobody approved it, and a pattern of it could keep the whole process busy for years.

    Breaks when: calls go through the SDK's ``call_tool``.
    """
    server.control(fault="pattern", method="tools/list", always=True)
    server.control(fault="structured", method="tools/call")
    assert "pattern" in (await listing(connection))["echo"]
    assert await call(connection, "echo", text="a") == "ran"
    assert server.asked.count("tools/list") == 1


async def test_a_call_that_ran_is_not_reported_as_refused(
    server: Server, connection: Connection
) -> None:
    """Breaks when: something is asked of the server after the call."""
    server.control(fault="500", method="tools/list", always=True)
    assert await call(connection, "write", text="a") == "written"
    assert server.control()["written"] == ["a"]


@pytest.mark.parametrize("fault", ["500", "html", "garbage", "words"])
async def test_after_an_error_nobody_knows_what_ran(
    server: Server, connection: Connection, fault: str
) -> None:
    """Breaks when: an error of a proxy, say, is told as a refusal."""
    server.control(fault=fault, method="tools/call")
    with pytest.raises(ToolFailed) as caught:
        await call(connection, "write", text="a")
    assert caught.value.message.endswith(UNKNOWN)
    assert len(caught.value.message) < MOST_WORDS + 200


@pytest.mark.parametrize("megabytes", [1, 10])
async def test_t04_a_failure_at_length(connection: Connection, megabytes: int) -> None:
    """T04.

    Breaks when: a server's words about a failure are passed on whole.
    """
    with pytest.raises((ToolFailed, ConnectionBroken)) as caught:
        await call(connection, "fail_at_length", megabytes=megabytes)
    assert 0 < len(str(caught.value)) < MOST_WORDS + 200
    assert await call(connection, "echo", text="still") == "still"


async def test_arguments_that_the_server_wants_as_headers_too(
    server: Server, connection: Connection
) -> None:
    """Breaks when: the SDK never sees a listing, from which it learns which ones these are."""
    server.control(fault="mismatch", method="tools/call")
    assert await call(connection, "echo", text="a") == "a"
    assert server.asked[-3:] == ["tools/call", "tools/list", "tools/call"]


@pytest.mark.parametrize(
    ("fault", "sentence"), [("wide", "the tool wide with more than"), ("name", "a name of more")]
)
async def test_definitions_that_are_too_long_are_not_taken(
    server: Server, connection: Connection, fault: str, sentence: str
) -> None:
    """Breaks when: they are stored, where one database takes a long name and the other does not."""
    server.control(fault=fault, method="tools/list")
    with pytest.raises(ToolFailed, match=sentence):
        await listing(connection)


FAULTS = ("500", "502", "401", "html", "garbage", "redirect", "long", "cut", "flood")


@pytest.mark.parametrize(
    ("method", "fault"),
    [
        *(("tools/call", fault) for fault in FAULTS),
        *((method, fault) for method in ("tools/list", "initialize") for fault in FAULTS[::4]),
    ],
)
async def test_t04_whatever_comes_instead_of_an_answer(
    server: Server, connection: Connection, fault: str, method: str
) -> None:
    """T04: it is an error with a sentence, and the next call works.

    Breaks when: bodies are not bounded, or a redirect is followed.
    """
    if method == "initialize":
        server.control(fault=fault, method="server/discover", always=True)
        server.control(fault=fault, method=method, always=True)
    else:
        assert await call(connection, "echo", text="before") == "before"
        server.control(fault=fault, method=method)
    work = listing(connection) if method == "tools/list" else call(connection, "echo", text="x")
    with pytest.raises((ToolFailed, ConnectionBroken)) as caught:
        await work
    assert str(caught.value).strip()
    assert {one["path"] for one in server.control()["asked"]} == {"/mcp"}
    server.control(reset=True)
    assert await call(connection, "echo", text="after") == "after"


async def test_a_schema_that_is_none(server: Server, connection: Connection) -> None:
    assert await listing(connection)
    server.control(fault="schema", method="tools/list")
    with pytest.raises(ToolFailed, match="not valid"):
        await listing(connection)
    assert await listing(connection)


async def test_a_server_that_is_killed_and_comes_back(
    server: Server, connection: Connection
) -> None:
    """Breaks when: a broken connection is used again, or ends who called."""
    assert await call(connection, "echo", text="before") == "before"
    hanging = asyncio.create_task(call(connection, "hang"))
    while server.asked.count("tools/call") < 2:  # noqa: ASYNC110
        await asyncio.sleep(0)
    server.kill()
    with pytest.raises((ToolFailed, ConnectionBroken)):
        await hanging
    with pytest.raises((ToolFailed, ConnectionBroken)):
        await call(connection, "echo", text="nobody")
    server.start()
    with suppress(ToolFailed, ConnectionBroken):
        await listing(connection)
    await connection.aclose()
    assert await call(connection, "echo", text="after") == "after"


async def test_a_call_that_hangs_is_cancelled(server: Server, connection: Connection) -> None:
    """Breaks when: a cancelled call ends the connection, or goes on."""
    assert await call(connection, "echo", text="before") == "before"
    hanging = asyncio.create_task(call(connection, "hang"))
    await asyncio.sleep(0)
    assert await call(connection, "echo", text="beside") == "beside"
    hanging.cancel()
    with pytest.raises(asyncio.CancelledError):
        await hanging
    assert await call(connection, "echo", text="after") == "after"


async def test_a_server_that_does_not_let_in(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Breaks when: connecting has no limit of time."""
    monkeypatch.setattr("chatapp.tools.mcp.connection.CONNECT_SECONDS", 0.3)
    for method in ("server/discover", "initialize"):
        server.control(fault="hang", method=method, always=True)
    connection = Connection(partial(open_session, server.access()))
    with pytest.raises(ConnectionBroken, match="in time"):
        await call(connection, "echo", text="nobody")
    await connection.aclose()


async def test_t03_a_private_address_is_refused(server: Server) -> None:
    """T03.

    Breaks when: the SDK connects with a client of its own.
    """
    for address in (server.origin, f"http://localhost:{server.port}", "http://169.254.169.254"):
        access = server.access(address=f"{address}/mcp", private_addresses=False)
        connection = Connection(partial(open_session, access))
        with pytest.raises(ConnectionBroken, match="private address"):
            await listing(connection)
        await connection.aclose()
    assert server.asked == []


async def test_nobody_listens() -> None:
    access = ServerAccess(
        server_id=1,
        name="tests",
        address="http://127.0.0.1:9/mcp",
        command=(),
        private_addresses=True,
        credential_name="X-Key",
        sealed_key="",
    )
    connection = Connection(partial(open_session, access))
    with pytest.raises(ConnectionBroken):
        await listing(connection)
    await connection.aclose()


async def test_a_key_that_cannot_be_read(server: Server) -> None:
    connection = Connection(partial(open_session, server.access(sealed_key="nonsense")))
    with pytest.raises(ConnectionBroken, match="entered again"):
        await listing(connection)
    await connection.aclose()


async def test_a_program_of_this_computer(tmp_path: Any) -> None:
    """Standard input and output; it gets its key, and none of our secrets.

    Breaks when: the program inherits our environment.
    """
    program = tmp_path / "server.py"
    program.write_text(
        "import os\n"
        "from mcp.server import MCPServer\n"
        "server = MCPServer('local')\n"
        "@server.tool()\n"
        "def variable(of: str) -> str:\n"
        "    return os.environ.get(of, 'unset')\n"
        "server.run('stdio')\n"
    )
    access = ServerAccess(
        server_id=1,
        name="local",
        address="",
        command=(sys.executable, str(program)),
        private_addresses=False,
        credential_name="TOOL_KEY",
        sealed_key=seal("sesame"),
    )
    connection = Connection(partial(open_session, access))
    assert await call(connection, "variable", of="TOOL_KEY") == "sesame"
    assert await call(connection, "variable", of="DJANGO_SETTINGS_MODULE") == "unset"
    await connection.aclose()


def test_bounds_are_those_of_the_document() -> None:
    page = (ROOT / "docs" / "operations.md").read_text("utf-8")
    assert f"An answer may have {client.MOST_BYTES // 2**20} MB" in page
