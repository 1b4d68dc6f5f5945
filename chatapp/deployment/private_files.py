"""Files and folders that only the user who runs the program may read: modes 0600 and 0700.

The database holds all conversations; `var/` also holds the key that signs sessions.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

OTHERS = stat.S_IRWXG | stat.S_IRWXO
#: Suffixes of what SQLite and :mod:`chatapp.deployment.process_lock` put beside a database.
COMPANIONS = ("", "-wal", "-shm", "-journal", "-serving")
#: The folder within `var/` that everybody may read: the static files.
PUBLIC = "static"


def keep_private(var: Path, database: Path | None) -> None:
    """Make new files private, and existing ones that others can read.

    ``database`` is SQLite's file, anywhere. Its folder is left alone outside of ``var``, since it
    may be shared. Files of other users stay as they are; a system check reports them.
    """
    os.umask(OTHERS)
    for path in open_to_others(var, database):
        try:
            path.chmod(stat.S_IMODE(path.stat().st_mode) & ~OTHERS)
        except OSError:
            continue


def open_to_others(var: Path, database: Path | None) -> Iterator[Path]:
    """The program's folders and files that others can read, write or enter."""
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
        # The target of a link is not ours to change.
        inside = (Path(folder, name) for name in (*names, *files))
        yield from (path for path in inside if not path.is_symlink())
