"""The real product as a subprocess, for tests that need its sockets, its end, or a browser."""

from __future__ import annotations

import atexit
import fcntl
import functools
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.forks import Fork, completed
from tests.ports import free_port

ROOT = Path(__file__).resolve().parent.parent
#: Seconds from the start of the process to its printed line. It takes two; a busy computer more.
START_TIMEOUT = 60
#: Seconds that an orderly end may take: the server gives running turns 10 of them.
STOP_TIMEOUT = 20
_SERVING = re.compile(r"^Serving on (\S+)$", re.MULTILINE)
_SIGN_IN = re.compile(r"^Sign in: (\S+)$", re.MULTILINE)


class ServerDied(RuntimeError):
    """The process ended before it served; the message holds its log."""


@dataclass(kw_only=True)
class RunningServer:
    """One process of the product, in a process group of its own."""

    process: subprocess.Popen[str] | Fork
    base_url: str
    """Scheme, host and port, without a slash at the end."""
    signin_link: str
    """Empty when the server was started with ``prepare=False``."""
    environment: dict[str, str]
    """What it was started with; give it to :func:`manage` or to a second server."""
    _lines: list[str] = field(default_factory=list)
    _reader: threading.Thread | None = None

    @property
    def log(self) -> str:
        """Everything that it has printed so far, errors included."""
        return "".join(self._lines)

    @property
    def port(self) -> int:
        """The port of ``base_url``."""
        return int(self.base_url.rpartition(":")[2])

    @property
    def origin(self) -> str:
        """What a browser on its pages sends as Origin."""
        return self.base_url

    @property
    def websocket_url(self) -> str:
        """``base_url`` for websockets."""
        return self.base_url.replace("http", "ws", 1)

    def kill(self) -> None:
        """SIGKILL: nothing is flushed. Returns when the process is gone."""
        self._end(signal.SIGKILL)

    def terminate(self) -> int:
        """SIGTERM, the orderly end. Returns the exit status; kills after STOP_TIMEOUT seconds."""
        try:
            return self._end(signal.SIGTERM)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def _end(self, number: signal.Signals) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        status = self.process.wait(STOP_TIMEOUT)
        if self._reader is not None:
            self._reader.join(STOP_TIMEOUT)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return status


@functools.cache
def _prepared() -> Path:
    """A folder with the product's static files and a migrated database, as `make run` makes them.

    Made once a run: its workers share the folder that TESTS_FOLDER names.
    """
    folder = Path(os.environ.get("TESTS_FOLDER") or _folder_of_this_process())
    with (folder / "preparing").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = folder / "prepared"
        if not done.exists():
            _prepare(folder)
            done.touch()
    return folder


