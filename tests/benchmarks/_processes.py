"""The processes of a benchmark: started, measured by what the kernel says of them, ended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.servers import ROOT, RunningServer, manage

TICKS = os.sysconf("SC_CLK_TCK")
SESSIONS = 20
# A person may open 20 sockets, so that 200 streams take more than ten people.
_MAKE_SESSIONS = """
import json
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY, get_user_model
from django.contrib.sessions.backends.db import SessionStore
keys = []
for number in range({count}):
    user = get_user_model().objects.create_user(f"viewer-{{number}}")
    store = SessionStore()
    store[SESSION_KEY] = str(user.pk)
    store[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    store[HASH_SESSION_KEY] = user.get_session_auth_hash()
    store.save()
    keys.append(store.session_key)
print(json.dumps(keys))
"""


def cpu_seconds(pid: int) -> float:
    """User and system time that a process has taken so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def resident_bytes(pid: int) -> int:
    """Memory of a process that is in RAM."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def keep_to(pid: int, *, server: bool) -> None:
    """Servers get one core for themselves, everything else the others; nothing on one core."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) > 1:
        for thread in os.listdir(f"/proc/{pid}/task"):
            os.sched_setaffinity(int(thread), cores[:1] if server else cores[1:])


@contextmanager
def announced(
    *command: str, env: Mapping[str, str] | None = None, server: bool = False
) -> Iterator[tuple[str, int]]:
    """A Python module as a process that prints ``Serving on <address>``; the address and its pid.

    It is killed at the end.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", *command],
        cwd=ROOT,
        env={**os.environ, **(env or {})},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().removeprefix("Serving on ").strip()
        assert address, f"{command[0]} did not start"
        keep_to(process.pid, server=server)
        yield address, process.pid
    finally:
        process.kill()
        process.communicate()


class Viewers:
    """The process of :mod:`tests.benchmarks._viewers`; a context manager."""

    def __enter__(self) -> Viewers:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.benchmarks._viewers"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        keep_to(self._process.pid, server=False)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()

    def begin(self, **task: Any) -> None:
        """Hand a task over."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(task) + "\n")
        self._process.stdin.flush()

    def line(self) -> str:
        """The next line that it says."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        assert line, "the viewers ended"
        return line

    def do(self, **task: Any) -> dict[str, Any]:
        """Hand a task over and wait for its result."""
        self.begin(**task)
        result: dict[str, Any] = json.loads(self.line())
        return result


def sessions(server: RunningServer) -> list[str]:
    """Session keys of new people, all signed in."""
    code = _MAKE_SESSIONS.format(count=SESSIONS)
    keys: list[str] = json.loads(manage(server, "shell", "--no-imports", "-c", code))
    return keys


def seconds_to_serve(server: RunningServer) -> float:
    """From the start of a second process on the same database to its announcement."""
    begun = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "manage.py", "serve", "--no-prepare", "--port", "0"],
        cwd=ROOT,
        env=server.environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("Serving on")
        return time.monotonic() - begun
    finally:
        process.kill()
        process.wait()
