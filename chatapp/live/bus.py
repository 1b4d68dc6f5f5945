"""Publish/subscribe within this process, bridged to others by the channel layer.

Viewers in this process are served directly, those of other processes through the channel layer.
Both ways may lose events. The database is the truth, and a viewer that finds a gap reads it again.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from chatapp.live.events import Event
from chatapp.rendering import fragments
from chatapp.rendering.pool import RenderingPool

logger = logging.getLogger(__name__)

# Events waiting for one viewer; a viewer further behind gets one ``state`` instead.
BACKLOG = 200
# Seconds. A call of the layer takes less than a millisecond. One that takes this long is given up,
# because a reply waits for it, and the layer is not used for ``LAYER_REST`` seconds.
LAYER_PATIENCE = 1.0
LAYER_REST = 2.0


class Layer(Protocol):
    """The part of a Channels layer that the bus uses."""

    async def new_channel(self) -> str:
        """Make a channel to receive on; returns its name."""

    async def receive(self, channel: str) -> dict[str, Any]:
        """Wait for the next message."""

    async def group_add(self, group: str, channel: str) -> None:
        """Subscribe a channel to a group."""

    async def group_discard(self, group: str, channel: str) -> None:
        """Unsubscribe a channel from a group."""

    async def group_send(self, group: str, message: dict[str, Any]) -> None:
        """Publish to a group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """An event as JSON and as HTML, made once for all viewers."""

    type: str
    event_no: int
    json: dict[str, Any]
    html: str


@dataclass(slots=True, eq=False)
class Subscription:
    """One viewer's queue of events. Iterating waits for the next one."""

    _waiting: deque[Published] = field(default_factory=deque)
    _arrived: asyncio.Event = field(default_factory=asyncio.Event)
    overflowed: bool = False
    """Events were dropped; the viewer must read the state again."""

    def put(self, published: Published | None) -> None:
        """Add an event. None, or one past the limit: the viewer must read the state again."""
        if published is None or len(self._waiting) >= BACKLOG:
            self._waiting.clear()
            self.overflowed = True
        else:
            self._waiting.append(published)
        self._arrived.set()

    async def next(self) -> Published | None:
        """The next event; None if some were lost."""
        while True:
            if self.overflowed:
                self.overflowed = False
                return None
            if self._waiting:
                return self._waiting.popleft()
            self._arrived.clear()
            await self._arrived.wait()


