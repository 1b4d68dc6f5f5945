"""A running MCP server for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.chatapp.tools.mcp.serving import Server


@pytest.fixture(scope="package")
def running() -> Iterator[Server]:
    """The process; a test that kills it may leave it so."""
    server = Server()
    yield server
    server.kill()


@pytest.fixture
def server(running: Server) -> Server:
    """The process, as it was at its start."""
    if running.process.poll() is not None:
        running.start()
    running.control(reset=True)
    return running
