"""Whether other processes serve the same database: the system's word, sooner than any lease's.

That the holder of a lease is dead shows when the lease has expired, half a minute later. All
processes of a SQLite database run on one computer, since its write-ahead log lies in their shared
memory; so the system can tell at once. Each holds a shared lock on a file beside the database from
before its first lease until its death, whatever kills it. Who can have that lock alone knows that
every lease is a dead process's.

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


class Presence:
    """This process among those that serve a database; ``path`` is the lock's file, or None."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._arrived = False
        self._file: BinaryIO | None = None

    def arrive(self, when_alone: Callable[[], object] | None = None) -> None:
        """Be counted from now until this process dies. A second time does nothing.

        ``when_alone`` is called first if nobody else is there; meanwhile whoever else arrives
        waits, so that nothing it finds is of a living process.
        """
        if self._path is None or self._arrived:
            return
        self._arrived = True
        try:
            self._file = self._path.open("ab")
            if when_alone is not None and _taken_alone(self._file):
                when_alone()
            # Between the two locks another one may be alone for a moment: we hold no lease yet.
            fcntl.flock(self._file, fcntl.LOCK_SH)
        except OSError as error:
            logger.warning("Who else serves this database cannot be told: %s", error)


def _taken_alone(file: BinaryIO) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
