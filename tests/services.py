"""Start what tests need beside Python, run one command with it, and stop it again.

    python -m tests.services [--database] [--redis] [--chromium] -- command …

A PostgreSQL and a Redis given by DATABASE_URL and REDIS_URL are used as they are. Else the
system's programs are started on free ports in a temporary folder; a program that is missing is
installed with apt-get when this user may, and is a failure with the command that helps otherwise.
The exit status is the command's.
"""

from __future__ import annotations

import argparse
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg.sql import SQL, Identifier

from tests.browsers import ChromiumMissing, find_chromium
from tests.ports import free_port

#: Seconds that a service may take to answer; both take less than two on an idle computer.
START_TIMEOUT = 60
#: PostgreSQL refuses to run as root; the first of these that exists runs it then.
UNPRIVILEGED = ("postgres", "nobody")


class ServiceMissing(RuntimeError):
    """Something is not here and cannot be installed; the message holds the command that helps."""


def install(package: str, what: str) -> None:
    """apt-get install, when this user may. Raises ServiceMissing with the command otherwise."""
    command = f"apt-get update && apt-get install -y --no-install-recommends {package}"
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise ServiceMissing(f"Tests need {what}. As root: {command}")
    print(f"Installing {package} …", file=sys.stderr, flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(
        command, shell=True, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise ServiceMissing(
            f"Tests need {what}, and installing it failed ({last}). Try: {command}"
        )


def ensure_chromium() -> str:
    """Path of Chromium, installed if need be."""
    try:
        return find_chromium()
    except ChromiumMissing:
        if os.environ.get("CHROMIUM"):
            raise
        install("chromium", "Chromium")
        return find_chromium()


def ensure_nginx() -> str:
    """Path of nginx, installed if need be."""
    places = os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin"
    found = shutil.which("nginx", path=places)
    if found is None:
        install("nginx-light", "nginx")
        found = shutil.which("nginx", path=places)
    if found is None:
        raise ServiceMissing("nginx was installed but is not to be found.")
    return found


def postgres_folder() -> Path | None:
    """The folder that holds initdb and postgres, newest version first."""
    folders = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"),
        key=lambda folder: float(folder.parent.name),
        reverse=True,
    )
    for folder in folders:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    found = shutil.which("initdb")
    if found and Path(found).resolve().with_name("postgres").exists():
        return Path(found).resolve().parent
    return None


def _unprivileged() -> list[str]:
    """What to put before a command so that it does not run as root; nothing when we are not."""
    if os.geteuid() != 0:
        return []
    known = {entry.pw_name for entry in pwd.getpwall()}
    name = next((name for name in UNPRIVILEGED if name in known), None)
    if name is None:
        raise ServiceMissing("PostgreSQL does not run as root. Try: useradd --system postgres")
    entry = pwd.getpwnam(name)
    return ["setpriv", f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--clear-groups", "--"]


def _run(command: Sequence[str], cwd: Path) -> None:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ServiceMissing(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")


@contextmanager
def _process(
    command: Sequence[str], probe: Sequence[str], folder: Path, stop: signal.Signals
) -> Iterator[None]:
    """Run ``command`` until the block ends; enter the block once ``probe`` succeeds."""
    log = folder / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=folder, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        deadline = time.monotonic() + START_TIMEOUT
        while subprocess.run(probe, capture_output=True, check=False).returncode:
            if process.poll() is not None or time.monotonic() > deadline:
                raise ServiceMissing(f"{command[-1]} did not start:\n{log.read_text()}")
            time.sleep(0.05)
        yield
    finally:
        # setpriv replaces itself, so that this is the service.
        process.send_signal(stop)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def postgres() -> Iterator[str]:
    """A DATABASE_URL: the environment's, else a throw-away server's."""
    given = os.environ.get("DATABASE_URL", "")
    if given.startswith("postgres"):
        yield given
        return
    binaries = postgres_folder()
    if binaries is None:
        install("postgresql", "PostgreSQL")
        binaries = postgres_folder()
        if binaries is None:
            raise ServiceMissing("PostgreSQL was installed but initdb was not found.")
    with tempfile.TemporaryDirectory(prefix="palimpsest-postgres-") as name:
        folder = Path(name)
        rights = _unprivileged()
        if rights:
            os.chown(folder, int(rights[1].partition("=")[2]), int(rights[2].partition("=")[2]))
        data, port = folder / "data", free_port()
        initdb = [str(binaries / "initdb"), "-D", str(data), "-U", "tests", "-A", "trust"]
        _run([*rights, *initdb, "-E", "UTF8", "--locale=C", "--no-sync"], folder)
        # Nothing here has to survive a power cut.
        options = ["fsync=off", "synchronous_commit=off", "full_page_writes=off"]
        server = [str(binaries / "postgres"), "-D", str(data), "-k", str(folder)]
        server += ["-p", str(port), "-h", "127.0.0.1", "-N", "300"]
        for option in options:
            server += ["-c", option]
        probe = [str(binaries / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(port)]
        with _process([*rights, *server], probe, folder, signal.SIGINT):
            yield f"postgres://tests@127.0.0.1:{port}/postgres"


@contextmanager
def own_database(server: str) -> Iterator[str]:
    """A DATABASE_URL: a new, empty database on a PostgreSQL server, dropped at the end."""
    name = f"palimpsest_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(SQL("CREATE DATABASE {}").format(Identifier(name)))
    yield urlunsplit(urlsplit(server)._replace(path=f"/{name}"))
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(SQL("DROP DATABASE {} WITH (FORCE)").format(Identifier(name)))


@contextmanager
def redis() -> Iterator[str]:
    """A REDIS_URL: the environment's, else a throw-away server's."""
    given = os.environ.get("REDIS_URL", "")
    if given:
        yield given
        return
    if shutil.which("redis-server") is None or shutil.which("redis-cli") is None:
        install("redis-server", "Redis")
    with tempfile.TemporaryDirectory(prefix="palimpsest-redis-") as name:
        port = str(free_port())
        server = ["redis-server", "--port", port, "--bind", "127.0.0.1"]
        server += ["--save", "", "--appendonly", "no", "--dir", name]
        probe = ["redis-cli", "-p", port, "ping"]
        with _process(server, probe, Path(name), signal.SIGTERM):
            yield f"redis://127.0.0.1:{port}/0"


def run(command: Sequence[str], *, database: bool, channel_layer: bool, chromium: bool) -> int:
    """Run ``command`` with what was asked for in its environment; its exit status."""
    environment = dict(os.environ)
    with ExitStack() as stack:
        if chromium:
            environment["CHROMIUM"] = ensure_chromium()
        if database:
            environment["DATABASE_URL"] = stack.enter_context(postgres())
        if channel_layer:
            environment["REDIS_URL"] = stack.enter_context(redis())
        child = subprocess.Popen(command, env=environment)
        # Who ends us by another signal has not told the child.
        stack.callback(_end, child)
        while True:
            try:
                return child.wait()
            except KeyboardInterrupt:
                # The terminal told the child as well; its end is ours.
                continue


def _end(child: subprocess.Popen[bytes]) -> None:
    """Ask a process that still runs to end in an orderly way, and wait for it."""
    if child.poll() is None:
        child.send_signal(signal.SIGINT)
        try:
            child.wait(30)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def main(arguments: Sequence[str]) -> int:
    """The command line; 1 and a sentence when something is missing."""
    parser = argparse.ArgumentParser(prog="python -m tests.services", description=__doc__)
    parser.add_argument("--database", action="store_true", help="PostgreSQL, as DATABASE_URL")
    parser.add_argument("--redis", action="store_true", help="Redis, as REDIS_URL")
    parser.add_argument("--chromium", action="store_true", help="Chromium, as CHROMIUM")
    parser.add_argument("command", nargs="+")
    asked = parser.parse_args(arguments)
    try:
        return run(
            asked.command,
            database=asked.database,
            channel_layer=asked.redis,
            chromium=asked.chromium,
        )
    except (ServiceMissing, ChromiumMissing) as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    # Services end with us, whoever ends us.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main(sys.argv[1:]))
