"""Points at which a server of a test kills itself or is held, and how it is told which.

``TESTS_FAILPOINT=sending.accept:commit`` names a unit of work, by its module and function, and a
moment: ``before`` it begins, at its ``commit`` (all is written, nothing is committed), or
``after`` it (committed, but nobody has been told). A number counts: ``…:after#2`` is the
second time. ``TESTS_HELD=searching.search:/a/pipe`` holds a unit in the middle of its first query
until somebody has opened that named pipe for writing and closed it again.

Imported by the settings, before any unit of work is made.
"""

from __future__ import annotations

import functools
import itertools
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper

from compression import database

_in_database_thread = database.in_database_thread
_commit = BaseDatabaseWrapper.commit
_unit = threading.local()
_passed: Counter[str] = Counter()
_point, _, _count = os.environ.get("TESTS_FAILPOINT", "").partition("#")
_held, _, _pipe = os.environ.get("TESTS_HELD", "").partition(":")


def _pass(point: str) -> None:
    if point != _point:
        return
    _passed[point] += 1
    if _passed[point] == int(_count or 1):
        os.kill(os.getpid(), signal.SIGKILL)


@contextmanager
def _hold() -> Iterator[None]:
    """Have the first query that reads something last until the pipe was opened and closed."""
    queries = itertools.count()

    def wait(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        answer = execute(sql, *rest)
        if sql.startswith("SELECT") and next(queries) == 0:
            Path(_pipe).read_bytes()
        return answer

    with connection.execute_wrapper(wait):
        yield


def in_database_thread(
    function: Callable[..., Any], *, lane: database.Lane = "asked"
) -> Callable[..., Coroutine[Any, Any, Any]]:
    """As :func:`compression.database.in_database_thread`, of a unit that is watched."""
    name = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"

    @functools.wraps(function)
    def watched(*args: Any, **kwargs: Any) -> Any:
        _pass(f"{name}:before")
        _unit.name = name
        try:
            with _hold() if name == _held else nullcontext():
                answer = function(*args, **kwargs)
        finally:
            _unit.name = ""
        _pass(f"{name}:after")
        return answer

    return _in_database_thread(watched, lane=lane)


def _watched_commit(self: BaseDatabaseWrapper) -> None:
    _pass(f"{getattr(_unit, 'name', '')}:commit")
    _commit(self)


def install() -> None:
    """Watch every unit of work that is made from now on."""
    database.in_database_thread = in_database_thread
    BaseDatabaseWrapper.commit = _watched_commit  # type: ignore[method-assign]
