"""Announcements to viewers of stored changes, read back from the database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

from django.utils import timezone

from chatapp.conversations.messages import masks
from chatapp.conversations.summaries import compressions
from chatapp.conversations.tools.approvals import Change
from chatapp.conversations.turns import progress
from chatapp.conversations.turns.progress import Ended
from chatapp.conversations.turns.rounds import Stored
from chatapp.conversations.turns.sending import Accepted
from chatapp.live import compression_progress, events
from chatapp.live.bus import Bus
from chatapp.live.view_models import MessageView
from chatapp.turns.live_reply import LiveStream
from chatapp.turns.services import Services
from compression.exceptions import UserFacingError
from compression.ports import MaskChange
from compression.tools.loop import MadeCall
from compression.types import Outcome, Progress, Trigger

# Most changed messages that are announced one by one.
MOST_AT_ONCE = 50
ASKED_AGAIN = "The model server is getting too many requests. It will be asked again automatically."


def common(conversation_id: int, event_no: int) -> dict[str, Any]:
    """The fields of every event."""
    return {"conversation_id": conversation_id, "event_no": event_no, "at": timezone.now()}


async def _tell_context(
    services: Services, bus: Bus, conversation_id: int, about: dict[str, Any]
) -> None:
    """Announce how full the context now is, if anybody looks."""
    if bus.watched(conversation_id):
        context = await services.acontext(conversation_id)
        await bus.publish(events.Context(context=context, **about))


@dataclass(eq=False)
class Announcer:
    """Publishes events. Those methods are receivers of compression's signals that are named so."""

    _services: Services
    _bus: Bus
    # The event that announced the present run of each conversation, if of this process.
    _compressing: dict[int, events.CompressionStarted] = field(default_factory=dict, init=False)

    async def begun(self, accepted: Accepted) -> None:
        """Announce that a turn begins."""
        about = common(accepted.conversation_id, accepted.event_no)
        for message in accepted.changed:
            await self._bus.publish(events.MessageChanged(message=message, **about))
        for message in accepted.messages:
            await self._bus.publish(events.MessageAdded(message=message, **about))
        await self._bus.publish(
            events.TurnStarted(
                turn=accepted.turn,
                message_seq=accepted.message_seq,
                reply_seq=accepted.reply_seq,
                model=accepted.model,
                **about,
            )
        )

    async def announce_retry(
        self, stream: LiveStream, error: UserFacingError, seconds: float
    ) -> None:
        """Announce that the model server is busy and is asked again in ``seconds``.

        The notice is also stored with the turn, for pages that are opened meanwhile.
        """
        job = stream.job
        notice = {**error.as_dict(), "message": ASKED_AGAIN, "retry_after": seconds}
        notice["fields"] = {**notice["fields"], "since": timezone.now().isoformat()}
        about = common(job.conversation_id, stream.event_no)
        await self._bus.publish(
            events.Error(error=notice, turn=job.turn, seq=job.reply_seq, **about)
        )
        await progress.astore_retry_notice(job.turn, notice)

    async def ended(self, ended: Ended) -> None:
        """Announce that a turn got its terminal status."""
        about = common(ended.conversation_id, ended.event_no)
        await self._bus.publish(
            events.TurnFinished(
                turn=ended.turn.turn,
                status=ended.turn.status,
                error=ended.turn.error,
                usage=ended.turn.usage,
                message=ended.message,
                ended=ended.turn,
                **about,
            )
        )
        await _tell_context(self._services, self._bus, ended.conversation_id, about)

    async def tools_called(
        self, conversation_id: int, turn: int, stored: Stored, calls: Sequence[MadeCall]
    ) -> None:
        """Announce a reply that ended with calls, and each call."""
        about = common(conversation_id, stored.event_no)
        await self._bus.publish(events.MessageChanged(message=stored.message, **about))
        for call in calls:
            await self._bus.publish(
                events.ToolStarted(
                    turn=turn,
                    seq=stored.message.seq,
                    call_id=call.id,
                    name=call.name,
                    arguments=dict(call.arguments),
                    **about,
                )
            )

    async def tool_answered(self, conversation_id: int, turn: int, stored: Stored) -> None:
        """Announce the result of a call, and how full the context now is."""
        message, about = stored.message, common(conversation_id, stored.event_no)
        await self.message_added(conversation_id, stored)
        await self._bus.publish(
            events.ToolFinished(
                turn=turn,
                seq=message.seq,
                call_id=message.tool_call_id,
                name=message.tool_name,
                result=message.text,
                seconds=message.seconds or 0.0,
                **about,
            )
        )
        await _tell_context(self._services, self._bus, conversation_id, about)

    async def message_added(self, conversation_id: int, stored: Stored) -> None:
        """Announce a message of a running turn."""
        about = common(conversation_id, stored.event_no)
        await self._bus.publish(events.MessageAdded(message=stored.message, **about))

    async def message_changed(
        self, conversation_id: int, event_no: int, message: MessageView
    ) -> None:
        """Announce that a stored message changed, and how full the context now is."""
        about = common(conversation_id, event_no)
        await self._bus.publish(events.MessageChanged(message=message, **about))
        await _tell_context(self._services, self._bus, conversation_id, about)

    async def approval(self, change: Change) -> None:
        """Announce that a call waits for a person's answer, or no longer does."""
        if change.message is None:
            await self._bus.nudge(change.conversation_id)
            return
        about = common(change.conversation_id, change.event_no)
        await self._bus.publish(events.MessageChanged(message=change.message, **about))

    async def masks_changed(
        self, *, conversation_id: int, change: MaskChange, on: bool, **_: Any
    ) -> None:
        """Announce masked messages, or those whose masks a person took off.

        Viewers fetch the changes themselves if there are many.
        """
        changed = await masks.achanged(conversation_id, change.seqs[:MOST_AT_ONCE])
        about = common(conversation_id, changed.event_no)
        if len(change.seqs) > MOST_AT_ONCE:
            await self._bus.nudge(conversation_id)
        else:
            for message in changed.messages:
                await self._bus.publish(events.MessageChanged(message=message, **about))
        if on:
            await self._bus.publish(
                events.Masked(
                    batch=change.batch,
                    count=len(change.seqs),
                    tokens_freed=change.tokens_freed,
                    seqs=list(change.seqs),
                    **about,
                )
            )
        await self.summary_changed(conversation_id=conversation_id)

    async def title(self, conversation_id: int, event_no: int, title: str) -> None:
        """Announce the conversation's new title."""
        about = common(conversation_id, event_no)
        await self._bus.publish(events.TitleChanged(title=title, **about))

    async def summary_changed(self, *, conversation_id: int, **_: Any) -> None:
        """Announce that the summary, or something else of what the model sees, has changed."""
        event_no, compression, context = await self._services.aoverview(conversation_id)
        await self._bus.publish(
            events.SummaryChanged(
                version=compression.version,
                compression=compression,
                context=context,
                **common(conversation_id, event_no),
            )
        )

    async def compression_started(
        self,
        *,
        conversation_id: int,
        trigger: Trigger,
        message_count: int,
        source_tokens: int,
        locks_input: bool,
        **_: Any,
    ) -> None:
        """Announce that a run has begun, or that a request now waits for it."""
        if message_count:
            await compressions.atakes_in(conversation_id, message_count)
        event_no, compression, _context = await self._services.aoverview(conversation_id)
        started = events.CompressionStarted(
            trigger=str(trigger),
            # Not passed for a run of another process, which has stored the number itself.
            message_count=message_count or compression.messages_under_way,
            source_tokens=source_tokens,
            locks_input=locks_input,
            **common(conversation_id, event_no),
        )
        if message_count:
            self._compressing[conversation_id] = started
        await self._bus.publish(started)

    async def compression_progress(
        self,
        *,
        conversation_id: int,
        tokens_written: int,
        part: int = 1,
        parts: int = 1,
        first_seq: int = 0,
        through_seq: int = 0,
        seconds_left: float | None = None,
        lines: tuple[str, ...] = (),
        **_: Any,
    ) -> None:
        """Announce more of the summary, or its next part."""
        progress = Progress(
            tokens_written=tokens_written,
            part=part,
            parts=parts,
            first_seq=first_seq,
            through_seq=through_seq,
            seconds_left=seconds_left,
            lines=lines,
        )
        if compression_progress.goes_on(conversation_id, progress) and parts > 1:
            await compressions.ais_at(conversation_id, progress)
        started = self._compressing.get(conversation_id)
        await self._bus.publish(
            events.CompressionProgress(
                tokens_written=tokens_written,
                message_count=started.message_count if started else 0,
                part=part,
                parts=parts,
                first_seq=first_seq,
                through_seq=through_seq,
                seconds_left=None if seconds_left is None else ceil(seconds_left),
                lines=lines,
                **common(conversation_id, started.event_no if started else 0),
            )
        )

    async def compression_completed(
        self, *, conversation_id: int, outcome: Outcome, **_: Any
    ) -> None:
        """Announce that a run has ended, with or without success."""
        self._compressing.pop(conversation_id, None)
        compression_progress.ends(conversation_id)
        event_no, compression, context = await self._services.aoverview(conversation_id)
        about = common(conversation_id, event_no)
        await self._bus.publish(
            events.CompressionCompleted(
                trigger=str(outcome.trigger),
                success=outcome.success,
                version=outcome.version,
                tokens_before=outcome.tokens_before,
                tokens_after=outcome.tokens_after,
                usage_before=outcome.usage_before,
                usage_after=outcome.usage_after,
                reason=outcome.reason,
                code=outcome.code,
                degraded=outcome.degraded,
                duration=outcome.duration,
                cost=outcome.cost,
                compression=compression,
                context=context,
                **about,
            )
        )
        if outcome.success and outcome.version:
            await self._bus.publish(
                events.SummaryChanged(
                    version=compression.version,
                    compression=compression,
                    context=context,
                    **about,
                )
            )

    async def compression_withdrawn(self, *, conversation_id: int, **_: Any) -> None:
        """Announce the new number of changes: a run took the lease and gave it back unused."""
        await self._bus.nudge(conversation_id)
