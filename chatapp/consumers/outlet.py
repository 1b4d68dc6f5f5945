"""The way out of one socket: each event in the format that the viewer asked for."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from functools import partial

from chatapp.live.bus import Published
from chatapp.live.events import Event
from chatapp.rendering import fragments
from chatapp.rendering.pool import RenderingPool


class Outlet:
    """Sends events as JSON objects or as HTML fragments; ``send`` takes the text of a frame."""

    def __init__(
        self,
        send: Callable[[str], Awaitable[None]],
        pool: RenderingPool,
        *,
        user_id: int,
        as_json: bool,
    ) -> None:
        self._send = send
        self._pool = pool
        self._user_id = user_id
        self._as_json = as_json

    async def send_event(self, event: Event) -> None:
        """Send an event that is this viewer's own."""
        if self._as_json:
            await self._send(json.dumps(event.as_json()))
        else:
            # Rendering thirty messages takes too long for the event loop.
            await self._pool.ahead(self._user_id, fragments.bodies_of(event))
            render = partial(fragments.render_event, event)
            await self._send(await self._pool.run(self._user_id, render))

    async def send_published(self, published: Published) -> None:
        """Send an event that was made for all viewers."""
        await self._send(json.dumps(published.json) if self._as_json else published.html)
