"""Flushes of running replies: the text is stored, then rendered once for all viewers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TypeVar

from chatapp.live import events
from chatapp.live.bus import Bus
from chatapp.rendering import fragments, markdown
from chatapp.rendering.markdown.cost_estimate import LARGE
from chatapp.rendering.pool import RenderingPool
from chatapp.turns.announcer import common
from chatapp.turns.checkpoints import Checkpoints
from chatapp.turns.live_reply import LiveStream, Phase

logger = logging.getLogger(__name__)
T = TypeVar("T")


class Flusher:
    """Shows the replies of this process while they are received, each at its own pace."""

    def __init__(self, bus: Bus, pool: RenderingPool) -> None:
        self._bus = bus
        self._pool = pool
        self._checkpoints = Checkpoints()
        self._settling: set[asyncio.Task[None]] = set()

    def begin(self, stream: LiveStream) -> None:
        """Show the reply from now on, as it is received."""
        stream.flusher = asyncio.create_task(
            self._flush_when_due(stream), name=f"showing turn {stream.job.turn}"
        )

    async def finish(self, stream: LiveStream) -> None:
        """Show the rest of a turn that is finishing. Never raises.

        A flush under way is waited for: if it were cancelled, the same text would be stored again,
        and its thread would still be at work.
        """
        async with stream.flushing:
            if stream.flusher is not None:
                stream.flusher.cancel()
                await asyncio.wait({stream.flusher})
            await self._flush_rest(stream)

    async def settle(self, stream: LiveStream) -> None:
        """Show all text of a message whose turn goes on. Raises nothing but CancelledError.

        The flush itself is not cancelled: :meth:`finish` waits for it.
        """
        task = asyncio.create_task(self._settle(stream), name=f"settling turn {stream.job.turn}")
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)
        await asyncio.shield(task)

    async def _settle(self, stream: LiveStream) -> None:
        async with stream.flushing:
            await self._flush_rest(stream)

    async def _flush_rest(self, stream: LiveStream) -> None:
        if stream.pending and not stream.lost:
            await self._flush(stream)

    async def aclose(self) -> None:
        """Stop storing checkpoints."""
        await self._checkpoints.aclose()

    async def _flush_when_due(self, stream: LiveStream) -> None:
        while stream.phase < Phase.FINISHING:
            await stream.flush_pending.wait()
            await asyncio.sleep(max(0.0, stream.due_in))
            async with stream.flushing:
                stream.flush_pending.clear()
                # The text may have been shown with the end of its message.
                await self._flush_rest(stream)

    async def _flush(self, stream: LiveStream) -> None:
        """Store the buffered text, then announce it. Never raises."""
        try:
            # Before the announcement, a storing thread would only compete for the interpreter.
            await stream.announced.wait()
            if await self._checkpoints.store(stream.gather()):
                await self._tell(stream)
            else:
                stream.lose()
        except Exception:
            # The reply goes on, and its end shows the whole text anyway.
            logger.exception("New text of turn %s could not be shown.", stream.job.turn)

    async def _tell(self, stream: LiveStream) -> None:
        job = stream.job
        if not self._bus.watched(job.conversation_id):
            stream.take(shown=False)
            return
        offset, reasoning_offset = len(stream.text), len(stream.reasoning)
        text, reasoning = stream.take(shown=True)
        delta = events.Delta(
            turn=job.turn,
            seq=job.reply_seq,
            offset=offset,
            text=text,
            reasoning_offset=reasoning_offset,
            reasoning=reasoning,
            seconds=stream.thinking.seconds if stream.text else None,
            **common(job.conversation_id, stream.event_no),
        )
        update = await self._rendered(stream)
        await self._bus.publish(delta, fragments.render_event(delta, update))

    async def _rendered(self, stream: LiveStream) -> markdown.Update:
        while stream.rendering.unseen:
            await self._in_loop_or_thread(stream, stream.rendering.catch_up)
        return await self._in_loop_or_thread(stream, stream.rendering.render)

    async def _in_loop_or_thread(self, stream: LiveStream, work: Callable[[], T]) -> T:
        """Do the work here, or in a thread if there is so much to render that others would wait.

        The pool does the work of one share in order, one piece at a time.
        """
        if stream.rendering.to_render <= LARGE:
            return work()
        return await self._pool.run(("conversation", stream.job.conversation_id), work)
