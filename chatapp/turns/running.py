"""One turn, from its request to its last write."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from chatapp.context.tokens import message_tokens
from chatapp.conversations.turns import progress
from chatapp.errors import InternalError
from chatapp.llm import activity_log
from chatapp.models import TurnStatus
from chatapp.turns.announcer import Announcer
from chatapp.turns.fitting import Means
from chatapp.turns.flushing import Flusher
from chatapp.turns.live_reply import LiveStream
from chatapp.turns.services import Machinery
from chatapp.turns.turn import Asked, Concluded, Job, Said, Step, Thought, run_turn, status_of
from compression.exceptions import UserFacingError

logger = logging.getLogger(__name__)

Spawn = Callable[[Coroutine[Any, Any, Any], str], asyncio.Task[Any]]

# How often the last write of a turn is tried while the database is away.
FINISH_TRIES = 8


async def means_for(job: Job, machinery: Machinery, announcer: Announcer) -> Means:
    """What is needed to make a turn's request fit. Raises LLMError for no model at all."""
    return Means(
        profile=await machinery.catalogue.profile(job.model),
        counter=machinery.counter,
        engine_for=machinery.engine,
        changed=lambda: announcer.summary(job.conversation_id),
        masked=lambda masked: announcer.masked(job.conversation_id, masked),
    )


class TurnDriver:
    """Runs turns, each to its stored end. ``spawn`` keeps a task from being forgotten."""

    def __init__(
        self,
        *,
        holder: str,
        machinery: Machinery,
        announcer: Announcer,
        flusher: Flusher,
        spawn: Spawn,
    ) -> None:
        self._holder = holder
        self._machinery = machinery
        self._announcer = announcer
        self._flusher = flusher
        self._spawn = spawn

    async def run(self, stream: LiveStream) -> None:
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
            await means_for(job, machinery, self._announcer),
            begun=stream.told,
            waits=lambda error, seconds: self._spawn(
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
                ended = await progress.afinish(self._holder, job.turn, job.reply_id, ending)
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
