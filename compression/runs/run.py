"""One compression run: hold the lease, get a draft, judge it, and store or apply it.

A run lives in one asyncio task of one process. Its lease is in the database, so that other
processes see it; after a crash it expires.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import replace
from functools import partial

from django.db import DatabaseError

from compression import signals, store
from compression.engine import Request
from compression.exceptions import (
    CompressionCancelled,
    CompressionError,
    DraftRejected,
    LeaseLost,
    NothingToCompress,
    StaleVersion,
    SummarizerError,
)
from compression.judging.judge import Case, Judgement
from compression.planning import planner
from compression.recall.tools import without_looked_up
from compression.runs.leases import holding, shielded, to_its_end
from compression.runs.masks import mask_at_compression
from compression.runs.results import fit_draft, quoted_before, success
from compression.store import Base, FitDraft
from compression.summarizers.ladder import Ladder
from compression.types import Draft, Item, Outcome, Sizes, Span, Trigger

logger = logging.getLogger(__name__)

_living: dict[int, Run] = {}
"""The runs of this process by conversation; the lease allows only one each."""


def living(conversation_id: int) -> Run | None:
    """This process's run for a conversation, if there is one."""
    return _living.get(conversation_id)


async def claimed(request: Request) -> Run | None:
    """A run that holds the lease, or None when another one does."""
    claim = asyncio.ensure_future(
        store.aclaim(
            request.conversation_id, trigger=request.trigger, locks_input=request.locks_input
        )
    )
    try:
        token = await asyncio.shield(claim)
    except asyncio.CancelledError:
        # A lease that nobody uses would lock the page until it expires.
        if token := await claim:
            await store.arelease(request.conversation_id, token)
        raise
    return Run(request, token) if token else None


