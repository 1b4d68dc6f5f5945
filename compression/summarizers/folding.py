"""The summary of a long span, part by part: planned, bounded, announced, and stored when finished.

A part that no model could write is written by the extract. When the failures go on, the error is
raised, and the next summariser or run continues after the finished parts.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from compression.exceptions import DraftRejected, SummarizerError
from compression.ledger.newest import newest_lines
from compression.planning.parts import Chunk, Finished, Plan, bounded
from compression.ports import PartwiseSummarizer, Summarizer
from compression.types import Draft, Extracted, Item, Ledger, Progress, Spent

MOST_MISSED = 3
"""Parts in a row without a usable answer, after which the model is given up."""

Tell = Callable[[Progress], Awaitable[None]]
Keep = Callable[[Finished], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Aids:
    """The extract, the limits and the callbacks of a fold."""

    extract: Summarizer | None
    may_extract: Callable[[], Awaitable[bool]]
    """Whether the extract may replace a model that failed."""
    most_calls: int
    """Most model calls, for all parts together."""
    tell: Tell
    keep: Keep
    bound: Callable[[Ledger], tuple[Ledger, tuple[str, ...]]]
    """Returns the ledger without new rules that have no room, and notes. Slow."""


async def folded(
    summarizer: Summarizer,
    items: Sequence[Item],
    ledger: Ledger,
    aids: Aids,
    *,
    focus: str,
    finished: Finished | None = None,
    instead: str = "",
) -> Draft:
    """A draft that covers ``ledger`` and ``items``; ``finished`` parts are not made again.

    ``instead`` is the reason why no model is asked, if the summariser is the extract. Raises
    SummarizerError when there is no draft; its ``spent`` is that of the parts that were not stored.
    """
    rest = finished.rest_of(items) if finished else items
    if finished is not None:
        ledger = finished.draft.ledger
        if not rest:
            return finished.draft
    if isinstance(summarizer, PartwiseSummarizer):
        fold = _Fold(summarizer, aids, focus=focus, finished=finished)
        return await fold.draft(rest, ledger)
    number = finished.parts + 1 if finished else 1
    at = Progress(part=number, parts=number, first_seq=rest[0].seq, through_seq=rest[-1].seq)

    async def told(tokens: int) -> None:
        await aids.tell(replace(at, tokens_written=tokens))

    if finished is None:
        return await summarizer.draft(rest, ledger, focus=focus, on_tokens=told)
    if instead:
        part = await _by_extract(summarizer, rest, ledger, at, instead, focus=focus, told=told)
    else:
        part = await summarizer.draft(rest, ledger, focus=focus, on_tokens=told)
    return finished.draft.followed_by(part)


def whole(items: Sequence[Item], reason: str) -> Extracted:
    """All of ``items``, in order, as one part that the extract wrote because of ``reason``."""
    first, last = items[0].seq, items[-1].seq
    return Extracted(first_seq=first, through_seq=last, part=1, parts=1, reason=reason)


async def _by_extract(
    extract: Summarizer,
    items: Sequence[Item],
    ledger: Ledger,
    at: Progress,
    reason: str,
    *,
    focus: str,
    told: Callable[[int], Awaitable[None]],
) -> Draft:
    """One part written by the extract in place of a model."""
    made = Extracted(
        first_seq=at.first_seq,
        through_seq=at.through_seq,
        part=at.part,
        parts=at.parts,
        reason=reason,
    )
    try:
        part = await extract.draft(items, ledger, focus=focus, on_tokens=told)
    except SummarizerError:
        # For instance a part of tool results alone, which has no sentence to keep.
        part = Draft(ledger=ledger, model=extract.label, prompt_version="")
        made = replace(made, reason=f"{reason.rstrip('.')}; it held no text to keep")
    return replace(part, notes=(*part.notes, str(made)), degraded=True, extracted=(made,))


class _Fold:
    """The parts that one model writes of a span."""

    def __init__(
        self,
        summarizer: PartwiseSummarizer,
        aids: Aids,
        *,
        focus: str,
        finished: Finished | None,
    ) -> None:
        self._summarizer = summarizer
        self._aids = aids
        self._focus = focus
        self._begun = finished
        self._done = finished.parts if finished else 0
        self._draft = finished.draft if finished else None
        self._kept = self._draft.spent if self._draft else Spent()
        self._pace = _Pace()
        self._calls = 0
        self._lines: tuple[str, ...] = ()
        self._answered = False
        # Failures since the last part that the model wrote.
        self._missed: list[SummarizerError] = []

    async def draft(self, items: Sequence[Item], ledger: Ledger) -> Draft:
        """The draft of ``items``, without the finished parts among them."""
        try:
            return await self._draft_of(items, ledger)
        except SummarizerError as error:
            error.spent = self._unstored_cost(error.spent)
            raise

    async def _draft_of(self, items: Sequence[Item], ledger: Ledger) -> Draft:
        whole = await asyncio.to_thread(self._summarizer.plan, items, ledger, focus=self._focus)
        plan = bounded(whole, self._aids.most_calls)
        parts = self._done + plan.parts
        if plan.oldest:
            await self._oldest(plan, ledger, parts, len(whole.chunks))
        self._pace.plan(plan.chunks)
        for number, chunk in enumerate(plan.chunks):
            at = Progress(
                part=self._done + 1,
                parts=parts,
                first_seq=chunk.first_seq,
                through_seq=chunk.through_seq,
                lines=self._lines,
            )
            after = len(plan.chunks) - number - 1
            present = self._draft.ledger if self._draft else ledger
            added = await self._add(await self._part(plan, chunk, present, at, after))
            self._lines = newest_lines(present, added) or self._lines
            await self._keep(chunk, plan)
        assert self._draft is not None, "a plan has at least one part"
        if not self._answered:
            last = self._missed[-1]
            last.spent = Spent()
            # The cost is counted with the part that the extract made in its place.
            raise last
        return self._draft

    async def _oldest(self, plan: Plan, ledger: Ledger, parts: int, calls: int) -> None:
        """Let the extract write the parts for which there are no calls left."""
        at = Progress(
            part=self._done + 1,
            parts=parts,
            first_seq=plan.oldest[0].seq,
            through_seq=plan.oldest[-1].seq,
        )
        reason = (
            f"all of it would take {calls} calls of the model, {self._aids.most_calls} are the most"
        )
        if self._aids.extract is None:
            raise SummarizerError(f"The conversation is too long to summarise: {reason}.")
        await self._add(await self._extracted(plan.oldest, ledger, at, reason))

    async def _part(
        self, plan: Plan, chunk: Chunk, ledger: Ledger, at: Progress, after: int
    ) -> Draft:
        """Write one part, by the model or else by the extract."""
        began = time.monotonic()
        most_calls = max(1, self._aids.most_calls - self._calls - after)
        if self._missed and not self._answered:
            # A model that has answered nothing so far is asked only once for each part.
            most_calls = 1
        try:
            part = await self._summarizer.part(
                plan,
                chunk,
                ledger,
                focus=self._focus,
                on_tokens=await self._told(at, chunk),
                most_calls=most_calls,
            )
        except SummarizerError as error:
            self._calls += max(1, error.spent.calls)
            self._missed.append(error)
            if not await self._worth_going_on(error, after):
                raise
            self._pace.skips(chunk)
            part = await self._extracted(plan.source(chunk), ledger, at, error.message)
            return replace(part, spent=part.spent + error.spent)
        self._calls += part.spent.calls
        self._missed.clear()
        self._answered = True
        self._pace.takes(chunk, time.monotonic() - began)
        return part

    async def _worth_going_on(self, error: SummarizerError, after: int) -> bool:
        """Whether the extract should replace this part, with ``after`` parts still to come.

        A server that has never answered is not asked again.
        """
        if not error.transient or len(self._missed) >= MOST_MISSED:
            return False
        if not self._answered and not (after and isinstance(error, DraftRejected)):
            return False
        return self._aids.extract is not None and await self._aids.may_extract()

    async def _extracted(
        self, items: Sequence[Item], ledger: Ledger, at: Progress, reason: str
    ) -> Draft:
        assert self._aids.extract is not None
        told = await self._told(at)
        return await _by_extract(
            self._aids.extract, items, ledger, at, reason, focus=self._focus, told=told
        )

    async def _told(
        self, at: Progress, chunk: Chunk | None = None
    ) -> Callable[[int], Awaitable[None]]:
        """Announce that a part begins; returns the callback that reports its progress."""
        began = time.monotonic()
        before = self._draft.spent.completion_tokens if self._draft else 0

        async def told(tokens: int) -> None:
            left = self._pace.left(chunk, time.monotonic() - began) if chunk else None
            await self._aids.tell(replace(at, tokens_written=before + tokens, seconds_left=left))

        await told(0)
        return told

    async def _add(self, part: Draft) -> Ledger:
        """Add a finished part. Returns the ledger with it."""
        # The next part is shown the notes; unlimited rules would crowd out all other notes.
        ledger, left_out = await asyncio.to_thread(self._aids.bound, part.ledger)
        part = replace(part, ledger=ledger, notes=(*part.notes, *left_out))
        # A part written by the extract alone does not decide how the whole is labelled.
        self._draft = self._draft.followed_by(part) if self._draft else part
        self._done += 1
        return ledger

    async def _keep(self, chunk: Chunk, plan: Plan) -> None:
        """Store the parts that a model has finished. Parts by the extract are not stored, so that
        another model may write them."""
        assert self._draft is not None
        said = plan.originals[chunk.through_seq].text[: chunk.divided_at]
        if self._missed or (chunk.divided_at and not said.endswith(chunk.items[-1].text)):
            # The message was cut for the call, so its length does not tell where to continue.
            return
        self._kept = self._draft.spent
        begun = self._begun
        # Of a message that was divided before, the plan holds only the rest.
        before = begun.divided_at if begun and begun.through_seq == chunk.through_seq else 0
        await self._aids.keep(
            Finished(
                draft=self._draft,
                through_seq=chunk.through_seq,
                parts=self._done,
                divided_at=chunk.divided_at and before + chunk.divided_at,
            )
        )

    def _unstored_cost(self, failed: Spent) -> Spent:
        """The cost since the last part was stored, including the failed one."""
        spent = self._draft.spent if self._draft else Spent()
        return spent.without(self._kept) + failed


class _Pace:
    """The pace at which parts are written, to estimate the time that is left."""

    def __init__(self) -> None:
        self._tokens_left = 0
        self._tokens = 0
        self._seconds = 0.0

    def plan(self, chunks: Sequence[Chunk]) -> None:
        """Set the parts to be written."""
        self._tokens_left = sum(chunk.tokens for chunk in chunks)

    def skips(self, chunk: Chunk) -> None:
        """Leave out a part that the model does not write."""
        self._tokens_left -= chunk.tokens

    def takes(self, chunk: Chunk, seconds: float) -> None:
        """Record a part that the model has written."""
        self.skips(chunk)
        self._tokens += chunk.tokens
        self._seconds += seconds

    def left(self, chunk: Chunk, elapsed: float) -> float | None:
        """Seconds until all parts are finished; ``chunk`` has been in progress for ``elapsed``."""
        if not self._tokens:
            return None
        rate = self._seconds / self._tokens
        this = max(0.0, chunk.tokens * rate - elapsed)
        return this + (self._tokens_left - chunk.tokens) * rate