class Bus:
    """Publishes events to subscribers.

    ``layer`` is None when there is only this process. ``render`` makes an event's HTML from texts
    that ``pool`` has rendered before.
    """

    def __init__(
        self,
        layer: Layer | None,
        render: Callable[[Event], str],
        pool: RenderingPool | None = None,
    ) -> None:
        self._layer = layer
        self._render = render
        self._pool = pool or RenderingPool()
        self._process = uuid.uuid4().hex
        self._viewers: defaultdict[int, set[Subscription]] = defaultdict(set)
        self._channel = ""
        self._receiver: asyncio.Task[None] | None = None
        self._joined: set[int] = set()
        self._settling = asyncio.Lock()
        self._rests_until = 0.0
        self._settling_later: set[asyncio.Task[None]] = set()
        self._closed = False

    def watched(self, conversation_id: int) -> bool:
        """Whether anybody may be looking; always True when there are other processes."""
        return self._layer is not None or conversation_id in self._viewers

    @property
    def lossy(self) -> bool:
        """Whether events may be lost without any sign of it."""
        return self._layer is not None

    async def publish(self, event: Event, html: str | None = None) -> None:
        """Send an event to every viewer. ``html`` is its fragment if that exists already."""
        if not self.watched(event.conversation_id):
            return
        if html is None and (bodies := fragments.bodies_of(event)):
            await self._pool.ahead(("conversation", event.conversation_id), bodies)
        published = Published(
            type=event.type,
            event_no=event.event_no,
            json=event.as_json(),
            html=self._render(event) if html is None else html,
        )
        self._deliver(event.conversation_id, published)
        if self._layer is not None:
            await self._send(event.conversation_id, published)

    async def nudge(self, conversation_id: int) -> None:
        """Make every viewer read the state again."""
        self._deliver(conversation_id, None)
        if self._layer is not None:
            await self._send(conversation_id, None)

    def _deliver(self, conversation_id: int, published: Published | None) -> None:
        for viewer in self._viewers.get(conversation_id, ()):
            viewer.put(published)

    async def _send(self, conversation_id: int, published: Published | None) -> None:
        assert self._layer is not None
        now = asyncio.get_running_loop().time
        if now() < self._rests_until:
            return
        message = {
            "type": "conversation.event",
            "process": self._process,
            "conversation": conversation_id,
            "event": asdict(published) if published else None,
        }
        with _cancellable():
            try:
                async with asyncio.timeout(LAYER_PATIENCE):
                    await self._layer.group_send(_group(conversation_id), message)
            except Exception as error:
                # Viewers in other processes look at the database by themselves; the reply goes on.
                self._rests_until = now() + LAYER_REST
                _log_failure("The channel layer did not take an event.", error)

    @asynccontextmanager
    async def subscribe(self, conversation_id: int) -> AsyncIterator[Subscription]:
        """A subscription to everything published until the context is left."""
        viewer = Subscription()
        self._viewers[conversation_id].add(viewer)
        try:
            with _cancellable():
                await self._settle(conversation_id)
            yield viewer
        finally:
            viewers = self._viewers[conversation_id]
            viewers.discard(viewer)
            if not viewers:
                del self._viewers[conversation_id]
                await self._settle(conversation_id)

    async def _settle(self, conversation_id: int) -> None:
        """Join or leave the conversation's group, depending on whether anybody here looks at it.

        One call at a time: a viewer who comes while the last one leaves must stay subscribed.
        """
        if self._layer is None or self._closed:
            return
        async with self._settling:
            wanted, joined = conversation_id in self._viewers, conversation_id in self._joined
            try:
                async with asyncio.timeout(LAYER_PATIENCE):
                    if wanted and not joined:
                        await self._join(self._layer, conversation_id)
                    elif joined and not wanted:
                        self._joined.discard(conversation_id)
                        await self._layer.group_discard(_group(conversation_id), self._channel)
            except Exception as error:
                # Until then, viewers look at the database by themselves.
                _log_failure("The channel layer did not answer.", error)
                if self._closed:
                    return
                later = asyncio.create_task(self._settle_later(conversation_id))
                self._settling_later.add(later)
                later.add_done_callback(self._settling_later.discard)

    async def _settle_later(self, conversation_id: int) -> None:
        await asyncio.sleep(LAYER_REST)
        await self._settle(conversation_id)

    async def _join(self, layer: Layer, conversation_id: int) -> None:
        if self._receiver is None:
            self._channel = await layer.new_channel()
            if self._closed:
                # Meanwhile; nobody would end the task.
                return
            self._receiver = asyncio.create_task(self._receive(layer))
        await layer.group_add(_group(conversation_id), self._channel)
        self._joined.add(conversation_id)

    async def _receive(self, layer: Layer) -> None:
        """Deliver what other processes publish, as long as this process lives."""
        while True:
            try:
                message = await layer.receive(self._channel)
            except Exception:
                # Redis raises many kinds of errors; receiving must go on after any of them.
                logger.warning("The channel layer failed; trying again.", exc_info=True)
                await asyncio.sleep(1)
                continue
            if message.get("process") == self._process or "conversation" not in message:
                continue
            self._deliver(message["conversation"], _received(message.get("event")))

    async def answers(self) -> bool:
        """Whether the channel layer takes messages; True when there is none."""
        if self._layer is None:
            return True
        try:
            async with asyncio.timeout(LAYER_PATIENCE):
                await self._layer.group_send("readiness", {"type": "readiness"})
        except Exception as error:
            _log_failure("The channel layer does not answer.", error)
            return False
        return True

    async def aclose(self) -> None:
        """Stop receiving, also for viewers who come later."""
        self._closed = True
        tasks = [*self._settling_later, *([self._receiver] if self._receiver else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@contextmanager
def _cancellable() -> Iterator[None]:
    """Make a task that is cancelled inside the block stop at the block's end at the latest.

    Redis's client sends with ``asyncio.wait_for``, which before Python 3.12 swallows a cancellation
    that comes just as its work is done: a reply would go on after Stop.
    """
    task = asyncio.current_task()
    assert task is not None
    before = task.cancelling()
    yield
    if task.cancelling() > before:
        raise asyncio.CancelledError


def _log_failure(sentence: str, error: Exception) -> None:
    """Log an error, without a traceback if the layer was only too slow."""
    if isinstance(error, TimeoutError):
        logger.warning("%s It had %g s.", sentence, LAYER_PATIENCE)
    else:
        logger.warning(sentence, exc_info=error)


def _received(event: dict[str, Any] | None) -> Published | None:
    """An event of another process; None (read again) if another release sent something unknown."""
    if event is None:
        return None
    try:
        return Published(**event)
    except TypeError:
        logger.warning("The channel layer delivered an unknown event.")
        return None


def _group(conversation_id: int) -> str:
    return f"conversation.{conversation_id}"
