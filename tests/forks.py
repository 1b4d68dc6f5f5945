"""``manage.py`` in a process that has imported the libraries already: a fork of one that did.

To everybody else it is a process like any other. It has a number, an environment and a process
group of its own, is killed by signals, and its exit status is told.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from io import TextIOWrapper
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TextIO

ROOT = Path(__file__).resolve().parent.parent
_CONTEXT = multiprocessing.get_context("forkserver")


class Fork:
    """A running ``manage.py``, with those attributes of ``subprocess.Popen`` that tests use."""

    def __init__(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        files: tuple[Path, Path] | None = None,
    ) -> None:
        _CONTEXT.set_forkserver_preload(["tests.preloaded"])
        reading, writing = _CONTEXT.Pipe(duplex=False)
        self._process: BaseProcess = _CONTEXT.Process(
            target=_run,
            args=(["manage.py", *arguments], dict(environment), writing, files),
            daemon=True,
        )
        self._process.start()
        writing.close()
        self.stdout: TextIO = os.fdopen(os.dup(reading.fileno()), errors="replace")
        """What it prints, errors included, unless it was given ``files``."""
        reading.close()

    @property
    def pid(self) -> int:
        """Its number."""
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """Its exit status, negative for the signal that ended it; None while it runs."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """The same."""
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end. Raises subprocess.TimeoutExpired."""
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired("manage.py", timeout or 0.0)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.returncode is None:
            # It may have ended a moment ago.
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)


def completed(
    arguments: Sequence[str], environment: Mapping[str, str], timeout: float
) -> subprocess.CompletedProcess[str]:
    """Run it to its end, as ``subprocess.run`` does with captured text. Raises TimeoutExpired."""
    with tempfile.TemporaryDirectory() as folder:
        output, errors = Path(folder, "output"), Path(folder, "errors")
        fork = Fork(arguments, environment, (output, errors))
        fork.stdout.close()
        try:
            status = fork.wait(timeout)
        finally:
            fork.kill()
        return subprocess.CompletedProcess(
            arguments, status, output.read_text("utf-8"), errors.read_text("utf-8")
        )


def _run(
    command: list[str],
    environment: dict[str, str],
    output: Connection,
    files: tuple[Path, Path] | None,
) -> None:
    """Become the program, which prints to ``output``, or its output and its errors to ``files``."""
    os.setsid()
    for stream in (1, 2):
        if files is None:
            os.dup2(output.fileno(), stream)
        else:
            with files[stream - 1].open("w") as file:
                os.dup2(file.fileno(), stream)
    output.close()
    for text in (sys.stdout, sys.stderr):
        assert isinstance(text, TextIOWrapper)
        text.reconfigure(line_buffering=True)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(ROOT)
    sys.argv[:] = command
    try:
        runpy.run_path(command[0], run_name="__main__")
    finally:
        # A process of multiprocessing ends without them.
        atexit._run_exitfuncs()
