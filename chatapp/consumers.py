"""Websockets: who may follow a conversation, catching up, and passing events on. Nothing else.

A consumer follows what its viewer has been told: numbers of stored changes and offsets of the
streamed text. Where something is missing it reads the database and sends one ``state``; and it
looks by itself now and then, since every bus may lose everything.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import parse_qs

from channels.generic.websocket import AsyncWebsocketConsumer
from django.utils import timezone

from chatapp import events, wiring
from chatapp.announcing import common
from chatapp.bus import Published
from chatapp.conversations.access import amay_follow
from chatapp.conversations.people import astill_signed_in
from chatapp.conversations.reading import aglance
from chatapp.errors import InvalidInput, NotFound, RateLimited
from chatapp.rendering import fragments
from chatapp.screen import PageView, TurnView

logger = logging.getLogger(__name__)

SIGNED_OUT = 4401
NO_SUCH_CONVERSATION = 4404
TOO_MANY = 4429
COME_BACK = 1012
# Seconds. Looks at the database while a turn is open, and else. Revocation is noticed as fast:
# within 10 s, the time that a look takes included.
LOOK_OPEN = 2.0
LOOK_IDLE = 9.0
# Our own end of a socket comes before Daphne's, with a code from which the page returns; up to ten
# minutes earlier, so that those who came together do not come back together.
LIFETIME = 23 * 3600.0
LIFETIME_SPREAD = 600.0
# A checkpoint is at most a second old: so long a remote stream's text may lag behind its events.
CHECKPOINT_LAG = 0.3
SOCKETS_A_USER = 20
# Nothing is to be said on this socket: so many frames are answered before it is closed.
FRAMES_ANSWERED = 20

_open_sockets: Counter[int] = Counter()
_LARGEST = 2**63 - 1


class ConversationConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]
    """One viewer of one conversation."""

    # Events come by the bus. With a layer of its own each socket would subscribe with Redis, and
    # none could be opened while Redis is away.
    channel_layer_alias = "none"

    _follower: asyncio.Task[None] | None = None
    _user_id: int = 0
    _counted = False
    _frames = 0
    _ask_who_at = 0.0

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
        if _open_sockets[user.pk] >= SOCKETS_A_USER:
            await self.close(TOO_MANY)
            return
        _open_sockets[user.pk] += 1
        self._counted = True
        query = parse_qs(self.scope["query_string"].decode("ascii", "replace"))
        self._as_json = query.get("format") == ["json"]
        after = query.get("after", ["0"])[0]
        self._conversation_id: int = conversation_id
        self._seen = int(after) if after.isascii() and after.isdigit() and len(after) < 19 else 0
        self._state_no = -1
        self._told: dict[int, tuple[int, int]] = {}
        # Open turns: characters of text and of reasoning that the viewer has.
        self._newest = 0
        # The seq of the message that it was told of last.
        self._running = False
        self._open = False
        self._figures = -1
        # What was known of models when the viewer was told of its context.
        wiring.runner().keep()
        self._follower = asyncio.create_task(self._follow_to_the_end())

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve the socket; whatever ends it, an exception too, the viewer is gone afterwards."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            if self._counted:
                _open_sockets[self._user_id] -= 1
                if not _open_sockets[self._user_id]:
                    del _open_sockets[self._user_id]
            if self._follower is not None:
                self._follower.cancel()

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Nothing is to be sent here; whoever does is told so, and at length shown out."""
        self._frames += 1
        if self._follower is None or self._frames > FRAMES_ANSWERED + 1:
            return
        if self._frames > FRAMES_ANSWERED:
            await self.close(1008)
            return
        error = (
            RateLimited(retry_after=10.0)
            if self._frames == FRAMES_ANSWERED
            else InvalidInput("Commands are sent by HTTP; this socket only tells what happens.")
        )
        await self._send_event(
            events.Error(
                error=error.as_dict(),
                conversation_id=self._conversation_id,
                event_no=self._seen,
                at=timezone.now(),
            )
        )

    # Following

    async def _follow_to_the_end(self) -> None:
        try:
            async with asyncio.timeout(LIFETIME - random.uniform(0, LIFETIME_SPREAD)):
                await self._follow()
        except TimeoutError:
            await self.close(COME_BACK)
        except NotFound:
            await self.close(NO_SUCH_CONVERSATION)
        except asyncio.CancelledError:
            raise
        except Exception:
            logger.exception("A viewer of conversation %s is sent away.", self._conversation_id)
            await self.close(1011)

    async def _follow(self) -> None:
        loop = asyncio.get_running_loop()
        async with wiring.bus().subscribe(self._conversation_id) as subscription:
            await self._catch_up()
            self._ask_who_at = loop.time() + LOOK_IDLE
            look_at = self._look_again_at()
            while True:
                # A stream that never pauses must not put the look off for ever.
                if loop.time() >= look_at:
                    if not await self._look():
                        return
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
        return min(self._ask_who_at, now + (LOOK_OPEN if self._open else LOOK_IDLE))

    async def _look(self) -> bool:
        """Compare with the database; False when the socket was closed."""
        if not await self._still_welcome():
            await self.close(SIGNED_OUT)
            return False
        glance = await aglance(self._conversation_id)
        if glance is None:
            raise NotFound
        event_no, running, opened = glance
        # A layer may lose one of several events of a number: what it brought is read once more.
        unsure = self._seen != self._state_no and wiring.bus().lossy
        if unsure or (event_no, running, opened) != (self._seen, self._running, self._open):
            await self._catch_up()
        elif self._figures != wiring.machinery().catalogue.revision:
            await self._tell_context()
        return True

    async def _tell_context(self) -> None:
        """Another conversation has taught something of a model: the figures are others now."""
        self._figures = wiring.machinery().catalogue.revision
        context = await wiring.machinery().acontext(self._conversation_id)
        # Not a newer number than the viewer has been told of: it would come back behind it.
        about = common(self._conversation_id, self._seen)
        await self._send_event(events.Context(context=context, **about))

    async def _still_welcome(self) -> bool:
        """Whether the viewer is signed in: asked as often as an idle socket looks."""
        now = asyncio.get_running_loop().time()
        if now < self._ask_who_at:
            return True
        self._ask_who_at = now + LOOK_IDLE
        session = self.scope["session"].session_key
        return await astill_signed_in(session, self._user_id)

    async def _pass_on(self, published: Published | None) -> None:
        if published is None:
            await self._catch_up()
        elif published.type == "delta":
            await self._pass_delta_on(published)
        elif published.type in {"compression-progress", "error"}:
            await self._send_published(published)
        elif published.event_no > self._state_no:
            if published.event_no > self._seen + 1:
                await self._catch_up()
            else:
                self._note(published)
                await self._send_published(published)

    def _note(self, published: Published) -> None:
        """Follow what the event tells of turns and compressions."""
        self._seen = max(self._seen, published.event_no)
        match published.type:
            case "message-added":
                self._newest = published.json["message"]["seq"]
            case "turn-started":
                self._open = True
                # Of one number too: where the empty reply was lost there is nothing to add to.
                if published.json["reply_seq"] == self._newest:
                    self._told[published.json["turn"]] = (0, 0)
            case "turn-finished":
                self._open = False
                self._told.pop(published.json["turn"], None)
            case "compression-started":
                self._running = True
            case "compression-completed":
                self._running = False

    async def _pass_delta_on(self, published: Published) -> None:
        """Forward what continues exactly; drop what is known; catch up over a gap."""
        json_ = published.json
        turn, offset = json_["turn"], json_["offset"]
        known = self._told.get(turn)
        missed = published.event_no > self._seen
        if missed or known is None or offset > known[0] or json_["reasoning_offset"] > known[1]:
            await self._catch_up()
            for _ in range(8):
                known = self._told.get(turn)
                if known is None or offset <= known[0]:
                    break
                # Another process streams, and its checkpoint lags behind its events.
                await asyncio.sleep(CHECKPOINT_LAG)
                await self._catch_up()
            known = self._told.get(turn)
        if known == (offset, json_["reasoning_offset"]):
            self._told[turn] = (
                offset + len(json_["text"]),
                known[1] + len(json_["reasoning"]),
            )
            await self._send_published(published)

    async def _catch_up(self) -> None:
        """Send one ``state``: all that changed since what the viewer has been told."""
        # Several events share a number, and the viewer may have only the first of them.
        after = max(0, self._seen - 1)
        self._figures = wiring.machinery().catalogue.revision
        change = await wiring.machinery().achanges(self._conversation_id, after)
        event_no = change.conversation.event_no
        if self._seen > event_no:
            # The viewer saw a later state than there is, as after a restored backup.
            self._seen = 0
            change = await wiring.machinery().achanges(self._conversation_id, 0)
        turn = _with_live_text(change.turn)
        state = events.State(
            after=self._seen,
            conversation=change.conversation,
            messages=_with_text_of(change, turn),
            turn=turn,
            turns=change.turns,
            compression=change.compression,
            context=change.context,
            conversation_id=self._conversation_id,
            event_no=event_no,
            at=timezone.now(),
        )
        self._seen = self._state_no = event_no
        self._running = change.compression.running
        self._open = turn is not None
        self._told = {turn.turn: (len(turn.text), len(turn.reasoning))} if turn else {}
        await self._send_event(state)

    async def _send_event(self, event: events.Event) -> None:
        if self._as_json:
            await self.send(text_data=json.dumps(event.as_json()))
        else:
            # Rendering thirty messages takes too long for the event loop.
            pool = wiring.rendering_pool()
            await pool.ahead(self._user_id, fragments.bodies_of(event))
            render = partial(fragments.render_event, event)
            await self.send(text_data=await pool.run(self._user_id, render))

    async def _send_published(self, published: Published) -> None:
        await self.send(text_data=json.dumps(published.json) if self._as_json else published.html)


def _with_live_text(turn: TurnView | None) -> TurnView | None:
    """The open turn with what this process has published of it, which is ahead of the database."""
    stream = wiring.runner().live(turn.turn) if turn else None
    if turn is None or stream is None or len(stream.text) < len(turn.text):
        return turn
    stream.catch_up()
    return replace(turn, text=stream.text, reasoning=stream.reasoning)


def _with_text_of(change: PageView, turn: TurnView | None) -> list[Any]:
    """The changed messages; the reply that is being written has its text so far."""
    if turn is None:
        return change.messages
    return [
        replace(message, text=turn.text, reasoning=turn.reasoning)
        if message.seq == turn.seq
        else message
        for message in change.messages
    ]
