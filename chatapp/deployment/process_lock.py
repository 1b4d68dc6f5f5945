"""A file lock that detects other live processes, faster than waiting for leases.

The lease of a dead process expires after half a minute. But all processes of a SQLite database run
on one computer, because they share its write-ahead log in memory. So each process holds a shared
lock on a file beside the database, from before its first lease until it dies for whatever reason. A
process that gets the lock exclusively knows that all leases belong to dead processes.

With PostgreSQL there are only leases: an advisory lock ends with its connection, and a process
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
    """The lock shared by the processes of one database; ``path``: its file, None for no lock."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._acquired = False
        self._file: BinaryIO | None = None

    def acquire(self, when_alone: Callable[[], object] | None = None) -> None:
        """Hold the lock until this process dies. A second call does nothing.

        ``when_alone`` is called first if no other process holds the lock. A process that starts
        meanwhile waits, so that ``when_alone`` finds only leases of dead processes.
        """
        if self._path is None or self._acquired:
            return
        self._acquired = True
        try:
            self._file = self._path.open("ab")
            if when_alone is not None and _taken_alone(self._file):
                when_alone()
            # Another process may be alone for a moment here, but we hold no lease yet.
            fcntl.flock(self._file, fcntl.LOCK_SH)
        except OSError as error:
            logger.warning("Other processes of this database cannot be detected: %s", error)


def _taken_alone(file: BinaryIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
