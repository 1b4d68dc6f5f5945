"""Runs turns: one task a turn, belonging to its conversation and to no socket.

A process keeps its turns by leases, stores their texts and then shows them, stops them, and ends
them in order when it is told to. What a killed process leaves, any process's sweep interrupts.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Coroutine
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Any, TypeVar

from chatapp.context.tokens import message_tokens
from chatapp.conversations import progress
from chatapp.conversations.sending import Accepted, Queued, aaccept_queued, astranded
from chatapp.errors import InternalError, NotFound
from chatapp.live.bus import Bus
from chatapp.llm import activity_log
from chatapp.models import TurnStatus
from chatapp.rendering.pool import RenderingPool
from chatapp.turns.announcer import Announcer
from chatapp.turns.fitting import Means, prepare_in_background
from chatapp.turns.flushing import Flusher
from chatapp.turns.live_reply import LiveStream
from chatapp.turns.pacing import Pace
from chatapp.turns.services import Machinery
from chatapp.turns.titles import name_by_first_words, name_by_model
from chatapp.turns.turn import Asked, Concluded, Job, Said, Step, Thought, run_turn, status_of
from chatapp.turns.upkeep import Keeper
from compression.exceptions import UserFacingError
from compression.types import Outcome

logger = logging.getLogger(__name__)
Begun = TypeVar("Begun", bound=Accepted | Queued)

# Seconds by which a turn is ahead of being announced: rendering that would delay the request.
HEAD_START = 0.02
# How often the last write of a turn is tried while the database is away.
FINISH_TRIES = 8


class Runner:
    """The turns of this process."""

    def __init__(
        self,
        machinery: Machinery,
        bus: Bus,
        announcer: Announcer,
        pace: Pace | None = None,
        pool: RenderingPool | None = None,
    ) -> None:
        self.holder = uuid.uuid4().hex
        self._machinery = machinery
        self._bus = bus
        self._announcer = announcer
        self._pace = pace or Pace()
        self._streams: dict[int, LiveStream] = {}
        self._jobs: set[asyncio.Task[Any]] = set()
        self._ending = False
        self._flusher = Flusher(bus, pool or RenderingPool())
        self._keeper = Keeper(
            holder=self.holder,
            streams=self._streams,
            announcer=announcer,
            stop=self.stop,
            send_stranded=self.send_stranded,
            count=self._count,
        )

    # What others ask for

    async def begin(self, acceptance: Coroutine[Any, Any, Begun]) -> Begun:
        """Store a turn and run it; raises what storing it raises.

        Both happen even if the one who asks goes away in between: a stored turn that nobody runs
        would have to wait for its lease to expire.
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
        """Run the turn that was just stored, and tell the viewers of it."""
        self.keep()
        job = Job(
            conversation_id=accepted.conversation_id,
            owner_id=accepted.owner_id,
            turn=accepted.turn,
            reply_seq=accepted.reply_seq,
            reply_id=accepted.reply_id,
            model=accepted.model,
        )
        stream = LiveStream(job=job, event_no=accepted.event_no, pace=self._pace)
        self._streams[job.turn] = stream
        self._pace.streams = len(self._streams)
        stream.task = asyncio.create_task(self._run(stream), name=f"turn {job.turn}")
        self.spawn(self._announce(stream, accepted), f"announcing turn {job.turn}")

    async def _announce(self, stream: LiveStream, accepted: Accepted) -> None:
        """Tell viewers that a turn begins: while the model reads the request, or soon at least."""
        with suppress(TimeoutError):
            async with asyncio.timeout(HEAD_START):
                await stream.asked.wait()
        try:
            await self._announcer.begun(accepted)
        finally:
            stream.announced.set()

    def stop(self, turn: int) -> None:
        """End a turn of this process now; one of another process ends at its next look."""
        stream = self._streams.get(turn)
        if stream is not None and not stream.stop_requested:
            stream.stop_requested = True
            stream.cancel()

    def spawn(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """A task that is kept from being forgotten, and waited for at the end."""
        task = asyncio.create_task(work, name=name)
        self._jobs.add(task)
        task.add_done_callback(self._forget)
        return task

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._jobs.discard(task)
        if task.cancelled() or (error := task.exception()) is None:
            return
        # Of a refusal whoever asked was told; where it came from is nobody's concern.
        refused = isinstance(error, UserFacingError)
        level, trace = (logging.INFO, None) if refused else (logging.ERROR, error)
        logger.log(level, "%s: %s", task.get_name(), error, exc_info=trace)

    async def begin_compression(
        self, conversation_id: int, run: Coroutine[Any, Any, Outcome], begins: asyncio.Event
    ) -> None:
        """Run a compression on, and return once it has started, which sets ``begins``.

        Raises what it raises before that: NothingToCompress, CompressionRunning.
        """
        self.keep()
        task = self.spawn(run, f"compression of conversation {conversation_id}")
        task.add_done_callback(lambda _: begins.set())
        await begins.wait()
        if task.done():
            task.result()

    def keep(self) -> None:
        """Begin to look for stops, renew and sweep, unless that has begun."""
        if not self._ending:
            self._keeper.begin()

    async def shutdown(self) -> None:
        """End every turn as interrupted with its text stored, then stop."""
        self._ending = True
        for stream in self._streams.values():
            stream.shutting_down = True
            # Whoever was to tell of the beginning may be cancelled before its first step.
            stream.announced.set()
            stream.cancel()
        for task in self._jobs:
            task.cancel()
        running = [stream.task for stream in self._streams.values() if stream.task is not None]
        await asyncio.gather(*running, *self._jobs, *self._keeper.end(), return_exceptions=True)
        await self._flusher.aclose()
        await self._bus.aclose()

    # One turn

    async def _run(self, stream: LiveStream) -> None:
        """One turn from its first to its last write. Never raises."""
        with activity_log.about(conversation=stream.job.conversation_id, turn=stream.job.turn):
            ending = await self._ending_of(stream)
        last_write = asyncio.create_task(self._finish(stream, ending))
        while not last_write.done():
            try:
                await asyncio.shield(last_write)
            except asyncio.CancelledError:
                # A second Stop, or the shutdown, which waits for this task: the ending stands.
                continue
            except Exception:
                # Whatever it is: a turn that is kept here would have its lease renewed for ever.
                logger.exception("The end of turn %s could not be stored.", stream.job.turn)
        self._streams.pop(stream.job.turn, None)
        self._pace.streams = len(self._streams)
        if not self._ending and not stream.lost:
            self.spawn(self._afterwards(stream.job), f"after turn {stream.job.turn}")

    async def _ending_of(self, stream: LiveStream) -> progress.Ending:
        """Run the turn; how it ended."""
        self._flusher.begin(stream)
        try:
            stream.begin()
            concluded = await self._drive(stream)
            ending = progress.Ending(
                status=concluded.status,
                error=concluded.error,
                finish_reason=concluded.finish_reason,
                prompt_tokens=concluded.prompt_tokens,
                completion_tokens=concluded.completion_tokens,
                cached_tokens=concluded.cached_tokens,
                cost=concluded.cost,
            )
        except asyncio.CancelledError:
            status = TurnStatus.STOPPED if stream.stop_requested else TurnStatus.INTERRUPTED
            error = None if stream.stop_requested else progress.interruption(kept=False)
            ending = progress.Ending(status=status, error=error)
        except UserFacingError as error:
            status = status_of(error, began=stream.began)
            ending = progress.Ending(status=status, error=error.as_dict())
        except Exception:
            # The end of the way: whatever broke, the turn gets its status and the log the reason.
            logger.exception("Turn %s failed.", stream.job.turn)
            ending = progress.Ending(status=TurnStatus.FAILED, error=InternalError().as_dict())
        return ending

    async def _drive(self, stream: LiveStream) -> Concluded:
        machinery, job = self._machinery, stream.job
        means = replace(
            await self._means(job),
            begun=stream.told,
            waits=lambda error, seconds: self.spawn(
                self._announcer.waits(stream, error, seconds), f"countdown of turn {job.turn}"
            ),
        )
        steps = run_turn(job, client=machinery.client, catalogue=machinery.catalogue, means=means)
        concluded: Concluded | None = None
        async with aclosing(steps):
            async for step in steps:
                concluded = self._take(stream, step) or concluded
        assert concluded is not None
        return concluded

    def _take(self, stream: LiveStream, step: Step) -> Concluded | None:
        match step:
            case Asked():
                stream.manifest, stream.event_no = step.manifest, step.event_no
                stream.asked.set()
            case Said(text=text):
                stream.add(text=text)
            case Thought(text=text):
                stream.add(reasoning=text)
            case Concluded():
                return step
        return None

    async def _with_text(self, stream: LiveStream, ending: progress.Ending) -> progress.Ending:
        """The ending with all that came."""
        stream.gather()
        stream.take(shown=False)
        text = stream.text
        error, kept = ending.error, bool(text.strip())
        if error is not None:
            ours = error["code"] == progress.INTERRUPTED
            error = progress.interruption(kept=kept) if ours else {**error, "partial_kept": kept}
        tokens = await asyncio.to_thread(message_tokens, self._machinery.counter, text)
        return replace(
            ending,
            text=text,
            reasoning=stream.reasoning,
            tokens=tokens if text.strip() else 0,
            error=error,
            manifest=stream.manifest,
        )

    async def _finish(self, stream: LiveStream, ending: progress.Ending) -> None:
        """The turn's last write; tried again while the database is away. Never raises."""
        job, stream.finishing = stream.job, True
        # The end of a turn is told after its beginning, also when nothing was ever asked.
        await stream.told()
        await self._flusher.finish(stream)
        ending = await self._with_text(stream, ending)
        for attempt in range(FINISH_TRIES):
            if stream.lost:
                return
            try:
                ended = await progress.afinish(self.holder, job.turn, job.reply_id, ending)
                break
            except Exception:
                logger.exception("The end of turn %s could not be stored yet.", job.turn)
                await asyncio.sleep(min(5.0, 0.1 * 2**attempt))
        else:
            return
        if ended is None:
            stream.lost = True
            return
        try:
            await self._announcer.ended(ended)
        except Exception:
            # Viewers look by themselves; the end is stored.
            logger.exception("The end of turn %s could not be announced.", job.turn)

    async def _afterwards(self, job: Job) -> None:
        """What follows a turn: its title, what waits to be sent, a summary prepared ahead."""
        try:
            await self._name(job)
            if not await self._send_queued(job.conversation_id, job.model):
                await self._prepare(job)
        except NotFound:
            logger.info("Conversation %s was deleted meanwhile.", job.conversation_id)
        except UserFacingError as error:
            logger.info("After turn %s: %s", job.turn, error.message)
        except Exception:
            # The reply is stored and told: what else was to be done is left to the next turn.
            logger.exception("What follows turn %s failed.", job.turn)

    async def _name(self, job: Job) -> None:
        named = await name_by_first_words(job.conversation_id, self._announcer)
        if named and self._machinery.automatic_titles:
            profile = await self._machinery.catalogue.profile(job.model)
            asking = name_by_model(
                job.conversation_id, self._machinery.client, profile, self._announcer
            )
            self.spawn(asking, f"title of conversation {job.conversation_id}")

    async def _send_queued(self, conversation_id: int, model: str) -> bool:
        accepted = await aaccept_queued(
            conversation_id, count=self._count, model=model, holder=self.holder
        )
        if accepted is None:
            return False
        await self.start(accepted)
        return True

    async def send_stranded(self) -> None:
        """Send what waits in conversations whose turn ended with its process."""
        for conversation_id in await astranded():
            await self._send_queued(conversation_id, self._machinery.catalogue.known_name())

    async def _prepare(self, job: Job) -> None:
        await prepare_in_background(job.conversation_id, await self._means(job))

    async def _means(self, job: Job) -> Means:
        return Means(
            profile=await self._machinery.catalogue.profile(job.model),
            counter=self._machinery.counter,
            engine_for=self._machinery.engine,
            changed=lambda: self._announcer.summary(job.conversation_id),
            masked=lambda masked: self._announcer.masked(job.conversation_id, masked),
        )

    def _count(self, text: str) -> int:
        return message_tokens(self._machinery.counter, text) if text.strip() else 0
