"""The end of a request whose client goes away before the answer is sent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any


async def disconnected(receive: Callable[[], Awaitable[MutableMapping[str, Any]]]) -> None:
    """Return when the client is gone; takes the place of Django's ``listen_for_disconnect``.

    Django raises an exception there and ignores it. But its traceback refers to what refers to it,
    and to the whole answer, which would stay in memory until the garbage collector looks at
    everything old: sixty megabytes when one person abandons page after page.
    """
    message = await receive()
    assert message["type"] == "http.disconnect", message["type"]
