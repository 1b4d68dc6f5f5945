"""Following a conversation: events from the bus are passed on, and what they leave out is read.

A viewer's numbers and offsets show where something is missing. Then one ``state`` brings it; and
the database is looked at now and then, since every bus may lose everything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from chatapp.consumers.catching_up import CatchUp
from chatapp.consumers.outlet import Outlet
from chatapp.conversations.viewer_checks import achange_marker
from chatapp.errors import NotFound
from chatapp.live.bus import Bus, Published
from chatapp.live.viewer import Viewer
from chatapp.live.viewer_state import OUTCOME

# Seconds. Looks at the database while a turn is open, and else. Revocation is noticed as fast:
# within 10 s, the time that a look takes included.
LOOK_OPEN = 2.0
LOOK_IDLE = 9.0
# A text that is behind its own events cannot be had: the database takes none. So long it is left.
BEHIND = 0.3


class Follower:
    """Keeps one viewer's screen equal to a fresh page.

    ``signed_in`` asks whether the viewer still is.
    """

    def __init__(
        self,
        conversation_id: int,
        viewer: Viewer,
        catch_up: CatchUp,
        outlet: Outlet,
        bus: Bus,
        signed_in: Callable[[], Awaitable[bool]],
    ) -> None:
        self._conversation_id = conversation_id
        self._viewer = viewer
        self._catch_up = catch_up
        self._outlet = outlet
        self._bus = bus
        self._signed_in = signed_in
        self._ask_who_at = 0.0

    async def follow(self) -> None:
        """Tell the viewer what happens, until it is signed out. Raises NotFound."""
        loop = asyncio.get_running_loop()
        async with self._bus.subscribe(self._conversation_id) as subscription:
            await self._catch_up.tell_state()
            self._ask_who_at = loop.time() + LOOK_IDLE
            look_at = self._look_again_at()
            while True:
                # A stream that never pauses must not put the look off for ever.
                if loop.time() >= look_at:
                    if not await self._still_welcome():
                        return
                    await self._look()
                    look_at = self._look_again_at()
                try:
                    async with asyncio.timeout_at(look_at):
                        published = await subscription.next()
                except TimeoutError:
                    continue
                await self._pass_on(published)
                # A turn that has begun is looked at more often.
                look_at = min(look_at, self._look_again_at())

    def _look_again_at(self) -> float:
        now = asyncio.get_running_loop().time()
        at = min(self._ask_who_at, now + (LOOK_OPEN if self._viewer.open else LOOK_IDLE))
        compressions = self._viewer.compressions
        return min(at, compressions.owed_at) if compressions.owed else at

    async def _still_welcome(self) -> bool:
        """Whether the viewer is signed in: asked as often as an idle socket looks."""
        now = asyncio.get_running_loop().time()
        if now < self._ask_who_at:
            return True
        self._ask_who_at = now + LOOK_IDLE
        return await self._signed_in()

    async def _look(self) -> None:
        """Compare with the database, and tell what the viewer lacks."""
        clock = asyncio.get_running_loop().time
        marker = await achange_marker(self._conversation_id)
        if marker is None:
            raise NotFound
        viewer = self._viewer
        # A layer may lose one of several events of a number: what it brought is read once more.
        unsure = viewer.lossy and not viewer.only_by_state
        if (
            unsure
            or not viewer.agrees(marker.event_no, running=marker.running, opened=marker.opened)
            or viewer.stands_still(marker.written, clock())
        ):
            await self._catch_up.tell_state()
        elif self._catch_up.figures_changed:
            await self._catch_up.tell_context()
        owed = viewer.compressions.owed
        if owed is not None and clock() >= viewer.compressions.owed_at:
            await self._catch_up.tell_owed_end(owed)

    async def _pass_on(self, published: Published | None) -> None:
        if published is None:
            await self._catch_up.tell_state()
        elif published.type == "delta":
            await self._pass_delta_on(published)
        elif published.type in {"compression-progress", "error"}:
            await self._outlet.send_published(published)
        elif published.type == "compression-completed":
            await self._pass_end_on(published)
        elif not self._viewer.has(published.event_no):
            if self._viewer.misses_before(published.event_no):
                await self._catch_up.tell_state()
            else:
                self._viewer.note(published)
                await self._outlet.send_published(published)

    async def _pass_delta_on(self, published: Published) -> None:
        """Forward what continues exactly; drop what is known; catch up over a gap."""
        viewer, delta = self._viewer, published.json
        if published.event_no > viewer.seen or viewer.misses_text(delta):
            await self._catch_up.tell_state()
            if viewer.misses_text(delta):
                await asyncio.sleep(BEHIND)
        if viewer.goes_on_with(delta, asyncio.get_running_loop().time()):
            await self._outlet.send_published(published)

    async def _pass_end_on(self, published: Published) -> None:
        """Pass on the end of a run, even where a state has shown already that none runs."""
        viewer = self._viewer
        if viewer.compressions.knows(published.json):
            return
        if viewer.misses_before(published.event_no):
            await self._catch_up.tell_state()
        if viewer.has(published.event_no):
            await self._catch_up.tell_end({name: published.json[name] for name in OUTCOME})
        else:
            viewer.note(published)
            await self._outlet.send_published(published)
