"""One turn, from its request to its last write."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Any

from chatapp.context.tokens import message_tokens
from chatapp.conversations.turns import progress
from chatapp.errors import InternalError
from chatapp.llm import activity_log
from chatapp.models import TurnStatus
from chatapp.turns.announcer import Announcer
from chatapp.turns.fitting import FittingDeps
from chatapp.turns.flushing import Flusher
from chatapp.turns.live_reply import LiveStream, Phase
from chatapp.turns.services import Services
from chatapp.turns.turn import (
    Job,
    ReasoningDelta,
    RequestSent,
    Step,
    TextDelta,
    run_turn,
    status_of,
)
from compression.exceptions import UserFacingError

logger = logging.getLogger(__name__)

Spawn = Callable[[Coroutine[Any, Any, Any], str], asyncio.Task[Any]]

# Attempts at the last write of a turn while the database is away.
FINISH_TRIES = 8


async def fitting_deps_for(job: Job, services: Services, announcer: Announcer) -> FittingDeps:
    """The dependencies for fitting a turn's request. Raises LLMError when there is no model."""
    return FittingDeps(
        profile=await services.catalogue.profile(job.model),
        counter=services.counter,
        engine_for=services.engine,
        changed=lambda: announcer.summary_changed(conversation_id=job.conversation_id),
        masked=lambda masked: announcer.masked(job.conversation_id, masked),
        added=partial(announcer.message_changed, job.conversation_id),
    )


class TurnDriver:
    """Runs turns to their stored end. ``spawn`` starts a task and holds it."""

    def __init__(
        self,
        *,
        process_id: str,
        services: Services,
        announcer: Announcer,
        flusher: Flusher,
        spawn: Spawn,
    ) -> None:
        self._process_id = process_id
        self._services = services
        self._announcer = announcer
        self._flusher = flusher
        self._spawn = spawn

    async def run(self, stream: LiveStream) -> None:
        """Run one turn from its first to its last write. Never raises."""
        with activity_log.about(conversation=stream.job.conversation_id, turn=stream.job.turn):
            ending = await self._ending_of(stream)
        last_write = asyncio.create_task(self._finish(stream, ending))
        while not last_write.done():
            try:
                await asyncio.shield(last_write)
            except asyncio.CancelledError:
                # A second Stop, or the shutdown, which waits for this task: the turn still ends.
                continue
            except Exception:
                # Whatever went wrong, the turn must leave, or its lease is renewed for ever.
                logger.exception("The end of turn %s could not be stored.", stream.job.turn)

    async def _ending_of(self, stream: LiveStream) -> progress.Ending:
        """Run the turn. Returns how it ended."""
        self._flusher.begin(stream)
        try:
            stream.begin()
            ending = await self._drive(stream)
        except asyncio.CancelledError:
            if stream.phase is Phase.STOPPING:
                ending = progress.Ending(status=TurnStatus.STOPPED)
            else:
                error = progress.interruption(kept=False)
                ending = progress.Ending(status=TurnStatus.INTERRUPTED, error=error)
        except UserFacingError as error:
            status = status_of(error, began=stream.began)
            ending = progress.Ending(status=status, error=error.as_dict())
        except Exception:
            # The turn gets a status whatever the error, and the log gets the reason.
            logger.exception("Turn %s failed.", stream.job.turn)
            ending = progress.Ending(status=TurnStatus.FAILED, error=InternalError().as_dict())
        return ending

    async def _drive(self, stream: LiveStream) -> progress.Ending:
        services, job = self._services, stream.job
        deps = replace(
            await fitting_deps_for(job, services, self._announcer),
            begun=stream.ensure_announced,
            on_retry=lambda error, seconds: self._spawn(
                self._announcer.announce_retry(stream, error, seconds),
                f"countdown of turn {job.turn}",
            ),
        )
        steps = run_turn(job, client=services.client, catalogue=services.catalogue, deps=deps)
        ending: progress.Ending | None = None
        async with aclosing(steps):
            async for step in steps:
                ending = self._take(stream, step) or ending
        assert ending is not None
        return ending

    def _take(self, stream: LiveStream, step: Step) -> progress.Ending | None:
        match step:
            case RequestSent():
                stream.manifest, stream.event_no = step.manifest, step.event_no
                stream.request_sent.set()
            case TextDelta(text=text):
                stream.add(text=text)
            case ReasoningDelta(text=text):
                stream.add(reasoning=text)
            case progress.Ending():
                return step
        return None

    async def _with_text(self, stream: LiveStream, ending: progress.Ending) -> progress.Ending:
        """The ending with the whole text of the reply."""
        stream.gather()
        stream.take(shown=False)
        text = stream.text
        error, kept = ending.error, bool(text.strip())
        if error is not None:
            ours = error["code"] == progress.INTERRUPTED
            error = progress.interruption(kept=kept) if ours else {**error, "partial_kept": kept}
        tokens = await asyncio.to_thread(message_tokens, self._services.counter, text)
        return replace(
            ending,
            text=text,
            reasoning=stream.reasoning,
            tokens=tokens if text.strip() else 0,
            error=error,
            manifest=stream.manifest,
        )

    async def _finish(self, stream: LiveStream, ending: progress.Ending) -> None:
        """Store the turn's end, with retries while the database is away. Never raises."""
        job = stream.job
        stream.enter(Phase.FINISHING)
        # The beginning is announced before the end, even if no request was sent.
        await stream.ensure_announced()
        await self._flusher.finish(stream)
        ending = await self._with_text(stream, ending)
        for attempt in range(FINISH_TRIES):
            if stream.lost:
                return
            try:
                ended = await progress.afinish(self._process_id, job.turn, job.reply_id, ending)
                break
            except Exception:
                logger.exception("The end of turn %s could not be stored yet.", job.turn)
                await asyncio.sleep(min(5.0, 0.1 * 2**attempt))
        else:
            return
        if ended is None:
            stream.enter(Phase.LOST)
            return
        try:
            await self._announcer.ended(ended)
        except Exception:
            # The end is stored, and viewers look for changes by themselves.
            logger.exception("The end of turn %s could not be announced.", job.turn)
