"""Several processes behind nginx on this machine: ``python -m chatapp.deployment.many``.

Migrates the database, creates the owner if necessary, starts one ``manage.py serve`` for each port
and an nginx in front, and prints the address. Ends them all in order on SIGTERM, on SIGINT, or when
nginx ends. In a deployment systemd does this; see docs/operations.md.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import IO

from chatapp.deployment.nginx import site

ROOT = Path(__file__).resolve().parent.parent.parent
MANAGE = [sys.executable, "manage.py"]
#: Seconds for a process to start, and to stop, which includes storing running replies.
START_TIMEOUT = 60
STOP_TIMEOUT = 20
_NEEDED = ("SECRET_KEY", "ALLOWED_HOSTS", "ALLOWED_ORIGINS", "DATABASE_URL", "REDIS_URL")
_MAIN = """\
daemon off;
pid {folder}/nginx.pid;
error_log stderr warn;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/site.conf;
}}
"""


class CannotStart(Exception):
    """Something is missing or did not start; the message is one sentence."""


@contextmanager
def processes(ports: Sequence[int]) -> Iterator[list[subprocess.Popen[str]]]:
    """A context with a process for each port, entered once all serve. Raises CannotStart."""
    started: list[subprocess.Popen[str]] = []
    readers: list[threading.Thread] = []
    serving = [threading.Event() for _ in ports]
    try:
        for port, serves in zip(ports, serving, strict=True):
            one = _serve(port)
            started.append(one)
            readers.append(threading.Thread(target=_pass_on, args=(one.stdout, serves)))
            readers[-1].start()
        for port, serves, one in zip(ports, serving, started, strict=True):
            if not serves.wait(START_TIMEOUT) or one.poll() is not None:
                raise CannotStart(f"The process on port {port} did not start.")
        yield started
    finally:
        for one in started:
            one.terminate()
        for one in started:
            try:
                one.wait(STOP_TIMEOUT)
            except subprocess.TimeoutExpired:
                one.kill()
                one.wait()
        for reader in readers:
            reader.join()


def _serve(port: int) -> subprocess.Popen[str]:
    command = [*MANAGE, "serve", "--no-prepare", "--behind-proxy", "--port", str(port)]
    return subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True
    )


def _pass_on(lines: IO[str], serves: threading.Event) -> None:
    """Print what a process prints, until its end; sets ``serves`` when it serves or ends."""
    with lines:
        for line in lines:
            if line.startswith("Serving on "):
                serves.set()
            else:
                print(line, end="", flush=True)
    serves.set()


@contextmanager
def proxy(listen: str, ports: Sequence[int]) -> Iterator[subprocess.Popen[bytes]]:
    """A context with an nginx in a temporary folder. Raises CannotStart if there is no nginx."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
    if program is None:
        raise CannotStart("nginx is not installed. On Debian and Ubuntu: apt-get install nginx")
    with tempfile.TemporaryDirectory(prefix="palimpsest-nginx-") as name:
        folder = Path(name)
        # Its workers drop root's rights, and buffer large requests here.
        folder.chmod(0o755)
        servers = [f"127.0.0.1:{port}" for port in ports]
        host = listen.rpartition(":")[0]
        (folder / "site.conf").write_text(site(servers, name=host, listen=listen))
        (folder / "nginx.conf").write_text(_MAIN.format(folder=folder))
        command = [program, "-p", name, "-c", str(folder / "nginx.conf"), "-e", "stderr"]
        if subprocess.run([*command, "-t", "-q"], check=False).returncode:
            raise CannotStart(f"nginx refused its configuration, or {listen} is in use.")
        started = subprocess.Popen(command, start_new_session=True)
        try:
            yield started
        finally:
            started.terminate()
            started.wait()


def run(listen: str, ports: Sequence[int]) -> int:
    """Serve until told to stop. Returns the exit status. Raises CannotStart."""
    missing = [name for name in _NEEDED if not os.environ.get(name)]
    if missing:
        raise CannotStart(f"Several processes need these settings, which have no value: {missing}.")
    for preparing in (["migrate", "--noinput", "-v", "0"], ["ensure_owner"]):
        if subprocess.run([*MANAGE, *preparing], cwd=ROOT, check=False).returncode:
            raise CannotStart(f"manage.py {preparing[0]} failed.")
    with ExitStack() as stack:
        front = stack.enter_context(proxy(listen, ports))
        running = stack.enter_context(processes(ports))
        for number, (port, one) in enumerate(zip(ports, running, strict=True), 1):
            print(f"Process {number} on http://127.0.0.1:{port} pid {one.pid}", flush=True)
        link = [*MANAGE, "signin_link", "--base-url", f"http://{listen}"]
        subprocess.run(link, cwd=ROOT, check=True)
        print(f"Serving on http://{listen}", flush=True)
        return front.wait()


def _end(number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + number)


def main(arguments: Sequence[str]) -> int:
    """Run the command line. Returns 1, with a sentence, if it cannot start."""
    parser = argparse.ArgumentParser(prog="python -m chatapp.deployment.many", description=__doc__)
    parser.add_argument("--listen", default="127.0.0.1:8000", help="where nginx listens")
    parser.add_argument(
        "--ports", type=int, nargs="+", default=[8001, 8002], help="one process is started on each"
    )
    asked = parser.parse_args(arguments)
    if not re.fullmatch(r"[\w.-]+:\d+", asked.listen):
        parser.error("--listen takes address:port")
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _end)
    try:
        return run(asked.listen, asked.ports)
    except CannotStart as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
