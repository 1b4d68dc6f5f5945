"""The way from async code to the database: one call is one unit of work, in one thread.

Units run in small thread pools of their own. In Django's default, a single thread for everything
synchronous, one slow query delays every socket of the process.
"""

from __future__ import annotations

import asyncio
import functools
import os
import threading
import time
from collections.abc import Callable, Coroutine, Hashable, Iterator
from concurrent.futures import wait
from contextlib import contextmanager
from typing import Any, Final, Literal, ParamSpec, TypeVar

from django.db import InterfaceError, InternalError, OperationalError, connections, transaction
from django.db.backends.signals import connection_created

from compression.fair_threads import BURST, FairThreads, on_behalf_of

P = ParamSpec("P")
R = TypeVar("R")

Lane = Literal["asked", "background", "bulk", "slow"]
"""Thread pools for units of work; a unit never waits for units of another lane.

``asked``: work that a person waits for. ``background``: work that nobody waits for (checkpoints,
sweeps). ``bulk``: one of thousands of units of an import. ``slow``: work that may take seconds (a
search). In each lane people take turns. One person gets at most half of the threads of ``asked``,
and one thread of ``slow``.
"""

# SQLite has one writer, so more threads would only wait for one another; PostgreSQL has many.
# A slow unit takes a whole processor, and one processor must stay free for the others.
SQLITE_THREADS: Final[dict[Lane, int]] = {"asked": 2, "background": 1, "bulk": 1, "slow": 1}
SERVER_THREADS: Final[dict[Lane, int]] = {"asked": 8, "background": 1, "bulk": 1, "slow": 2}
_BACKGROUND = "database-background"

_pools: dict[Lane, FairThreads] = {}