class Run:
    """One claimed run. Await :meth:`outcome` once; it always gives the lease back."""

    def __init__(self, request: Request, token: str) -> None:
        self._request = request
        self._token = token
        self._trigger = request.trigger
        self._began = time.monotonic()
        self._base: Base | None = None
        self._span: Span | None = None
        self._tail_tokens = 0
        self._ladder: Ladder | None = None
        self._work: asyncio.Task[Outcome] | None = None

    def cancel(self) -> None:
        """Stop the work; :meth:`outcome` answers with code ``compression_cancelled``."""
        if self._work is not None:
            self._work.cancel()

    async def announce(self, trigger: Trigger, *, locks_input: bool) -> None:
        """Announce that the run has started, or that the conversation now waits for it."""
        self._trigger = trigger
        if self._span is None:
            return
        await signals.send(
            signals.compression_started,
            conversation_id=self._request.conversation_id,
            trigger=trigger,
            message_count=len(self._span.items),
            source_tokens=self._span.source_tokens,
            locks_input=locks_input,
        )

    async def outcome(self) -> Outcome:
        """Do the whole run. Raises NothingToCompress; any later failure becomes an outcome."""
        conversation_id = self._request.conversation_id
        _living[conversation_id] = self
        try:
            self._work = asyncio.create_task(self._compress())
            outcome = await holding(
                self._work, conversation_id, self._token, self._request.settings
            )
        except asyncio.CancelledError:
            # The awaiting task was cancelled; a run that has begun is still brought to its end.
            await self._end(self._cancelled_outcome())
            raise
        except CompressionError as error:
            outcome = self._failure(error)
            await self._end(outcome)
            if self._span is None:
                raise
            return outcome
        except Exception as error:
            # Whatever a host's part raises, the lease is given back and the run ends.
            logger.exception("The compression of conversation %s broke", conversation_id)
            outcome = self._failure(SummarizerError())
            await self._end(outcome)
            if self._span is None:
                raise SummarizerError from error
            return outcome
        finally:
            if _living.get(conversation_id) is self:
                del _living[conversation_id]
        await self._end(outcome)
        return outcome

    async def _compress(self) -> Outcome:
        request = self._request
        base, items, through_seq = await _read(request)
        items = quoted_before(without_looked_up(items), request.from_seq)
        self._base = base
        self._tail_tokens = sum(item.tokens for item in items)
        sizes = await self._current_sizes(base)
        span = await asyncio.to_thread(
            planner.plan,
            items,
            sizes,
            request.settings.planner,
            trigger=request.trigger,
            through_seq=through_seq,
        )
        if request.trigger is Trigger.BACKGROUND:
            await self._check_beats_ready(span, sizes)
        self._span = span
        await self.announce(request.trigger, locks_input=request.locks_input)
        if request.on_started is not None:
            request.on_started()
        case = Case(
            base_text=base.text,
            base_ledger=base.ledger,
            items=items,
            span=span,
            sizes=sizes,
            settings=request.settings.planner,
            trigger=self._trigger,
            counter=request.engine.counter,
        )
        self._ladder = Ladder(request, self._token, base, case, self._waited_for)
        draft, judgement = await self._ladder.climb()
        return await self._save_or_apply(base, span, draft, judgement)

    async def _current_sizes(self, base: Base) -> Sizes:
        """The sizes with the current summary, which may have changed since they were measured."""
        sizes = self._request.sizes
        tokens = await asyncio.to_thread(self._request.engine.counter.count, base.text)
        return replace(sizes, summary=max(sizes.summary, tokens + sizes.frame) if tokens else 0)

    async def _check_beats_ready(self, span: Span, sizes: Sizes) -> None:
        """Check, before a model is paid for, that this draft would replace the ready one."""
        found = await store.aread_ready(
            self._request.conversation_id, self._request.engine.transcript
        )
        if found is None:
            return
        more = sizes.share(span.source_tokens - found[0].source_tokens)
        if more < store.REPLACES_READY:
            raise NothingToCompress("A summary is already prepared.", fields={"frees": more})

    async def _waited_for(self) -> bool:
        """Whether a request waits for the run; another process may have promoted it."""
        if self._trigger is Trigger.BACKGROUND:
            trigger = await store.alease_trigger(self._request.conversation_id, self._token)
            self._trigger = trigger or self._trigger
        return self._trigger is not Trigger.BACKGROUND

    async def _save_or_apply(
        self, base: Base, span: Span, draft: Draft, judgement: Judgement
    ) -> Outcome:
        """Save a draft that waits, apply any other. Raises when a guard of the store fails."""
        request = self._request
        fit = await asyncio.to_thread(
            fit_draft,
            request,
            span,
            draft,
            judgement,
            trigger=self._trigger,
            duration=time.monotonic() - self._began,
        )
        conversation_id, token = request.conversation_id, self._token
        if self._trigger is Trigger.PREVIEW:
            if not await to_its_end(_kept_as_preview(request, token, base, fit, self._tail_tokens)):
                raise await self._late_error()
            return success(fit, draft, judgement, duration=time.monotonic() - self._began)
        if not await self._waited_for():
            saved = await to_its_end(store.asave_ready(conversation_id, token, base, fit))
            if saved is not None:
                return success(fit, draft, judgement, duration=time.monotonic() - self._began)
            # The run was promoted at the last moment, or its lease or the version is gone.
            if not await self._waited_for():
                raise await self._late_error()
        fit = replace(fit, trigger=self._trigger)
        version = await to_its_end(
            store.aapply(conversation_id, token, base, fit, request.engine.transcript)
        )
        if version is None:
            raise await self._late_error()
        masked = mask_at_compression(conversation_id, engine=request.engine, sizes=request.sizes)
        await to_its_end(masked)
        duration = time.monotonic() - self._began
        return success(fit, draft, judgement, duration=duration, version=version)

    async def _late_error(self) -> CompressionError:
        """The reason why a draft came too late: a lost lease, or a changed summary."""
        held = await store.alease_trigger(self._request.conversation_id, self._token)
        return (
            LeaseLost()
            if held is None
            else StaleVersion("The summary was changed meanwhile, so the new draft was dropped.")
        )

    def _cancelled_outcome(self) -> Outcome:
        """The outcome of a run whose awaiter was cancelled; a commit under way is kept."""
        work = self._work
        if work and work.done() and not work.cancelled() and work.exception() is None:
            return work.result()
        return self._failure(CompressionCancelled())

    def _failure(self, error: CompressionError) -> Outcome:
        return Outcome(
            success=False,
            trigger=self._trigger,
            code=error.code,
            reason=error.message,
            message_count=len(self._span.items) if self._span else 0,
            duration=time.monotonic() - self._began,
        )

    async def _end(self, outcome: Outcome) -> None:
        await shielded(self._finish(outcome))

    async def _finish(self, outcome: Outcome) -> None:
        """Give the lease back, store the failed attempts, and announce the end."""
        conversation_id = self._request.conversation_id
        for step in (
            partial(store.arelease, conversation_id, self._token),
            partial(self._record, outcome),
        ):
            try:
                await step()
            except DatabaseError:
                # The lease expires by itself; the attempts are only for the reviewer.
                logger.exception("The end of compression %s was not stored", conversation_id)
        if self._span is None:
            await signals.send(signals.compression_withdrawn, conversation_id=conversation_id)
        else:
            await signals.send(
                signals.compression_completed, conversation_id=conversation_id, outcome=outcome
            )

    async def _record(self, outcome: Outcome) -> None:
        if self._base is None or self._ladder is None:
            return
        ended = outcome.code in {SummarizerError.code, DraftRejected.code}
        attempts = self._ladder.attempts
        for attempt in attempts:
            await store.arecord_attempt(
                self._request.conversation_id,
                run=self._token,
                status=attempt.status,
                trigger=self._trigger,
                reason=attempt.reason,
                base=self._base,
                final=ended and attempt is attempts[-1],
                fruitless=attempt.fruitless,
                tail_tokens=self._tail_tokens,
                model=attempt.model,
                cost=attempt.spent.cost,
            )


async def _read(request: Request) -> tuple[Base, tuple[Item, ...], int | None]:
    """The summary that the run goes on from, the items after it, and where the span is to end."""
    conversation_id, transcript = request.conversation_id, request.engine.transcript
    if request.again:
        return await store.aread_again(conversation_id, request.again, transcript)
    base, items = await store.aread(conversation_id, transcript)
    return base, items, request.through_seq


async def _kept_as_preview(
    request: Request, token: str, base: Base, fit: FitDraft, tail_tokens: int
) -> bool:
    """Store the draft for a person to look at. False when it came too late."""
    return await store.asave_preview(
        request.conversation_id,
        token,
        base,
        fit,
        from_seq=request.from_seq,
        focus=request.focus,
        tail_tokens=tail_tokens,
    )
