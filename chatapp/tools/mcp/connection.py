"""One connection to an MCP server, owned by a task of its own.

The SDK's client cancels whoever entered it when its connection breaks, and must be left by the task
that entered it. So only the connection's own task enters it. Turns put their work into its queue,
and wait for futures, which a broken connection ends with an error and nothing else.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import partial
from typing import Any, Protocol, TypeVar

logger = logging.getLogger(__name__)

R = TypeVar("R")

#: Seconds to connect and agree on a protocol.
CONNECT_SECONDS = 10.0
#: Seconds for a connection to end, before what still keeps it is ended too.
CLOSE_SECONDS = 5.0
#: Seconds after its last call that a connection is kept.
IDLE_SECONDS = 60.0
#: Said of a call whose answer never came.
UNKNOWN = "It is not known whether the call took effect."


class ConnectionBroken(Exception):
    """The connection could not be made, or ended while something waited for it."""


class Session(Protocol):
    """An open connection."""

    async def listing(self) -> dict[str, str]:
        """The server's tools: name and raw object as text."""

    async def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Call a tool. Returns its result as text. Raises ToolFailed."""


Open = Callable[[], AbstractAsyncContextManager[Session]]
_Item = tuple[Callable[[Session], Awaitable[Any]], "asyncio.Future[Any]"]


class Connection:
    """A connection that is made when something is to be done, and made again after it broke."""

    def __init__(self, open_session: Open, *, idle: float = IDLE_SECONDS) -> None:
        self._open = open_session
        self._idle = idle
        self._queue: asyncio.Queue[_Item | None] | None = None
        self._owners: set[asyncio.Task[None]] = set()

    @property
    def is_open(self) -> bool:
        """Whether a task owns a connection, or is about to make it."""
        return self._queue is not None

    async def run(self, work: Callable[[Session], Awaitable[R]]) -> R:
        """Do something with the connection. Raises ConnectionBroken, and what ``work`` raises.

        Cancelling it cancels the work and leaves the connection alone.
        """
        if self._queue is None:
            self._queue = asyncio.Queue()
            owner = asyncio.create_task(self._own(self._queue), name="connection to a tool server")
            self._owners.add(owner)
            owner.add_done_callback(self._owners.discard)
        result: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._queue.put_nowait((work, result))
        try:
            return await result
        finally:
            result.cancel()

    def retire(self) -> None:
        """Have whoever comes next make a new connection. What is under way goes on to its end."""
        if self._queue is not None:
            self._retire(self._queue)

    async def aclose(self) -> None:
        """End the connection and whatever waits for it, within a few seconds."""
        owners = set(self._owners)
        # First in order. The SDK takes its leave of the server, which may never answer that.
        for _ in range(2):
            for owner in owners:
                owner.cancel()
            if owners:
                _, owners = await asyncio.wait(owners, timeout=CLOSE_SECONDS)

    async def _own(self, queue: asyncio.Queue[_Item | None]) -> None:
        under_way: dict[asyncio.Task[None], asyncio.Future[Any]] = {}
        reason = "The connection was closed."
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(CONNECT_SECONDS):
                    session = await stack.enter_async_context(self._open())
                await self._serve(session, queue, under_way)
                # From here on whoever comes makes a new connection; this one may take time to end.
                self._leave(queue)
        except TimeoutError:
            reason = "The server did not answer in time."
        except asyncio.CancelledError:
            # Either somebody closed it, or the SDK ended its host, which is this task.
            pass
        except Exception as error:
            reason = _reason(error)
            logger.info("A connection to a tool server ended: %s", reason)
        finally:
            self._leave(queue)
            _give_up(queue, under_way, reason)

    def _retire(self, queue: asyncio.Queue[_Item | None]) -> None:
        self._leave(queue)
        queue.put_nowait(None)

    def _leave(self, queue: asyncio.Queue[_Item | None]) -> None:
        """Have whoever comes next make a new connection."""
        if self._queue is queue:
            self._queue = None

    async def _serve(
        self,
        session: Session,
        queue: asyncio.Queue[_Item | None],
        under_way: dict[asyncio.Task[None], asyncio.Future[Any]],
    ) -> None:
        """Do what comes, side by side, until nothing has come for a while or it is broken."""
        while True:
            try:
                async with asyncio.timeout(self._idle):
                    item = await queue.get()
            except TimeoutError:
                if under_way:
                    continue
                return
            if item is None:
                await asyncio.gather(*under_way, return_exceptions=True)
                return
            work, result = item
            task = asyncio.create_task(self._carry_out(session, work, result, queue))
            under_way[task] = result
            task.add_done_callback(under_way.pop)
            result.add_done_callback(partial(_cancel_too, task))

    async def _carry_out(
        self,
        session: Session,
        work: Callable[[Session], Awaitable[Any]],
        result: asyncio.Future[Any],
        queue: asyncio.Queue[_Item | None],
    ) -> None:
        try:
            found = await work(session)
        except Exception as error:
            if isinstance(error, ConnectionBroken):
                # Its owner learns later; who calls next must not be put into its queue.
                self._retire(queue)
            if not result.done():
                result.set_exception(error)
        else:
            if not result.done():
                result.set_result(found)


def _cancel_too(task: asyncio.Task[None], result: asyncio.Future[Any]) -> None:
    """Cancel a call whose caller has gone."""
    if result.cancelled():
        task.cancel()


def _give_up(
    queue: asyncio.Queue[_Item | None],
    under_way: Mapping[asyncio.Task[None], asyncio.Future[Any]],
    reason: str,
) -> None:
    """Tell all who wait that nothing comes."""
    waiting = list(under_way.values())
    for task in list(under_way):
        task.cancel()
    while not queue.empty():
        if (item := queue.get_nowait()) is not None:
            waiting.append(item[1])
    for result in waiting:
        if not result.done():
            result.set_exception(ConnectionBroken(reason))


def _reason(error: BaseException) -> str:
    """The first error of a group of them, as a sentence's end."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or type(error).__name__