def _pool(lane: Lane) -> FairThreads:
    if lane not in _pools:
        sqlite = connections["default"].vendor == "sqlite"
        threads = (SQLITE_THREADS if sqlite else SERVER_THREADS)[lane]
        each = {"asked": threads // 2, "slow": 1}.get(lane, threads)
        burst = BURST if lane == "asked" else None
        made = FairThreads(threads, f"database-{lane}", each=each, burst=burst)
        # Another thread may have stored one first; a pool without work has no threads yet.
        _pools.setdefault(lane, made)
    return _pools[lane]


def _disable_checkpoints(*, connection: Any, **_: Any) -> None:
    """Keep background units from checkpointing SQLite's log, which waits for the disk.

    On a busy disk a checkpoint took 117 ms where nothing else took more than 17. The log is
    checkpointed by the commits of other threads.
    """
    if connection.vendor == "sqlite" and threading.current_thread().name.startswith(_BACKGROUND):
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA wal_autocheckpoint = 0")


connection_created.connect(_disable_checkpoints)


AWAY = (OperationalError, InterfaceError, InternalError)
"""Errors of a unit of work while the database is away, full, or read-only."""


def _release_connections() -> None:
    """Give connections back; those to SQLite stay open.

    Closing the last connection to a SQLite file checkpoints its log, which takes hundreds of
    milliseconds. A connection to a server returns to Django's pool; a broken one is replaced.
    """
    for connection in connections.all(initialized_only=True):
        if connection.vendor != "sqlite" or connection.errors_occurred:
            connection.close_if_unusable_or_obsolete()


def _unit(function: Callable[[], R]) -> R:
    _release_connections()
    try:
        return function()
    finally:
        _release_connections()


def in_database_thread(
    function: Callable[P, R], *, lane: Lane = "asked"
) -> Callable[P, Coroutine[Any, Any, R]]:
    """The awaitable twin of a synchronous unit of work; its caller gives it a name with ``a``.

    A unit waits only for units of its ``lane``, where the people named by
    :data:`compression.fair_threads.on_behalf_of` take turns. A unit that has begun runs to its end
    even if its awaiter is cancelled. No transaction may span two units.
    """

    @functools.wraps(function)
    async def crossing(*args: P.args, **kwargs: P.kwargs) -> R:
        call = functools.partial(_unit, functools.partial(function, *args, **kwargs))
        return await asyncio.wrap_future(_pool(lane).submit(on_behalf_of.get(), call))

    return crossing


@contextmanager
def snapshot() -> Iterator[None]:
    """A read-only transaction in which every query sees the same state of the database.

    On SQLite, other transactions here take the place of the one writer from their start. This one
    does not, so neither it nor a writer waits. On PostgreSQL each statement would otherwise see
    what was committed before it, for instance a reply that has ended without its last message.
    Writing in it fails. Within another transaction it has no effect of its own.
    """
    connection = transaction.get_connection()
    if connection.in_atomic_block:
        yield
        return
    with _begun_deferred(connection), transaction.atomic():
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


@contextmanager
def _begun_deferred(connection: Any) -> Iterator[None]:
    if connection.vendor != "sqlite":
        yield
        return
    # The mode of the connection is known only once it is open.
    connection.ensure_connection()
    mode, connection.transaction_mode = connection.transaction_mode, "DEFERRED"
    try:
        yield
    finally:
        connection.transaction_mode = mode


class TookTooLong(Exception):
    """A statement was ended at its time limit."""


# Instructions that SQLite executes between two looks at the clock: about a millisecond.
_INSTRUCTIONS = 10_000


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """End the statements of a transaction ``seconds`` from now.

    On PostgreSQL each statement may take that long. Raises TookTooLong.
    """
    connection = transaction.get_connection()
    sqlite = connection.vendor == "sqlite"
    try:
        if sqlite:
            over = time.monotonic() + seconds
            connection.ensure_connection()
            connection.connection.set_progress_handler(
                lambda: time.monotonic() > over, _INSTRUCTIONS
            )
        else:
            with connection.cursor() as cursor:
                cursor.execute(f"SET LOCAL statement_timeout = {max(1, round(seconds * 1000))}")
        yield
    except OperationalError as error:
        if _ended_early(error.__cause__):
            raise TookTooLong from error
        raise
    finally:
        if sqlite:
            connection.connection.set_progress_handler(None, 0)


def _ended_early(cause: BaseException | None) -> bool:
    """Whether a database error says that a statement was ended from outside."""
    sqlite, server = getattr(cause, "sqlite_errorname", ""), getattr(cause, "sqlstate", "")
    return sqlite == "SQLITE_INTERRUPT" or server == "57014"


def database_file() -> str:
    """The path of the database file, links resolved; empty when the database is a server."""
    connection = connections["default"]
    name = str(connection.settings_dict["NAME"])
    in_memory = name == ":memory:" or name.startswith("file:")
    return "" if connection.vendor != "sqlite" or in_memory else os.path.realpath(name)


def pending_of(person: Hashable, lane: Lane) -> int:
    """Number of a person's units that run or wait in a lane."""
    return _pool(lane).pending_of(person)


def drop(lane: Lane) -> None:
    """Cancel the waiting units of a lane, without waiting for running ones."""
    if lane in _pools:
        _pools[lane].drop()


def drain(*, close: bool = False) -> None:
    """Wait until no unit runs or waits, including those whose awaiters are gone.

    With ``close``, each thread of the pools also closes its connections.
    """
    for pool in list(_pools.values()):
        pool.join()
        if close:
            # The barrier makes each thread wait for the others, so that each takes one call.
            close_here = functools.partial(_close, threading.Barrier(pool.threads))
            wait([pool.submit(object(), close_here) for _ in range(pool.threads)])


def close_pools() -> None:
    """Wait for running units, then end the pools and close every connection of their threads."""
    drain(close=True)
    while _pools:
        _, pool = _pools.popitem()
        pool.shutdown()


def _close(together: threading.Barrier) -> None:
    connections.close_all()
    together.wait()
