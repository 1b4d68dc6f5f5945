"""The summarisers, asked for a draft one after another until one is fit."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, replace

from django.db import DatabaseError

from compression import signals, store
from compression.engine import Request
from compression.exceptions import DraftRejected, SummarizerError
from compression.judging.judge import Case, Fruitless, Judgement, judge, with_room
from compression.judging.probe import probed
from compression.planning.parts import Finished
from compression.ports import PartwiseSummarizer, Summarizer
from compression.store import Base
from compression.summarizers.folding import Aids, folded, whole
from compression.types import Draft, Progress, Spent, SummaryStatus

logger = logging.getLogger(__name__)

PROGRESS_SECONDS = 0.25
"""Least time between two progress signals of one part."""
NARROWED = 2
"""How often a model that refused a part as too long is asked for shorter ones. A tokenizer that
counts more than expected is met at the first try; more would only cost calls."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """The failure of one summariser."""

    status: SummaryStatus
    reason: str
    model: str
    fruitless: bool
    spent: Spent


class Ladder:
    """The summarisers of one run. Each continues after the parts that an earlier one finished."""

    def __init__(
        self,
        request: Request,
        token: str,
        base: Base,
        case: Case,
        waited_for: Callable[[], Awaitable[bool]],
    ) -> None:
        self.attempts: list[Attempt] = []
        self._request = request
        self._token = token
        self._base = base
        self._case = case
        self._waited_for = waited_for
        self._finished: Finished | None = None
        # The cost, to an earlier run, of the parts that this one takes over.
        self._resumed = Spent()
        self._told: tuple[int, float] = (0, float("-inf"))

    async def climb(self) -> tuple[Draft, Judgement]:
        """The first fit draft. Raises the last refusal when there is none."""
        engine = self._request.engine
        await self._resume()
        last = SummarizerError()
        models = engine.summarizers
        if self._request.extract_only:
            models, last = (), SummarizerError("The models have failed too often.")
        rungs = [(summarizer, NARROWED) for summarizer in reversed(models)]
        while rungs and self._calls_left() > 0:
            summarizer, narrower = rungs.pop()
            try:
                return await self._attempt(summarizer)
            except SummarizerError as error:
                last = error
                if error.too_long and narrower and isinstance(summarizer, PartwiseSummarizer):
                    rungs.append((summarizer.narrowed(error.too_long), narrower - 1))
        if engine.extract is not None and await self._waited_for():
            return await self._attempt(engine.extract, instead=last.message)
        raise last

    async def _resume(self) -> None:
        """Take over the parts that an earlier run finished, if this run would make the same."""
        summarizers = self._request.engine.summarizers
        prompts = {one.prompt_version for one in summarizers if isinstance(one, PartwiseSummarizer)}
        if prompts:
            self._finished = await store.afinished_parts(
                self._base,
                self._case.span.items,
                prompt_versions=prompts,
                focus=self._request.focus,
            )
        if self._finished is not None:
            self._resumed = self._finished.draft.spent

    def _calls_left(self) -> int:
        """Model calls that this run may still make."""
        spent = sum((one.spent for one in self.attempts), Spent())
        if self._finished is not None:
            spent += self._finished.draft.spent
        return self._request.settings.max_calls - (spent.calls - self._resumed.calls)

    async def _attempt(
        self, summarizer: Summarizer, *, instead: str = ""
    ) -> tuple[Draft, Judgement]:
        """One try. ``instead``: why the extract replaces the models, if ``summarizer`` is it."""
        engine, draft = self._request.engine, None
        try:
            draft = await self._drafted(summarizer, instead)
            judgement = await asyncio.to_thread(judge, draft, self._case)
            if engine.probe is not None and self._request.settings.probe and not draft.degraded:
                draft, judgement = await probed(engine.probe, draft, judgement, self._case)
        except SummarizerError as error:
            await self._note(error, summarizer, draft)
            raise
        except Exception as error:
            # Whatever a host's summariser raises, the next one is tried.
            logger.exception("The summariser %s broke", summarizer.label)
            broken = SummarizerError()
            await self._note(broken, summarizer, draft)
            raise broken from error
        # A version's cost includes everything spent on the way to it, refused drafts too.
        whole = sum((one.spent for one in self.attempts), draft.spent)
        return replace(draft, spent=whole), judgement

    async def _drafted(self, summarizer: Summarizer, instead: str) -> Draft:
        aids = Aids(
            extract=self._request.engine.extract,
            may_extract=self._waited_for,
            most_calls=self._calls_left(),
            tell=self._tell,
            keep=self._keep,
            bound=lambda ledger: with_room(ledger, self._case),
        )
        finished = self._finished
        draft = await folded(
            summarizer,
            self._case.span.items,
            self._case.base_ledger,
            aids,
            focus=self._request.focus,
            finished=finished,
            instead=instead,
        )
        by_model = not instead or finished is not None or not self._request.engine.summarizers
        if by_model:
            return replace(draft, degraded=False)
        return replace(draft, degraded=True, extracted=(whole(self._case.span.items, instead),))

    async def _note(
        self, error: SummarizerError, summarizer: Summarizer, draft: Draft | None
    ) -> None:
        """Record the failure for the reviewer, and drop the finished parts of a refused draft."""
        refused = isinstance(error, DraftRejected)
        attempt = Attempt(
            status=SummaryStatus.REJECTED if refused else SummaryStatus.FAILED,
            reason=error.message,
            model=summarizer.label,
            fruitless=isinstance(error, Fruitless),
            spent=error.spent + draft.spent if draft else error.spent,
        )
        self.attempts.append(attempt)
        if draft is not None and self._finished is not None:
            self._finished = None
            await store.adrop_parts(self._request.conversation_id, token=self._token)

    async def _keep(self, finished: Finished) -> None:
        """Store finished parts, so that no other summariser or later run must write them again."""
        self._finished = finished
        items = self._case.span.items
        try:
            await store.akeep_parts(
                self._token,
                self._base,
                finished,
                [item for item in items if item.seq <= finished.through_seq],
                trigger=self._case.trigger,
                focus=self._request.focus,
            )
        except DatabaseError:
            # They are only needed if this run fails.
            logger.exception("The finished parts of a summary were not stored")

    async def _tell(self, progress: Progress) -> None:
        part, at = self._told
        now = time.monotonic()
        if progress.part == part and now - at < PROGRESS_SECONDS:
            return
        self._told = (progress.part, now if progress.tokens_written else at)
        await signals.send(
            signals.compression_progress,
            conversation_id=self._request.conversation_id,
            **asdict(progress),
        )
