"""Files and folders that only the user who runs the program may read: 0600 and 0700.

The database holds every conversation, and `var/` the key that signs sessions besides.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

OTHERS = stat.S_IRWXG | stat.S_IRWXO
#: What SQLite and :mod:`chatapp.deployment.process_lock` put beside a database's file.
COMPANIONS = ("", "-wal", "-shm", "-journal", "-serving")
#: Within `var/`, what everybody gets to see anyway: the static files.
PUBLIC = "static"


def keep_private(var: Path, database: Path | None) -> None:
    """Let nothing be written from now on that others can read, and close what they can.

    ``database`` is SQLite's file, wherever it lies; its folder is left as it is outside of
    ``var``, since it may be shared. What belongs to somebody else stays open: a system check
    says so.
    """
    os.umask(OTHERS)
    for path in open_to_others(var, database):
        try:
            path.chmod(stat.S_IMODE(path.stat().st_mode) & ~OTHERS)
        except OSError:
            continue


def open_to_others(var: Path, database: Path | None) -> Iterator[Path]:
    """The folders and files of the program that others can read, write or enter."""
    for path in _private(var, database):
        try:
            mode = path.stat().st_mode
        except OSError:
            continue
        if mode & OTHERS:
            yield path


def _private(var: Path, database: Path | None) -> Iterator[Path]:
    if database is not None:
        real = os.path.realpath(database)
        yield from (Path(real + companion) for companion in COMPANIONS)
    if not var.is_dir():
        return
    yield var
    for folder, names, files in os.walk(var):
        if Path(folder) == var and PUBLIC in names:
            names.remove(PUBLIC)
        # Where a link leads is not ours to close.
        inside = (Path(folder, name) for name in (*names, *files))
        yield from (path for path in inside if not path.is_symlink())
