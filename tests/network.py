"""The switch that forbids real model calls: sockets of the tests reach this computer only."""

from __future__ import annotations

import ipaddress
import os
import socket
from typing import Any
from urllib.parse import urlsplit

_connect = socket.socket.connect
_connect_ex = socket.socket.connect_ex


class RealNetworkForbidden(RuntimeError):
    """A test tried to reach another computer."""


def _is_ours(address: Any, services: frozenset[str]) -> bool:
    if not isinstance(address, tuple):
        return True  # a path: a Unix socket
    host = str(address[0])
    if host in {"localhost", ""} or host in services:
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _service_addresses() -> frozenset[str]:
    """Names and addresses of the database and the Redis that the environment gives."""
    found: set[str] = set()
    for name in ("DATABASE_URL", "REDIS_URL"):
        host = urlsplit(os.environ.get(name, "")).hostname
        if host:
            found.add(host)
            found.update(str(info[4][0]) for info in socket.getaddrinfo(host, None))
    return frozenset(found)


def forbid() -> None:
    """From now on every connection to another computer raises RealNetworkForbidden."""
    services = _service_addresses()

    def check(address: Any) -> None:
        if not _is_ours(address, services):
            raise RealNetworkForbidden(f"Tests reach this computer only, not {address!r}.")

    def connect(self: socket.socket, address: Any) -> None:
        check(address)
        _connect(self, address)

    def connect_ex(self: socket.socket, address: Any) -> int:
        check(address)
        return _connect_ex(self, address)

    socket.socket.connect = connect  # type: ignore[method-assign,assignment]
    socket.socket.connect_ex = connect_ex  # type: ignore[method-assign,assignment]


def allow() -> None:
    """Undo :func:`forbid`."""
    socket.socket.connect = _connect  # type: ignore[method-assign]
    socket.socket.connect_ex = _connect_ex  # type: ignore[method-assign]
