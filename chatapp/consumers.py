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

from chatapp import wiring
from chatapp.conversations.ownership import amay_follow
from chatapp.conversations.people import astill_signed_in
from chatapp.conversations.viewer_checks import achange_marker, ahow_it_ended
from chatapp.errors import InvalidInput, NotFound, RateLimited
from chatapp.live import events
from chatapp.live.bus import Published
from chatapp.live.view_models import PageView, TurnView
from chatapp.live.viewer_state import OUTCOME, Compressions, Reply, Run
from chatapp.rendering import fragments
from chatapp.turns.announcer import common
from compression.fair_threads import on_behalf_of
from compression.types import Trigger

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
# Seconds. Text that came so shortly before a look means that more is on its way.
ON_ITS_WAY = 0.5
# A text that is behind its own events cannot be had: the database takes none. So long it is left.
BEHIND = 0.3
# Seconds to wait for the event of an end that a state has shown already; then it is made up.
END_IS_TOLD = 1.0
SOCKETS_A_USER = 20
# The socket is read-only; it closes after this many client frames.
FRAMES_ANSWERED = 20

_open_sockets: Counter[int] = Counter()


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
        on_behalf_of.set(user.pk)
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
        self._reply: Reply | None = None
        """The open turn's reply as far as the viewer has it; None before it has its message."""
        self._text_came_at = 0.0
        self._newest = 0
        # The seq of the message that it was told of last.
        self._compressions = Compressions()
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
        """Answer a client frame with an error; after too many the socket is closed."""
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
        except Exception:
            # Any error: the page comes back after this code, and reads the state anew.
            logger.exception(
                "A viewer of conversation %s is disconnected after an error.", self._conversation_id
            )
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
        at = min(self._ask_who_at, now + (LOOK_OPEN if self._open else LOOK_IDLE))
        return min(at, self._compressions.owed_at) if self._compressions.owed else at

    async def _look(self) -> bool:
        """Compare with the database; False when the socket was closed."""
        if not await self._still_welcome():
            await self.close(SIGNED_OUT)
            return False
        marker = await achange_marker(self._conversation_id)
        if marker is None:
            raise NotFound
        # A layer may lose one of several events of a number: what it brought is read once more.
        unsure = self._seen != self._state_no and wiring.bus().lossy
        announced = (self._seen, self._compressions.run is not None, self._open)
        if (
            unsure
            or (marker.event_no, marker.running, marker.opened) != announced
            or self._stands_still(marker.written)
        ):
            await self._catch_up()
        elif self._figures != wiring.services().catalogue.revision:
            await self._tell_context()
        owed = self._compressions.owed
        if owed is not None and asyncio.get_running_loop().time() >= self._compressions.owed_at:
            await self._tell_what_is_owed(owed)
        return True

    def _stands_still(self, written: int) -> bool:
        """Whether the reply has gone on without the viewer: its text raises no number."""
        known = self._reply.characters + self._reply.thoughts if self._reply else 0
        now = asyncio.get_running_loop().time()
        return written > known and now - self._text_came_at > ON_ITS_WAY

    async def _tell_context(self) -> None:
        """Send the figures again: another conversation has taught something of a model."""
        self._figures = wiring.services().catalogue.revision
        context = await wiring.services().acontext(self._conversation_id)
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
        elif published.type == "compression-completed":
            await self._pass_end_on(published)
        elif published.event_no > self._state_no:
            if published.event_no > self._seen + 1:
                await self._catch_up()
            else:
                self._note(published)
                await self._send_published(published)

    def _note(self, published: Published) -> None:
        """Follow what the event tells of turns and compressions."""
        self._seen = max(self._seen, published.event_no)
        json_ = published.json
        match published.type:
            case "message-added":
                self._newest = json_["message"]["seq"]
            case "turn-started":
                self._open = True
                # Of one number too: where the empty reply was lost there is nothing to add to.
                if json_["reply_seq"] == self._newest:
                    self._reply = Reply(seq=self._newest)
            case "turn-finished":
                self._open, self._reply = False, None
            case "compression-started":
                self._compressions.started(json_)
            case "compression-completed":
                now_is = json_["compression"]
                self._compressions.ended(running=now_is["running"], version=now_is["version"])
            case "summary-changed":
                self._compressions.stands(json_["version"])

    async def _pass_end_on(self, published: Published) -> None:
        """Pass on the end of a run, even where a state has shown already that none runs."""
        if self._compressions.knows(published.json):
            return
        if published.event_no > self._seen + 1:
            await self._catch_up()
        if published.event_no > self._state_no:
            self._note(published)
            await self._send_published(published)
        else:
            await self._tell_end({name: published.json[name] for name in OUTCOME})

    async def _tell_what_is_owed(self, run: Run) -> None:
        """Tell the end of a run whose own event did not come, from what is stored."""
        outcome = await ahow_it_ended(
            self._conversation_id,
            trigger=Trigger(run.trigger),
            version=run.version,
            since=run.since,
        )
        facts = {name: getattr(outcome, name) for name in OUTCOME}
        await self._tell_end(facts, made_up=True)

    async def _tell_end(self, facts: dict[str, Any], *, made_up: bool = False) -> None:
        """Tell how a run ended, with the conversation as it is by now."""
        _, compression, context = await wiring.services().aoverview(self._conversation_id)
        self._compressions.ended(
            running=compression.running, version=compression.version, made_up=made_up
        )
        # Not a newer number than the viewer has been told of: it would come back behind it.
        about = common(self._conversation_id, self._seen)
        await self._send_event(
            events.CompressionCompleted(**facts, compression=compression, context=context, **about)
        )

    async def _pass_delta_on(self, published: Published) -> None:
        """Forward what continues exactly; drop what is known; catch up over a gap."""
        delta = published.json
        if published.event_no > self._seen or self._misses(delta):
            await self._catch_up()
            if self._misses(delta):
                await asyncio.sleep(BEHIND)
        known = self._known(delta)
        if known is not None and known.goes_on_with(delta):
            self._text_came_at = asyncio.get_running_loop().time()
            await self._send_published(published)

    def _known(self, delta: dict[str, Any]) -> Reply | None:
        return self._reply if self._reply and self._reply.seq == delta["seq"] else None

    def _misses(self, delta: dict[str, Any]) -> bool:
        """Whether something before the delta is missing."""
        known = self._known(delta)
        return known is None or known.behind(delta)

    async def _catch_up(self) -> None:
        """Send one ``state``: all that changed since what the viewer has been told."""
        # Several events share a number, and the viewer may have only the first of them.
        after = max(0, self._seen - 1)
        self._figures = wiring.services().catalogue.revision
        change = await wiring.services().achanges(self._conversation_id, after)
        event_no = change.conversation.event_no
        if self._seen > event_no:
            # The viewer saw a later state than there is, as after a restored backup.
            self._seen, self._reply = 0, None
            change = await wiring.services().achanges(self._conversation_id, 0)
        turn = change.turn
        if turn is not None and self._reply is not None:
            turn = self._reply.at_least(turn)
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
        self._open = turn is not None
        self._reply = Reply.of(turn) if turn else None
        tell_by = asyncio.get_running_loop().time() + END_IS_TOLD
        self._compressions.shown(change.compression, tell_by=tell_by)
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
