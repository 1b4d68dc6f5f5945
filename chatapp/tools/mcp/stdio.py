"""A program on this computer that speaks MCP, as a transport of the SDK's client.

Unlike the SDK's own, it bounds the length of a line, takes one apart in linear time, and ends the
connection of a program that floods it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage
from mcp.types import jsonrpc_message_adapter

logger = logging.getLogger(__name__)

#: Lines between two messages to the program. Each costs far more than its bytes.
MOST_LINES = 10_000
#: Seconds for a program to end when its input is closed, and again when it is asked to.
GRACE = 1.0
# Bytes that are dropped at a time while a program ends.
_CHUNK = 64 * 1024

Incoming = MemoryObjectSendStream[SessionMessage | Exception]
Outgoing = MemoryObjectReceiveStream[SessionMessage]


@asynccontextmanager
async def program(
    command: Sequence[str], environment: Mapping[str, str], *, most_bytes: int
) -> AsyncIterator[tuple[Any, Any]]:
    """Start a program, and end it with all that it started. Yields what it says and what it hears.

    It gets a minimal environment and ``environment``. A line may have ``most_bytes``. Raises
    OSError for a program that cannot be started, and ValueError for one with NUL in its name.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=PIPE,
        stdout=PIPE,
        env={**get_default_environment(), **environment},
        # A group of its own, so that what it starts ends with it.
        start_new_session=True,
        limit=most_bytes,
    )
    incoming, heard = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    said, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    talk = _Talk(process, incoming, outgoing)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(talk.read)
            group.start_soon(talk.write)
            try:
                yield heard, said
            finally:
                group.cancel_scope.cancel()
    finally:
        for stream in (incoming, heard, said, outgoing):
            stream.close()
        with anyio.CancelScope(shield=True):
            await _end(process)


class _Talk:
    """The two directions of the pipe. Either one ends the connection when it can go no further."""

    def __init__(self, process: Process, incoming: Incoming, outgoing: Outgoing) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._input = process.stdin
        self._output = process.stdout
        self._incoming = incoming
        self._outgoing = outgoing
        self._lines_left = MOST_LINES

    async def read(self) -> None:
        """Pass the program's messages on, until it ends or says too much."""
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            async with self._incoming:
                while line := await self._line():
                    await self._incoming.send(_message(line))

    async def _line(self) -> bytes:
        """The next line; empty at the end, and after more than is taken."""
        self._lines_left -= 1
        if self._lines_left < 0:
            logger.warning("A tool server's program said too many lines: its connection ends.")
            return b""
        try:
            return await self._output.readline()
        except ValueError:
            logger.warning("A tool server's program said too long a line: its connection ends.")
            return b""

    async def write(self) -> None:
        """Pass the session's messages on."""
        try:
            async with self._outgoing:
                async for one in self._outgoing:
                    self._lines_left = MOST_LINES
                    said = one.message.model_dump_json(by_alias=True, exclude_unset=True)
                    self._input.write(said.encode() + b"\n")
                    await self._input.drain()
        except (anyio.ClosedResourceError, OSError):
            # It hears no more, but may live on: whoever waits for an answer is told.
            self._incoming.close()


def _message(line: bytes) -> SessionMessage | Exception:
    try:
        text = line.decode("utf-8", "replace")
        return SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False))
    except ValueError as error:
        return error


async def _end(process: Process) -> None:
    """End a program as the protocol says: its input is closed, then it is asked to, then killed."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        for act in (signal.SIGTERM, signal.SIGKILL):
            if await _ended(process):
                return
            _signal(process, act)
        await _ended(process)
    finally:
        # Whatever kept this from waiting: no program is left behind.
        if process.returncode is None:
            _signal(process, signal.SIGKILL)


async def _ended(process: Process) -> bool:
    """Whether a program and all that it started end within a while. What they still say is lost."""
    assert process.stdout is not None
    try:
        async with asyncio.timeout(GRACE):
            # A program that writes into a full pipe cannot end.
            while await process.stdout.read(_CHUNK):
                continue
            await process.wait()
    except TimeoutError:
        return False
    return True


def _signal(process: Process, act: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, act)
