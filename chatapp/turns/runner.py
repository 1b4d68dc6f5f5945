"""The runner of turns: one task per turn, which belongs to a conversation and to no socket.

Each process holds leases on its turns, stores their texts before showing them, stops them, and
ends them in order at shutdown. Turns left by a killed process are marked as interrupted by the
sweep of any other.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from chatapp.conversations.turns.sending import Accepted, Queued
from chatapp.live.bus import Bus
from chatapp.rendering.pool import RenderingPool
from chatapp.turns.afterwards import Afterwards
from chatapp.turns.announcer import Announcer
from chatapp.turns.flushing import Flusher
from chatapp.turns.live_reply import LiveStream, Phase
from chatapp.turns.pacing import Pace
from chatapp.turns.running import TurnDriver
from chatapp.turns.services import Services
from chatapp.turns.turn import Job
from chatapp.turns.upkeep import Upkeep
from compression.exceptions import UserFacingError
from compression.types import Outcome

logger = logging.getLogger(__name__)
Begun = TypeVar("Begun", bound=Accepted | Queued)

# Delay before announcing a turn, so that rendering does not hold up the request. Seconds.
HEAD_START = 0.02


class Runner:
    """The running turns of this process."""

    def __init__(
        self,
        services: Services,
        bus: Bus,
        announcer: Announcer,
        pace: Pace | None = None,
        pool: RenderingPool | None = None,
    ) -> None:
        self.process_id = uuid.uuid4().hex
        """Names this process in its leases; a number of the system would come again."""
        self._services = services
        self._bus = bus
        self._announcer = announcer
        self._pace = pace or Pace()
        self._streams: dict[int, LiveStream] = {}
        self._jobs: set[asyncio.Task[Any]] = set()
        self._ending = False
        self._flusher = Flusher(bus, pool or RenderingPool())
        self._driver = TurnDriver(
            process_id=self.process_id,
            services=services,
            announcer=announcer,
            flusher=self._flusher,
            spawn=self.spawn,
        )
        self._afterwards = Afterwards(
            process_id=self.process_id,
            services=services,
            announcer=announcer,
            start=self.start,
            spawn=self.spawn,
        )
        self._upkeep = Upkeep(
            process_id=self.process_id,
            streams=self._streams,
            announcer=announcer,
            stop=self.stop,
            send_orphaned_queues=self.send_orphaned_queues,
            store_usage=services.catalogue.store_usage,
            count=self._afterwards.count,
        )

    # Called from outside

    async def begin(self, acceptance: Coroutine[Any, Any, Begun]) -> Begun:
        """Store a turn and run it. Raises whatever storing it raises.

        Both are done even if the caller goes away in between: a stored turn that no process runs
        would stay open until its lease expires.
        """
        task = asyncio.create_task(self._begin(acceptance), name="beginning of a turn")
        self._jobs.add(task)
        task.add_done_callback(self._jobs.discard)
        return await asyncio.shield(task)

    async def _begin(self, acceptance: Coroutine[Any, Any, Begun]) -> Begun:
        accepted = await acceptance
        if isinstance(accepted, Accepted) and accepted.fresh:
            await self.start(accepted)
        return accepted

    async def start(self, accepted: Accepted) -> None:
        """Run a turn that was just stored, and announce it."""
        self.keep()
        job = Job(
            conversation_id=accepted.conversation_id,
            owner_id=accepted.owner_id,
            turn=accepted.turn,
            reply_seq=accepted.reply_seq,
            reply_id=accepted.reply_id,
            model=accepted.model,
        )
        stream = LiveStream(
            job=job, event_no=accepted.event_no, pace=self._pace, snapshot=accepted.snapshot
        )
        self._streams[job.turn] = stream
        self._pace.streams = len(self._streams)
        stream.task = asyncio.create_task(self._run(stream), name=f"turn {job.turn}")
        self.spawn(self._announce(stream, accepted), f"announcing turn {job.turn}")

    async def _announce(self, stream: LiveStream, accepted: Accepted) -> None:
        """Announce the turn while the model reads the request, or after a short delay."""
        with suppress(TimeoutError):
            async with asyncio.timeout(HEAD_START):
                await stream.request_sent.wait()
        try:
            await self._announcer.begun(accepted)
        finally:
            stream.announced.set()

    def stop(self, turn: int) -> None:
        """End a turn of this process now; another process sees the stored Stop by itself."""
        stream = self._streams.get(turn)
        if stream is not None and stream.phase < Phase.STOPPING:
            stream.end(Phase.STOPPING)

    def spawn(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """Start a task, and hold it until it is done or cancelled at shutdown."""
        task = asyncio.create_task(work, name=name)
        self._jobs.add(task)
        task.add_done_callback(self._forget)
        return task

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._jobs.discard(task)
        if task.cancelled() or (error := task.exception()) is None:
            return
        # A refusal was already reported to the person; its traceback helps nobody.
        refused = isinstance(error, UserFacingError)
        level, trace = (logging.INFO, None) if refused else (logging.ERROR, error)
        logger.log(level, "%s: %s", task.get_name(), error, exc_info=trace)

    async def begin_compression(
        self, conversation_id: int, run: Coroutine[Any, Any, Outcome], begins: asyncio.Event
    ) -> None:
        """Run a compression in a task, and return once it has started and set ``begins``.

        Raises NothingToCompress or CompressionRunning if the run does so before it starts.
        """
        self.keep()
        task = self.spawn(run, f"compression of conversation {conversation_id}")
        task.add_done_callback(lambda _: begins.set())
        await begins.wait()
        if task.done():
            task.result()

    def keep(self) -> None:
        """Begin the upkeep (see :class:`Upkeep`), unless it has begun."""
        if not self._ending:
            self._upkeep.begin()

    async def shutdown(self) -> None:
        """End every turn as interrupted, with its text stored; then stop all tasks."""
        self._ending = True
        for stream in self._streams.values():
            # The task that would set this may be cancelled before its first step.
            stream.announced.set()
            stream.end(Phase.SHUTTING_DOWN)
        for task in self._jobs:
            task.cancel()
        running = [stream.task for stream in self._streams.values() if stream.task is not None]
        await asyncio.gather(*running, *self._jobs, *self._upkeep.end(), return_exceptions=True)
        await self._services.catalogue.store_usage()
        await self._flusher.aclose()
        await self._bus.aclose()

    async def _run(self, stream: LiveStream) -> None:
        """Run one turn and the work after it. Never raises."""
        await self._driver.run(stream)
        self._streams.pop(stream.job.turn, None)
        self._pace.streams = len(self._streams)
        if not self._ending and not stream.lost:
            self.spawn(self._afterwards.follow(stream.job), f"after turn {stream.job.turn}")

    async def send_orphaned_queues(self) -> None:
        """Send queued messages whose turn ended without sending them."""
        await self._afterwards.send_orphaned_queues()
