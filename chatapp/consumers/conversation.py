"""The socket of one viewer: who may open one, what is said to its frames, and how it ends."""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from typing import Any
from urllib.parse import parse_qs

from channels.generic.websocket import AsyncWebsocketConsumer

from chatapp import wiring
from chatapp.consumers.catching_up import CatchUp
from chatapp.consumers.following import Follower
from chatapp.consumers.outlet import Outlet
from chatapp.conversations.ownership import amay_follow
from chatapp.conversations.people import astill_signed_in
from chatapp.errors import InvalidInput, NotFound, RateLimited
from chatapp.live import events
from chatapp.live.viewer import Viewer
from chatapp.turns.announcer import common
from compression.fair_threads import on_behalf_of

logger = logging.getLogger(__name__)

SIGNED_OUT = 4401
NO_SUCH_CONVERSATION = 4404
TOO_MANY = 4429
COME_BACK = 1012
# Our own end of a socket comes before Daphne's, with a code from which the page returns; up to ten
# minutes earlier, so that those who came together do not come back together.
LIFETIME = 23 * 3600.0
LIFETIME_SPREAD = 600.0
SOCKETS_A_USER = 20
# The socket is read-only; it closes after this many client frames.
FRAMES_ANSWERED = 20

_open_sockets: Counter[int] = Counter()


class ConversationConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]
    """One viewer of one conversation."""

    # Events come by the bus. With a layer of its own each socket would subscribe with Redis, and
    # none could be opened while Redis is away.
    channel_layer_alias = "none"

    _following: asyncio.Task[None] | None = None
    _user_id: int = 0
    _counted = False
    _frames = 0

    async def connect(self) -> None:
        """Accept, then say why not, so that the page can tell the reasons apart."""
        user = self.scope["user"]
        await self.accept()
        if not user.is_authenticated or not user.is_active:
            await self.close(SIGNED_OUT)
            return
        code = self.scope["url_route"]["kwargs"]["code"]
        conversation_id = await amay_follow(user.pk, code)
        if conversation_id is None:
            await self.close(NO_SUCH_CONVERSATION)
            return
        self._user_id = user.pk
        on_behalf_of.set(user.pk)
        if _open_sockets[user.pk] >= SOCKETS_A_USER:
            await self.close(TOO_MANY)
            return
        _open_sockets[user.pk] += 1
        self._counted = True
        follower = self._follower_of(conversation_id)
        wiring.runner().keep()
        self._following = asyncio.create_task(self._follow_to_the_end(follower))

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve the socket; whatever ends it, an exception too, the viewer is gone afterwards."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            if self._counted:
                _open_sockets[self._user_id] -= 1
                if not _open_sockets[self._user_id]:
                    del _open_sockets[self._user_id]
            if self._following is not None:
                self._following.cancel()

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Answer a client frame with an error; after too many the socket is closed."""
        self._frames += 1
        if self._following is None or self._frames > FRAMES_ANSWERED + 1:
            return
        if self._frames > FRAMES_ANSWERED:
            await self.close(1008)
            return
        error = (
            RateLimited(retry_after=10.0)
            if self._frames == FRAMES_ANSWERED
            else InvalidInput("Commands are sent by HTTP; this socket only tells what happens.")
        )
        about = common(self._conversation_id, self._viewer.seen)
        await self._outlet.send_event(events.Error(error=error.as_dict(), **about))

    def _follower_of(self, conversation_id: int) -> Follower:
        """All that follows the conversation for this viewer, by what its address asks for."""
        query = parse_qs(self.scope["query_string"].decode("ascii", "replace"))
        self._conversation_id = conversation_id
        self._viewer = Viewer(
            seen=_number(query, "after", 0),
            state_no=_number(query, "state", -1),
            lossy=wiring.bus().lossy,
        )
        self._outlet = Outlet(
            self.send,
            wiring.rendering_pool(),
            user_id=self._user_id,
            as_json=query.get("format") == ["json"],
        )
        return Follower(
            conversation_id,
            self._viewer,
            CatchUp(conversation_id, self._viewer, self._outlet, wiring.services()),
            self._outlet,
            wiring.bus(),
            self._signed_in,
        )

    async def _signed_in(self) -> bool:
        return await astill_signed_in(self.scope["session"].session_key, self._user_id)

    async def _follow_to_the_end(self, follower: Follower) -> None:
        try:
            async with asyncio.timeout(LIFETIME - random.uniform(0, LIFETIME_SPREAD)):
                await follower.follow()
                await self.close(SIGNED_OUT)
        except TimeoutError:
            await self.close(COME_BACK)
        except NotFound:
            await self.close(NO_SUCH_CONVERSATION)
        except Exception:
            # Any error: the page comes back after this code, and reads the state anew.
            logger.exception(
                "A viewer of conversation %s is disconnected after an error.", self._conversation_id
            )
            await self.close(1011)


def _number(query: dict[str, list[str]], name: str, missing: int) -> int:
    """A number of the socket's address; ``missing`` for none, and for what is no number."""
    given = query.get(name, [""])[0]
    return int(given) if given.isascii() and given.isdigit() and len(given) < 19 else missing
