"""The files of the log: ``<project>/YYYYMMDD_HHMMSS.jsonl`` in one folder.

Each process writes files of its own, which it makes with ``O_EXCL``, so that no two processes or
hosts write one. A line that was cut short by a crash is the last of its file for ever.
"""

from __future__ import annotations

import os
import re
import threading
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from chatapp.activity.lines import NO_PROJECT, REMOVED

#: Name of the file in which a folder keeps the word that it is known by in the index.
PLACE: Final = ".place"
#: Processes that begin a file in one second.
MOST_AT_ONCE: Final = 1_000
#: Bytes of the longest line that is read: a request of a million tokens, escaped.
LONGEST_LINE: Final = 64 * 1024 * 1024

_NAME = re.compile(r"[a-z0-9_-]{1,64}/\d{8}_\d{6}\.jsonl", re.ASCII)
_PLACE = re.compile(r"[0-9a-f]{32}", re.ASCII)
_NOT_IN_A_FOLDER = re.compile(r"[^a-z0-9_-]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """The place of a line. ``file`` is relative to the folder; ``length`` counts its newline."""

    file: str
    offset: int
    length: int


def folder_of(project: str) -> str:
    """The name of a project's folder: its slug, made harmless."""
    return _NOT_IN_A_FOLDER.sub("_", project.lower())[:64] or NO_PROJECT


class LogFiles:
    """The files below one folder. Synchronous; any thread may call it."""

    def __init__(self, directory: str, most_bytes: int) -> None:
        self._root = Path(directory)
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._current: dict[str, str] = {}
        self._place = ""

    def place(self) -> str:
        """The word by which the index knows this folder, whichever hosts share it.

        Raises OSError.
        """
        if not self._place:
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
            path = self._root / PLACE
            # Written beside and linked, so that no other process reads half of it.
            new = self._root / f"{PLACE}-{uuid.uuid4().hex}"
            if not path.exists():
                _write_new(new, uuid.uuid4().hex.encode())
                with suppress(FileExistsError):
                    os.link(new, path)
                new.unlink()
            word = path.read_text("ascii", errors="replace").strip()
            if not _PLACE.fullmatch(word):
                raise OSError(f"{PLACE} in the folder of the log is not its name")
            self._place = word
        return self._place

    def append(self, project: str, line: bytes) -> Position:
        """Write a line at the end of this process's file of a project. Raises OSError."""
        with self._lock:
            folder = folder_of(project)
            try:
                return self._append(folder, line)
            except FileNotFoundError:
                # The file was moved or deleted: go on in a new one.
                self._current.pop(folder, None)
                return self._append(folder, line)

    def _append(self, folder: str, line: bytes) -> Position:
        name = self._current.get(folder) or self._begin(folder)
        descriptor = self._open(name, os.O_WRONLY | os.O_APPEND)
        try:
            offset = os.fstat(descriptor).st_size
            full = offset + len(line) > self._most_bytes
            if not offset or not (full or self._is_of_before(name)):
                self._write(folder, descriptor, line)
                return Position(file=name, offset=offset, length=len(line))
        finally:
            os.close(descriptor)
        self._begin(folder)
        return self._append(folder, line)

    def _write(self, folder: str, descriptor: int, line: bytes) -> None:
        try:
            written = 0
            while written < len(line):
                written += os.write(descriptor, line[written:])
        except OSError:
            # What is half written stays the last line of its file.
            self._current.pop(folder, None)
            raise

    def _begin(self, folder: str) -> str:
        """A new file, whose name is the time, or the next one that is free."""
        (self._root / folder).mkdir(mode=0o700, parents=True, exist_ok=True)
        now = datetime.now(UTC)
        for second in range(MOST_AT_ONCE):
            name = f"{folder}/{now + timedelta(seconds=second):%Y%m%d_%H%M%S}.jsonl"
            with suppress(FileExistsError):
                _write_new(self._root / name, b"")
                self._current[folder] = name
                return name
        raise FileExistsError(f"no free name for a file of the log in {folder}")

    @staticmethod
    def _is_of_before(name: str) -> bool:
        """Whether a file was begun on an earlier day: each day has files of its own."""
        return name[-21:-13] < f"{datetime.now(UTC):%Y%m%d}"

    def read(self, position: Position) -> bytes | None:
        """A line as written; None if its file is not here."""
        if not _NAME.fullmatch(position.file) or position.length > LONGEST_LINE:
            return None
        try:
            descriptor = self._open(position.file, os.O_RDONLY)
        except OSError:
            return None
        with os.fdopen(descriptor, "rb") as file:
            file.seek(position.offset)
            return file.read(position.length)

    def remove_line(self, position: Position) -> None:
        """Overwrite a line, so that those around it stay where they are. Raises OSError.

        Nothing happens if the file is gone. The time of its last change stays.
        """
        if not _NAME.fullmatch(position.file):
            return
        try:
            descriptor = self._open(position.file, os.O_WRONLY)
        except FileNotFoundError:
            return
        try:
            before = os.fstat(descriptor)
            if position.offset + position.length <= before.st_size:
                padded = REMOVED.ljust(position.length - 1)[: position.length - 1] + b"\n"
                os.pwrite(descriptor, padded, position.offset)
                os.fsync(descriptor)
                os.utime(descriptor, ns=(before.st_atime_ns, before.st_mtime_ns))
        finally:
            os.close(descriptor)

    def names(self) -> list[str]:
        """Every file, oldest first in each folder."""
        found = (path.relative_to(self._root).as_posix() for path in self._root.glob("*/*.jsonl"))
        return sorted(name for name in found if _NAME.fullmatch(name))

    def size_and_age(self, name: str, now: datetime) -> tuple[int, float]:
        """Bytes of a file, and seconds since its last change. Raises OSError."""
        told = (self._root / name).stat()
        return told.st_size, now.timestamp() - told.st_mtime

    def lines(self, name: str, offset: int) -> Iterator[tuple[Position, bytes]]:
        """The whole lines of a file from ``offset`` on. Raises OSError."""
        with os.fdopen(self._open(name, os.O_RDONLY), "rb") as file:
            file.seek(offset)
            while (raw := file.readline(LONGEST_LINE)).endswith(b"\n"):
                yield Position(file=name, offset=offset, length=len(raw)), raw
                offset += len(raw)

    def delete_older(self, before: datetime) -> int:
        """Delete files whose last line was written before a time. Returns how many.

        So are those of an earlier form, which lie in the folder itself.
        """
        deleted = 0
        for path in (*self._root.glob("activity-*.jsonl"), *self._root.glob("*/*.jsonl")):
            with suppress(OSError):
                if path.lstat().st_mtime < before.timestamp():
                    path.unlink()
                    deleted += 1
        return deleted

    def _open(self, name: str, flags: int) -> int:
        return os.open(self._root / name, flags | os.O_NOFOLLOW | os.O_CLOEXEC)


def _write_new(path: Path, content: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    try:
        os.write(descriptor, content)
    finally:
        os.close(descriptor)
