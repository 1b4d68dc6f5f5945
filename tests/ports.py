"""Ports for servers: given once a run, so that one that was stopped is nobody else's meanwhile.

The kernel gives ports from 32768 upward to whoever asks for any, and to each outgoing connection.
A server that begins later at a port found so, or begins anew after it was stopped, finds it taken
now and then; and a client of a stopped server may reach another test's.
"""

from __future__ import annotations

import fcntl
import os
import random
import socket
from pathlib import Path

#: Below those that the kernel gives (Linux: 32768, macOS: 49152), above well-known services.
FIRST, LAST = 15_000, 32_000


def free_port() -> int:
    """A TCP port of 127.0.0.1 at which nothing listens, and that no other call of this run gets."""
    folder = os.environ.get("TESTS_FOLDER")
    if folder is None:
        return _first_free(random.randrange(FIRST, LAST))
    with (Path(folder) / "ports").open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        port = _first_free(int(file.read() or random.randrange(FIRST, LAST)))
        file.truncate(0)
        file.write(str(_after(port)))
    return port


def _first_free(port: int) -> int:
    for _ in range(LAST - FIRST):
        with socket.socket() as probe:
            # Connections that a server's end left behind do not stand in the way.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                port = _after(port)
            else:
                return port
    raise OSError(f"No port from {FIRST} to {LAST} is free.")


def _after(port: int) -> int:
    return port + 1 if port < LAST else FIRST
