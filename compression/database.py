"""Crossing from async code into the database: one function call, one unit of work, one thread.

Units run in a small pool of threads of their own. Django's default, one thread for everything
that is synchronous, lets one slow query delay every socket of the process.
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

from compression.fair_threads import FairThreads, as_long_if_more, on_behalf_of

P = ParamSpec("P")
R = TypeVar("R")

Lane = Literal["asked", "background", "bulk", "slow"]
"""Threads for units of work, by lane, so that none waits for units of another lane.

``asked``: what a person waits for. ``background``: what nobody waits for (checkpoints, sweeps).
``bulk``: one of the thousands that a piece of work is made of (an import). ``slow``: what may take
seconds (a search). In each lane people take turns, and of ``asked`` one of them never has more than
half of the threads, of ``slow`` one.
"""

# SQLite has one writer, so more threads only wait for one another; PostgreSQL has many. What is
# slow takes a processor whole, and one must be free for the others.
SQLITE_THREADS: Final[dict[Lane, int]] = {"asked": 2, "background": 1, "bulk": 1, "slow": 1}
SERVER_THREADS: Final[dict[Lane, int]] = {"asked": 8, "background": 1, "bulk": 1, "slow": 2}
_BACKGROUND = "database-background"

_pools: dict[Lane, FairThreads] = {}


def _pool(lane: Lane) -> FairThreads:
    if lane not in _pools:
        sqlite = connections["default"].vendor == "sqlite"
        threads = (SQLITE_THREADS if sqlite else SERVER_THREADS)[lane]
        each = {"asked": threads // 2, "slow": 1}.get(lane, threads)
        pause = as_long_if_more if lane == "asked" else None
        made = FairThreads(threads, f"database-{lane}", each=each, pause=pause)
        # One that came first is used; a pool without work has no threads yet.
        _pools.setdefault(lane, made)
    return _pools[lane]


def _leave_the_log_to_others(*, connection: Any, **_: Any) -> None:
    """Have background units never move SQLite's log into its file, which waits for the disk.

    On a busy disk that took 117 ms where nothing else takes 17; what a person asked for is stored
    by other threads, whose commits move the log.
    """
    if connection.vendor == "sqlite" and threading.current_thread().name.startswith(_BACKGROUND):
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA wal_autocheckpoint = 0")


connection_created.connect(_leave_the_log_to_others)


AWAY = (OperationalError, InterfaceError, InternalError)
"""Errors of a unit of work while the database is away, full, or read-only."""


def _release_connections() -> None:
    """Give connections back; SQLite's stay open.

    Closing the last connection to a SQLite file checkpoints its log, which costs hundreds of
    milliseconds; a connection to a server goes back to the pool that Django keeps, and one that
    broke is replaced.
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


def across(
    function: Callable[P, R], *, lane: Lane = "asked"
) -> Callable[P, Coroutine[Any, Any, R]]:
    """The awaitable twin of a synchronous unit of work, named with an ``a`` prefix by its caller.

    Units wait for others of their ``lane`` only, and of them for those whose turn it is before
    :data:`compression.fair_threads.on_behalf_of`. A unit that has begun runs to its end even if its
    awaiter is cancelled; no transaction may span two units.
    """

    @functools.wraps(function)
    async def crossing(*args: P.args, **kwargs: P.kwargs) -> R:
        call = functools.partial(_unit, functools.partial(function, *args, **kwargs))
        return await asyncio.wrap_future(_pool(lane).submit(on_behalf_of.get(), call))

    return crossing


@contextmanager
def snapshot() -> Iterator[None]:
    """A transaction that only reads, so that all of it sees one state of the database.

    SQLite has one writer, and a transaction of ours takes its place from the start. This one does
    not: it waits for no writer, and none waits for it. On PostgreSQL each statement would see what
    was committed before it, a reply that has ended without the message that it ended with: this
    one sees what its first statement saw. To write in it fails. Within another transaction it is
    no more than that one.
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
    # What it was told to begin with is known once it is open.
    connection.ensure_connection()
    mode, connection.transaction_mode = connection.transaction_mode, "DEFERRED"
    try:
        yield
    finally:
        connection.transaction_mode = mode


class TookTooLong(Exception):
    """A statement was ended because its time was over."""


# Instructions of SQLite's between two looks at the clock: a millisecond or so.
_INSTRUCTIONS = 10_000


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Have the statements within a transaction ended ``seconds`` from now.

    On PostgreSQL each of them may take so long. Raises TookTooLong.
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
    """Whether the database's own error says that a statement was told to end."""
    sqlite, server = getattr(cause, "sqlite_errorname", ""), getattr(cause, "sqlstate", "")
    return sqlite == "SQLITE_INTERRUPT" or server == "57014"


def database_file() -> str:
    """The file that holds the database, links followed; empty where a server does."""
    connection = connections["default"]
    name = str(connection.settings_dict["NAME"])
    in_memory = name == ":memory:" or name.startswith("file:")
    return "" if connection.vendor != "sqlite" or in_memory else os.path.realpath(name)


def asked_by(person: Hashable, lane: Lane) -> int:
    """How many units of a person run or wait in a lane."""
    return _pool(lane).asked_by(person)


def drop(lane: Lane) -> None:
    """Cancel the units of a lane that wait; one that runs is not waited for."""
    if lane in _pools:
        _pools[lane].drop()


def drain(*, close: bool = False) -> None:
    """Wait until no unit runs or waits any more, those included whose awaiters are gone.

    ``close``: each thread of the pools closes its connections too.
    """
    for pool in list(_pools.values()):
        pool.join()
        if close:
            # Each thread waits for the others, so that each takes one of these calls.
            close_here = functools.partial(_close, threading.Barrier(pool.threads))
            wait([pool.submit(object(), close_here) for _ in range(pool.threads)])


def close_pools() -> None:
    """Wait for running units, and end the pools with every connection of their threads."""
    drain(close=True)
    while _pools:
        _, pool = _pools.popitem()
        pool.shutdown()


def _close(together: threading.Barrier) -> None:
    connections.close_all()
    together.wait()
