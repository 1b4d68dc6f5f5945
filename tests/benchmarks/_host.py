"""A host of compression in memory: the product's own policy, planner, judge and request builder."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field

from chatapp.context.request import (
    BuiltRequest,
    ConversationSnapshot,
    StoredMessage,
    build_request,
    request_sizes,
    visible_tail,
)
from chatapp.context.tokens import MESSAGE_OVERHEAD
from compression.exceptions import NothingToCompress, SummarizerError
from compression.judging.judge import Case, Judgement, judge
from compression.planning import planner
from compression.planning.planner import PlannerSettings
from compression.planning.policy import PolicySettings, PolicyState, decide
from compression.ports import Summarizer
from compression.summarizers.extractive import ExtractiveSummarizer
from compression.tokens import default_counter
from compression.types import ContextAction, Item, Ledger, Role, Sizes, Span, Trigger

CALIBRATION = 1.0
#: The bench's provider counts as our ruler does.
MARK = "=== 0123456789abcdef ==="


class Ruler:
    """The product's ruler, each text counted once."""

    def __init__(self) -> None:
        inner = default_counter()
        self.estimated = inner.estimated
        self.count: Callable[[str], int] = functools.lru_cache(maxsize=50_000)(inner.count)


RULER = Ruler()


@dataclass(slots=True)
class Host:
    """One conversation that is compressed by ``summarizer``, else by the extract."""

    window: int
    summarizer: Summarizer | None = None
    settings: PlannerSettings = field(default_factory=PlannerSettings)
    messages: list[StoredMessage] = field(default_factory=list)
    ledger: Ledger = field(default_factory=Ledger)
    summary: str = ""
    version: int = 0
    boundary: int = 0
    truncated_through: int = 0
    ready: tuple[Span, Judgement] | None = None
    refused: int = 0
    """Drafts of the model that were not applied."""
    filled: int = 0
    """Lines that code filled into thin drafts of it."""
    summary_prompts: int = 0
    """Prompt tokens of all summary calls."""
    compressions: int = 0

    def say(self, role: Role, text: str) -> None:
        """The next message."""
        tokens = RULER.count(text) + MESSAGE_OVERHEAD
        seq = len(self.messages) + 1
        self.messages.append(StoredMessage(seq=seq, role=role, text=text, token_count=tokens))

    def snapshot(self) -> ConversationSnapshot:
        """The conversation as the request builder reads it."""
        return ConversationSnapshot(
            conversation_id=1,
            owner_id=1,
            code="",
            model="",
            system_prompt="",
            summary=self.summary,
            version=self.version,
            boundary=self.boundary,
            truncated_through=self.truncated_through,
            mark=MARK,
            tail=tuple(self.messages[self.boundary :]),
        )

    def request(self) -> tuple[BuiltRequest, Sizes, tuple[Item, ...]]:
        """The next request as it would be now."""
        snapshot = self.snapshot()
        sizes = request_sizes(
            snapshot, RULER, window=self.window, reserve=self.window // 4, calibration=CALIBRATION
        )
        built = build_request(snapshot, sizes)
        return built, sizes, tuple(one.as_item() for one in visible_tail(snapshot))

    async def fitted(self) -> BuiltRequest:
        """The next request, after whatever the policy says must be done first."""
        for _ in range(4):
            built, sizes, items = self.request()
            action = self._decide(built, sizes, items)
            if action is not ContextAction.COMPRESS:
                assert built.usage.share <= 1.0
                return built
            if self.ready is not None:
                self._apply(*self.ready)
            else:
                self._apply(*await self._drafted(sizes, items, Trigger.THRESHOLD))
        raise AssertionError("The request does not come to fit.")

    async def after_turn(self) -> None:
        """What the product does in the background."""
        built, sizes, items = self.request()
        if self._decide(built, sizes, items) is ContextAction.PREPARE:
            self.ready = await self._drafted(sizes, items, Trigger.BACKGROUND)

    async def compress(self) -> None:
        """Compress now, as at the threshold."""
        _, sizes, items = self.request()
        self._apply(*await self._drafted(sizes, items, Trigger.THRESHOLD))

    def _decide(self, built: BuiltRequest, sizes: Sizes, items: tuple[Item, ...]) -> ContextAction:
        settings = PolicySettings()
        if built.usage.share < settings.soft:
            return ContextAction.CONTINUE
        try:
            planner.plan(items, sizes, self.settings, trigger=Trigger.THRESHOLD)
            compressible = True
        except NothingToCompress:
            compressible = False
        frees = None
        if self.ready is not None:
            span, judgement = self.ready
            frees = sizes.share(span.source_tokens - judgement.summary_tokens + sizes.summary)
        state = PolicyState(
            ready=self.ready is not None, ready_frees=frees, compressible=compressible
        )
        return decide(built.usage, settings, state).action

    async def _drafted(
        self, sizes: Sizes, items: tuple[Item, ...], trigger: Trigger
    ) -> tuple[Span, Judgement]:
        span = planner.plan(items, sizes, self.settings, trigger=trigger)
        case = Case(
            base_text=self.summary,
            base_ledger=self.ledger,
            items=items,
            span=span,
            sizes=sizes,
            settings=self.settings,
            trigger=trigger,
            counter=RULER,
        )
        extract = ExtractiveSummarizer(RULER, planner.cap_tokens(sizes, self.settings))
        for summarizer in (self.summarizer, extract):
            if summarizer is None:
                continue
            try:
                draft = await summarizer.draft(
                    span.items, self.ledger, focus="", on_tokens=_nobody_looks
                )
                self.summary_prompts += draft.spent.prompt_tokens
                return span, judge(draft, case)
            except SummarizerError as error:
                self.summary_prompts += error.spent.prompt_tokens
                self.refused += 1
        raise AssertionError("Not even the extract was fit.")

    def _apply(self, span: Span, judgement: Judgement) -> None:
        beside = judgement.audit["floor"]
        assert isinstance(beside, dict)
        self.filled += beside["filled"]
        self.ledger, self.summary = judgement.ledger, judgement.text
        self.boundary = span.through_seq
        self.truncated_through = 0
        self.version += 1
        self.compressions += 1
        self.ready = None


async def _nobody_looks(tokens: int) -> None:
    return None
