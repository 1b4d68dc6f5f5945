"""Detect other live processes by a file lock, faster than waiting for leases.

The lease of a dead process expires after half a minute. But all processes of a SQLite database run
on one computer, since its write-ahead log lies in their shared memory; so the system can tell at
once. Each process holds a shared lock on a file beside the database from before its first lease
until its death, whatever kills it. A process that gets the lock exclusively knows that every lease
is a dead process's.

With PostgreSQL there are leases only: an advisory lock goes with its connection, and a process
outlives its connections.
"""

from __future__ import annotations

import fcntl
import logging
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

logger = logging.getLogger(__name__)


class ProcessLock:
    """The lock that the processes of one database share; ``path``: its file, None for no lock."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._acquired = False
        self._file: BinaryIO | None = None

    def acquire(self, when_alone: Callable[[], object] | None = None) -> None:
        """Hold the lock from now until this process dies. A second time does nothing.

        ``when_alone`` is called first if no other process holds it; one that comes meanwhile
        waits, so that nothing ``when_alone`` finds belongs to a living process.
        """
        if self._path is None or self._acquired:
            return
        self._acquired = True
        try:
            self._file = self._path.open("ab")
            if when_alone is not None and _taken_alone(self._file):
                when_alone()
            # Between the two locks another process may be alone for a moment: we hold no lease yet.
            fcntl.flock(self._file, fcntl.LOCK_SH)
        except OSError as error:
            logger.warning("Other processes of this database cannot be detected: %s", error)


def _taken_alone(file: BinaryIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