def _folder_of_this_process() -> str:
    folder = tempfile.mkdtemp(prefix="palimpsest-servers-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _prepare(folder: Path) -> None:
    commands = (
        "import django; django.setup(); from django.core.management import call_command as call;"
        "call('collectstatic', interactive=False, verbosity=0);"
        "call('migrate', interactive=False, verbosity=0)"
    )
    environment = _inherited() | {
        "DJANGO_SETTINGS_MODULE": "tests.server_settings",
        "TESTS_STATIC_ROOT": str(folder / "static"),
        "DATABASE_URL": f"sqlite:///{folder / 'migrated.sqlite3'}",
        "SECRET_KEY": "only-for-tests-" + "y" * 50,
        "ALLOWED_HOSTS": "127.0.0.1",
        "ALLOWED_ORIGINS": "http://127.0.0.1",
    }
    subprocess.run(
        [sys.executable, "-c", commands],
        cwd=ROOT,
        env=environment,
        check=True,
        timeout=START_TIMEOUT,
    )


def _begin_migrated(url: str) -> None:
    """Give a server the tables that its own ``migrate`` would make: that takes two seconds."""
    file = Path(url.removeprefix("sqlite:///"))
    if url.startswith("sqlite:///") and not file.exists():
        shutil.copyfile(_prepared() / "migrated.sqlite3", file)


def _inherited() -> dict[str, str]:
    names = {"PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "VIRTUAL_ENV"}
    return {name: value for name, value in os.environ.items() if name in names}


def server_environment(folder: Path, port: int, **env: str) -> dict[str, str]:
    """The whole environment of a server whose files lie in ``folder``; ``env`` has the last word.

    DATABASE_URL and REDIS_URL of the tests' own environment are not handed on: a server's data
    is its own unless a test says otherwise.
    """
    return {
        **_inherited(),
        "PYTHONUNBUFFERED": "1",
        "DJANGO_SETTINGS_MODULE": "tests.server_settings",
        "TESTS_STATIC_ROOT": str(_prepared() / "static"),
        # A deployment's own, as its folder is: the bus of another one is not heard.
        "SECRET_KEY": "only-for-tests-" + hashlib.sha256(bytes(folder)).hexdigest(),
        "ALLOWED_HOSTS": "127.0.0.1,localhost",
        "ALLOWED_ORIGINS": f"http://127.0.0.1:{port}",
        "DATABASE_URL": f"sqlite:///{folder / 'server.sqlite3'}",
        "ACTIVITY_LOG_DIR": str(folder / "activity"),
        "IMPORT_DIR": str(folder / "imports"),
        "AUTOMATIC_TITLES": "false",
        "PORT": str(port),
        **env,
    }


def start_server(
    tmp_path: Path,
    *,
    prepare: bool = True,
    fresh: bool = False,
    port: int = 0,
    arguments: Sequence[str] = (),
    **env: str,
) -> RunningServer:
    """Start ``manage.py serve`` and return once it answers. Raises ServerDied with its log.

    ``port`` 0 takes a free one. ``prepare=False`` neither migrates nor makes an owner: for a
    second process beside a first. ``fresh``: no SQLite file is there before the first start, where
    otherwise there is one with tables and without rows. ``arguments`` are further ones of
    ``serve``. ``env`` adds to or replaces environment variables, as in ``DATABASE_URL=…`` or
    ``OPENAI_BASE_URL=…``.
    """
    chosen = port or free_port()
    environment = server_environment(tmp_path, chosen, **env)
    if prepare and not fresh:
        _begin_migrated(environment["DATABASE_URL"])
    command = ["serve", "--port", str(chosen), *arguments]
    process = _process(command if prepare else [*command, "--no-prepare"], environment)
    lines: list[str] = []
    ready = threading.Event()
    reader = threading.Thread(target=_read, args=(process, lines, ready, prepare), daemon=True)
    reader.start()
    served = ready.wait(START_TIMEOUT)
    text = "".join(lines)
    serving, sign_in = _SERVING.search(text), _SIGN_IN.search(text)
    server = RunningServer(
        process=process,
        base_url=serving[1] if serving else "",
        signin_link=sign_in[1] if sign_in else "",
        environment=environment,
        _lines=lines,
        _reader=reader,
    )
    if not served or serving is None or process.poll() is not None:
        server.kill()
        raise ServerDied(f"The server did not start.\n{server.log}")
    return server


def _process(command: Sequence[str], environment: dict[str, str]) -> subprocess.Popen[str] | Fork:
    # A benchmark measures what a server takes that imports everything itself.
    if "PYTEST_VERSION" in os.environ:
        return Fork(command, environment)
    return subprocess.Popen(
        [sys.executable, "manage.py", *command],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )


def _read(
    process: subprocess.Popen[str] | Fork,
    lines: list[str],
    ready: threading.Event,
    prepare: bool,
) -> None:
    """Collect the log; ``ready`` is set at the last line of the announcement, or at the end."""
    assert process.stdout is not None
    last = "Sign in: " if prepare else "Serving on "
    for line in process.stdout:
        lines.append(line)
        if line.startswith(last) or line.startswith("No sign-in link"):
            ready.set()
    ready.set()


def manage(server: RunningServer, *arguments: str) -> str:
    """Run ``manage.py`` with the server's environment; its output. Raises CalledProcessError."""
    done = completed(arguments, server.environment, START_TIMEOUT)
    done.check_returncode()
    return done.stdout


def status_of(url: str) -> int:
    """HTTP status of a GET without cookies; redirects are followed."""
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code
