from __future__ import annotations

import fcntl
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from chatapp.deployment.process_lock import ProcessLock

# Another process takes the lock, says so, and stays until it is killed.
OTHER = """
import pathlib, sys, time
from chatapp.deployment.process_lock import ProcessLock
lock = ProcessLock(pathlib.Path(sys.argv[1]))
lock.acquire(lambda: print("alone"))
print("here", flush=True)
time.sleep(600)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "server.sqlite3-serving"


@contextmanager
def another(path: Path) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """A process that holds the lock, and what it said."""
    command = [sys.executable, "-c", OTHER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            said: list[str] = []
            while not said or said[-1] != "here":
                said.append(process.stdout.readline().strip())
            yield process, said
        finally:
            process.kill()


@contextmanager
def acquired(
    path: Path | None, when_alone: Callable[[], object] | None = None
) -> Iterator[ProcessLock]:
    """As one more process, until the block ends."""
    lock = ProcessLock(path)
    lock.acquire(when_alone)
    try:
        yield lock
    finally:
        if lock._file is not None:
            lock._file.close()


def alone(path: Path) -> bool:
    """Whether a process that takes the lock now is alone."""
    found: list[bool] = []
    with acquired(path, lambda: found.append(True)):
        return bool(found)


def test_it_works(path: Path) -> None:
    assert alone(path)
    with another(path) as (_, said):
        assert said == ["alone", "here"]
        assert not alone(path)
        with another(path) as (_, said):
            assert said == ["here"]


def test_who_is_killed_is_there_no_longer(path: Path) -> None:
    """Breaks when: being there is something that is written, which a killed process leaves."""
    with another(path) as (process, _):
        process.kill()
        process.wait()
        assert path.exists()
        assert alone(path)


def test_nobody_is_alone_beside_one_that_arrived_without_asking(path: Path) -> None:
    """Breaks when: only who asks whether it is alone is counted, or who is here asks again."""
    with acquired(path) as lock:
        assert not alone(path)
        lock.acquire(lambda: pytest.fail("asked when it may hold leases"))


def test_who_is_alone_is_so_until_it_has_taken_over(path: Path) -> None:
    """Breaks when: the lock under which one takes over is shared."""

    def take_over() -> None:
        with path.open("ab") as file, pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)

    with acquired(path, take_over):
        assert not alone(path)


def test_without_a_lock_nobody_is_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """PostgreSQL, or a place that cannot be written: leases tell who lives, and nothing fails."""
    for path in (None, tmp_path / "no" / "such" / "folder"):
        with acquired(path, lambda: pytest.fail("taken over")):
            assert not list(tmp_path.iterdir())
    assert [record.levelname for record in caplog.records] == ["WARNING"]
