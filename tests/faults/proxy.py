"""A TCP proxy that cuts, delays and half-opens connections between two of the product's parts."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from types import TracebackType

PIECE = 65536


class Proxy:
    """Passes bytes on to ``target`` (``host:port``) until it is told otherwise.

    ``delay``: seconds by which each piece comes late, both ways. ``held``: connections stay open
    and no byte passes, as with a cable that was pulled; what came meanwhile passes afterwards.
    ``deaf``: what the target answers is thrown away. ``refusing``: new connections are closed.
    """

    def __init__(self, target: str, *, port: int = 0) -> None:
        host, _, number = target.rpartition(":")
        self._target = (host, int(number))
        self.port = port
        self.delay = 0.0
        self.deaf = False
        self.refusing = False
        self._flows = asyncio.Event()
        self._flows.set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.accepted = 0

    @property
    def address(self) -> str:
        """Where to connect instead of to the target."""
        return f"127.0.0.1:{self.port}"

    @property
    def target_port(self) -> int:
        """The port that it leads to."""
        return self._target[1]

    def hold(self) -> None:
        """No byte passes from now on."""
        self._flows.clear()

    def let_go(self) -> None:
        """Undo :meth:`hold`."""
        self._flows.set()

    def cut(self) -> None:
        """Reset every connection that there is."""
        for writer in self._writers:
            writer.transport.abort()

    async def __aenter__(self) -> Proxy:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self._writers.add(writer)
        self.accepted += 1
        try:
            if not self.refusing:
                with suppress(OSError):  # either side is gone: the other is told below
                    await self._connect(reader, writer)
        finally:
            self._writers.discard(writer)
            writer.transport.abort()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(*self._target)
        self._writers.add(back)
        ways = {
            asyncio.create_task(self._pass(reader, back, answers=False)),
            asyncio.create_task(self._pass(there, writer, answers=True)),
        }
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            self._writers.discard(back)
            back.transport.abort()

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, answers: bool
    ) -> None:
        while piece := await reader.read(PIECE):
            if self.delay:
                await asyncio.sleep(self.delay)
            await self._flows.wait()
            if answers and self.deaf:
                continue
            writer.write(piece)
            await writer.drain()
