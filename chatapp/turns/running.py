"""One turn, from its request to its last write."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import Any

from chatapp.context.request import StoredMessage
from chatapp.context.tokens import message_tokens
from chatapp.conversations.turns import progress, rounds
from chatapp.errors import InternalError
from chatapp.llm import activity_log
from chatapp.models import TurnStatus
from chatapp.text.safety import without_hidden
from chatapp.turns.announcer import Announcer
from chatapp.turns.fitting import FittingDeps
from chatapp.turns.flushing import Flusher
from chatapp.turns.live_reply import LiveStream, Phase
from chatapp.turns.services import Services
from chatapp.turns.turn import (
    CallEnded,
    Job,
    ReasoningDelta,
    RequestSent,
    RoundEnded,
    Step,
    TextDelta,
    ToolsCalled,
    run_turn,
    status_of,
)
from compression.exceptions import UserFacingError
from compression.tools.loop import Answer, ToolLoop
from compression.tools.rounds import WIND_DOWN

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
        tools=services.tools,
        added=partial(announcer.message_changed, job.conversation_id),
    )


def _pause(attempt: int) -> float:
    """Seconds before a write is tried again."""
    return min(5.0, 0.1 * 2.0**attempt)


async def _announced(announcing: Awaitable[None]) -> None:
    """Announce what is stored. Never raises: viewers look for changes by themselves."""
    try:
        await announcing
    except Exception:
        logger.exception("A change of a turn could not be announced.")


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
        if self._services.end_tools is not None:
            # Before the last write: after it the conversation's next turn may have begun.
            self._spawn(
                self._services.end_tools(stream.job.conversation_id),
                f"end of the tools of turn {stream.job.turn}",
            )
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
            wind_down=partial(self._wind_down, stream),
            on_retry=lambda error, seconds: self._spawn(
                self._announcer.announce_retry(stream, error, seconds),
                f"countdown of turn {job.turn}",
            ),
        )
        loop = ToolLoop(
            services.counter,
            most_rounds=services.tool_rounds,
            approve=services.approve and services.approve(job.conversation_id, job.turn),
        )
        steps = run_turn(
            job,
            client=services.client,
            catalogue=services.catalogue,
            deps=deps,
            loop=loop,
            snapshot=stream.take_snapshot(),
        )
        ending: progress.Ending | None = None
        async with aclosing(steps):
            async for step in steps:
                ending = await self._take(stream, step) or ending
        assert ending is not None
        return ending

    async def _take(self, stream: LiveStream, step: Step) -> progress.Ending | None:
        match step:
            case RequestSent():
                # The provider's count of this request is known when its reply has ended.
                stream.manifest = {**step.manifest, "reported": 0}
                stream.event_no = step.event_no
                stream.request_sent.set()
            case TextDelta(text=text):
                stream.add(text=text)
            case ReasoningDelta(text=text):
                stream.add(reasoning=text)
            case CallEnded():
                stream.spent.add(step)
                stream.manifest["reported"] = step.prompt_tokens or 0
            case ToolsCalled():
                await self._store_calls(stream, step)
            case Answer():
                await self._store_result(stream, step)
            case RoundEnded():
                await self._begin_reply(stream)
            case progress.Ending():
                return step
        return None

    async def _store_calls(self, stream: LiveStream, called: ToolsCalled) -> None:
        """Store and announce the end of a reply that calls tools."""
        await stream.ensure_announced()
        await self._flusher.settle(stream)
        stream.gather()
        stream.take(shown=False)
        stored_calls = [call.stored for call in called.calls]
        text, reasoning, counter = stream.text, stream.reasoning, self._services.counter
        calls = rounds.Calls(
            text=text,
            reasoning=reasoning,
            reasoning_field=called.reasoning_field,
            reasoning_tokens=await self._reasoning_tokens(called.reasoning_field, reasoning),
            tool_calls=stored_calls,
            seconds=stream.thinking.end(),
            tokens=await asyncio.to_thread(message_tokens, counter, text, stored_calls),
        )
        job = stream.job
        stored = await self._written(
            stream,
            lambda: rounds.astore_calls(self._process_id, job.turn, job.reply_id, calls),
        )
        await _announced(
            self._announcer.tools_called(job.conversation_id, job.turn, stored, called.calls)
        )

    async def _store_result(self, stream: LiveStream, answer: Answer) -> None:
        """Store and announce the result of a call."""
        # Text from elsewhere: characters that no reader sees may hold a sentence to the model.
        text = await asyncio.to_thread(without_hidden, answer.outcome.text)
        result = rounds.Result(
            call_id=answer.call.id,
            name=answer.call.name,
            text=text,
            tokens=await asyncio.to_thread(message_tokens, self._services.counter, text),
            seconds=answer.outcome.seconds,
        )
        job = stream.job
        stored = await self._written(
            stream, lambda: rounds.astore_result(self._process_id, job.turn, result)
        )
        await _announced(self._announcer.tool_answered(job.conversation_id, job.turn, stored))

    async def _begin_reply(self, stream: LiveStream) -> None:
        """Store and announce the next round's message, which is still empty."""
        job = stream.job
        stored = await self._written(
            stream, lambda: rounds.abegin_reply(self._process_id, job.turn)
        )
        stream.next_message(stored.message.seq, stored.message_id)
        await _announced(self._announcer.message_added(job.conversation_id, stored))

    async def _wind_down(self, stream: LiveStream, message: StoredMessage) -> None:
        """Tell the model, with a result, that the window is nearly full."""
        text = f"{message.text}\n\n{WIND_DOWN}"
        tokens = await asyncio.to_thread(message_tokens, self._services.counter, text)
        job = stream.job
        stored = await self._written(
            stream,
            lambda: rounds.aadd_notice(self._process_id, job.turn, message.seq, WIND_DOWN, tokens),
        )
        await _announced(
            self._announcer.message_changed(job.conversation_id, stored.event_no, stored.message)
        )

    async def _written(
        self, stream: LiveStream, write: Callable[[], Awaitable[rounds.Stored | None]]
    ) -> rounds.Stored:
        """Store something of a running turn, with retries while the database is away.

        Raises CancelledError if another process has ended the turn, and what storing raises at
        last.
        """
        for attempt in range(FINISH_TRIES):
            try:
                stored = await write()
                break
            except Exception:
                if attempt == FINISH_TRIES - 1:
                    raise
                logger.exception("A round of turn %s could not be stored yet.", stream.job.turn)
                await asyncio.sleep(_pause(attempt))
        if stored is None:
            stream.lose()
            raise asyncio.CancelledError
        stream.event_no = stored.event_no
        return stored

    async def _reasoning_tokens(self, field: str, reasoning: str) -> int:
        """Ruler tokens of reasoning that may be sent back; 0 for any other."""
        if not field or not reasoning:
            return 0
        return await asyncio.to_thread(self._services.counter.count, reasoning)

    async def _with_text(self, stream: LiveStream, ending: progress.Ending) -> progress.Ending:
        """The ending with the whole text of the reply."""
        stream.gather()
        stream.take(shown=False)
        text = stream.text
        error, kept = ending.error, stream.earlier or bool(text.strip())
        if error is not None:
            ours = error["code"] == progress.INTERRUPTED
            error = progress.interruption(kept=kept) if ours else {**error, "partial_kept": kept}
        tokens = await asyncio.to_thread(message_tokens, self._services.counter, text)
        return replace(
            ending,
            text=text,
            reasoning=stream.reasoning,
            reasoning_tokens=await self._reasoning_tokens(ending.reasoning_field, stream.reasoning),
            tokens=tokens if text.strip() else 0,
            seconds=stream.thinking.end(),
            error=error,
            manifest=stream.manifest,
            **stream.spent.as_fields(),
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
                ended = await progress.afinish(
                    self._process_id, job.turn, job.reply_id, ending, seen=stream.seen
                )
                break
            except Exception:
                logger.exception("The end of turn %s could not be stored yet.", job.turn)
                await asyncio.sleep(_pause(attempt))
        else:
            return
        if ended is None:
            stream.enter(Phase.LOST)
            return
        await _announced(self._announcer.ended(ended))
