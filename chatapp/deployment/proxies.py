"""The client's address behind proxies, from the X-Forwarded-For entry of a trusted one.

Each proxy appends the address that it was reached from, after whatever the sender wrote. So entries
are counted from the end: with two proxies, the last but one is the address that the outer proxy
saw.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Application = Callable[[Scope, Any, Any], Awaitable[None]]

# Some proxies append the port: 192.0.2.1:443, [2001:db8::1]:443.
_ENTRY = re.compile(r"\[(?P<in_brackets>[^\]]*)\](?::\d+)?|(?P<with_port>[\d.]+):\d+|(?P<bare>.*)")


def forwarded_for(headers: Iterable[tuple[bytes, bytes]], proxies: int) -> str | None:
    """The address that the outermost of ``proxies`` trusted proxies saw; None if there is none.

    With fewer entries than proxies, the request did not pass all of them, and nothing in the header
    is trusted.
    """
    lines = [value for name, value in headers if name.lower() == b"x-forwarded-for"]
    entries = [entry.strip() for entry in b",".join(lines).decode("latin-1").split(",")]
    if not lines or not 0 < proxies <= len(entries):
        return None
    found = _ENTRY.fullmatch(entries[-proxies])
    try:
        return str(ipaddress.ip_address(next(filter(None, found.groups()), "") if found else ""))
    except ValueError:
        return None


def behind(application: Application, proxies: int) -> Application:
    """The ASGI application with ``scope["client"]`` replaced by the address behind the proxies."""

    async def told(scope: Scope, receive: Any, send: Any) -> None:
        address = forwarded_for(scope.get("headers", ()), proxies)
        # 0, because the known port is the proxy's.
        here = scope if address is None else {**scope, "client": [address, 0]}
        await application(here, receive, send)

    return told if proxies else application
