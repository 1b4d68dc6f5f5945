"""Programs on this computer that speak MCP, and all that can go wrong with them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from chatapp.conversations.tools.servers import ServerAccess
from chatapp.tools.mcp import stdio
from chatapp.tools.mcp.client import open_session
from chatapp.tools.mcp.connection import Connection, ConnectionBroken

PATIENCE = 20

PROGRAM = """
import asyncio, os, signal, subprocess, sys
from mcp.server import MCPServer

output = os.dup(1)
server = MCPServer("local")

@server.tool()
def echo(text: str) -> str:
    return text

@server.tool()
async def hang() -> str:
    await asyncio.Event().wait()

@server.tool()
def die() -> str:
    os._exit(1)

@server.tool()
def line() -> str:
    while True:
        os.write(output, b"x" * 65536)

@server.tool()
def lines() -> str:
    while True:
        os.write(output, b"{}\\n" * 1000)

@server.tool()
def garbage() -> str:
    os.write(output, b"\\xff\\xfe no JSON\\n")
    return "after"

@server.tool()
async def cling() -> str:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen([sys.executable, "-c",
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"],
        stdout=output)
    return f"{os.getpid()} {child.pid}"

server.run("stdio")
"""


@pytest_asyncio.fixture
async def connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Connection]:
    monkeypatch.setattr(stdio, "GRACE", 0.3)
    program = tmp_path / "server.py"
    program.write_text(PROGRAM)
    made = Connection(partial(open_session, access(sys.executable, str(program))))
    yield made
    async with asyncio.timeout(PATIENCE):
        await made.aclose()


def access(*command: str) -> ServerAccess:
    return ServerAccess(
        server_id=1,
        name="local",
        address="",
        command=command,
        private_addresses=False,
        credential_name="TOOL_KEY",
        sealed_key="",
    )


async def call(connection: Connection, name: str, **arguments: Any) -> str:
    async with asyncio.timeout(PATIENCE):
        return await connection.run(lambda session: session.call(name, arguments))


async def test_it_works(connection: Connection) -> None:
    assert await call(connection, "echo", text="Hallå\n") == "Hallå\n"
    listed = await connection.run(lambda session: session.listing())
    assert "echo" in listed


@pytest.mark.parametrize("name", ["die", "line", "lines"])
async def test_t04_a_program_that_dies_or_floods(connection: Connection, name: str) -> None:
    """T04: its connection ends, with a sentence, and the next call starts it anew.

    Breaks when: a line, or the lines between two messages, are not bounded.
    """
    assert await call(connection, "echo", text="before") == "before"
    with pytest.raises(ConnectionBroken) as caught:
        await call(connection, name)
    assert str(caught.value).strip()
    assert await call(connection, "echo", text="after") == "after"


async def test_t04_a_line_that_is_no_message(connection: Connection) -> None:
    """T04."""
    assert await call(connection, "garbage") == "after"


async def test_a_call_that_hangs_is_cancelled(connection: Connection) -> None:
    """Breaks when: a cancelled call ends the connection, or holds up the next one."""
    assert await call(connection, "echo", text="before") == "before"
    hanging = asyncio.create_task(call(connection, "hang"))
    await asyncio.sleep(0)
    assert await call(connection, "echo", text="beside") == "beside"
    hanging.cancel()
    await asyncio.wait({hanging})
    assert await call(connection, "echo", text="after") == "after"


async def test_nothing_of_it_is_left_behind(connection: Connection) -> None:
    """Neither a program that does not listen, nor what it has started.

    Breaks when: only the program itself is killed, or only asked to end.
    """
    pids = [int(pid) for pid in (await call(connection, "cling")).split()]
    assert all(map(_runs, pids))
    async with asyncio.timeout(PATIENCE):
        await connection.aclose()
        while any(map(_runs, pids)):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def _runs(pid: int) -> bool:
    """Whether a process lives; one that waits to be counted as dead does not."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return fields[0] != "Z"


async def test_a_program_that_is_none() -> None:
    connection = Connection(partial(open_session, access("/no/such/program")))
    with pytest.raises(ConnectionBroken, match="No such file"):
        await call(connection, "echo", text="nobody")
    await connection.aclose()
