"""The services that turns need: the model client, the catalogue, the ruler, the summarisers."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from chatapp.context.request import tokens_by_part
from chatapp.conversations.connections import offering
from chatapp.conversations.messages import reading
from chatapp.conversations.messages.measures import tail_tokens
from chatapp.conversations.messages.transcript import StoredTranscript
from chatapp.live.view_models import CompressionView, ContextView, PageView
from chatapp.llm.catalogue import Catalogue
from chatapp.llm.client import LLMClient
from chatapp.llm.profiles import Profile
from chatapp.llm.servers.names import server_of
from chatapp.models import Conversation
from chatapp.tools.registry import ToolSource, no_tools
from chatapp.turns.fitting import sent_back, sizes_for
from chatapp.turns.summarising import ModelCall, Paced
from compression import conf
from compression.database import in_database_thread
from compression.planning.planner import PlannerSettings, cap_tokens
from compression.ports import Masks, Summarizer, TokenCounter
from compression.services import Engine
from compression.summarizers.extractive import ExtractiveSummarizer
from compression.summarizers.prompt import PromptSummarizer
from compression.tools.approval import Approve
from compression.tools.rounds import MOST_ROUNDS
from compression.types import Sizes

# Seconds that a summary by the demo model takes, so that people can see the progress.
DEMO_PACE = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The services of a process, built once by :mod:`chatapp.wiring`.

    Not to be confused with :mod:`compression.services`, which compresses and changes summaries.
    """

    client: LLMClient
    catalogue: Catalogue
    counter: TokenCounter
    transcript: StoredTranscript
    masks: Masks
    demo: bool
    summary_model: str = ""
    automatic_titles: bool = False
    """Whether the model is asked for a title after a conversation's first reply."""
    tools: ToolSource = no_tools
    """Gives the tools that a request offers."""
    tool_rounds: int = MOST_ROUNDS
    """Requests of one turn that offer tools."""
    end_tools: Callable[[int], Coroutine[Any, Any, None]] | None = None
    """Ends what the tools of a conversation's turn hold open, such as connections."""
    approve: Callable[[int, int], Approve] | None = None
    """By conversation and turn, what its calls are approved by; None: only reading tools run."""

    def by_demo(self, model: str) -> bool:
        """Whether the demo model answers in conversations of this model."""
        return self.demo and not server_of(model)

    def extract(self, profile: Profile) -> ExtractiveSummarizer:
        """The summariser without a model, for conversations of this model."""
        return ExtractiveSummarizer(self.counter, self.most_of_summary(profile))

    def most_of_summary(self, profile: Profile) -> int:
        """Ruler tokens that a summary in conversations of this model may have."""
        limits = PlannerSettings(summary_tokens=conf.settings().summary_tokens)
        return cap_tokens(profile.sizes, limits)

    def engine(self, profile: Profile, *, only: str = "") -> Engine:
        """Compression's engine for conversations of this model.

        ``only``: the one model that is to write, in place of the usual ones and of the extract.
        """
        extract = self.extract(profile)
        transcript = replace(self.transcript, back=sent_back(profile))
        if self.by_demo(only or profile.name):
            return Engine(
                transcript=transcript,
                masks=self.masks,
                counter=self.counter,
                summarizers=(),
                extract=Paced(inner=extract, seconds=DEMO_PACE),
            )
        names = dict.fromkeys(
            [only] if only else [self.summary_model or profile.name, profile.name]
        )
        examined = not self.by_demo(profile.name)
        return Engine(
            transcript=transcript,
            masks=self.masks,
            counter=self.counter,
            summarizers=tuple(self._summarizer(name, profile) for name in names),
            extract=None if only else extract,
            probe=ModelCall(client=self.client, profile=profile, kind="probe")
            if examined
            else None,
            prompt_price=profile.input_price,
            uncached_surcharge=profile.uncached_surcharge,
        )

    def _summarizer(self, name: str, chat: Profile) -> Summarizer:
        profile = chat if name == chat.name else self.catalogue.known_profile(name)
        return PromptSummarizer(
            ModelCall(client=self.client, profile=profile),
            self.counter,
            window=int(profile.window / max(1.0, profile.calibration)),
            max_output_tokens=profile.reserve,
            label=name,
            supports_json_schema=profile.supports_json_schema,
            tool_result_characters=conf.settings().tool_result_max_length,
            prompt=conf.prompt(),
        )

    # Reading for screens. Rows hold no windows or calibrations, so these functions add them.

    async def apage(self, user_id: int, code: str, **place: int | None) -> PageView:
        """The page of a conversation, at ``place`` (``before``, ``after`` or ``around`` a seq).

        Raises NotFound.
        """
        return await _apage(user_id, code, self.context_view, **place)

    async def achanges(self, conversation_id: int, after: int) -> PageView:
        """The changes of a conversation since change number ``after``. Raises NotFound."""
        return await _achanges(conversation_id, after, self.context_view)

    async def aoverview(self, conversation_id: int) -> tuple[int, CompressionView, ContextView]:
        """``event_no``, compression and context of a conversation. Raises NotFound."""
        return await _aoverview(conversation_id, self.context_view)

    async def acontext(self, conversation_id: int, *, model: str = "") -> ContextView:
        """Usage of a conversation's next request, to its own model or to ``model``.

        Raises NotFound.
        """
        return await _acontext_of(conversation_id, partial(self.context_view, model=model))

    def context_view(self, row: Conversation, *, model: str = "") -> ContextView:
        """Usage of the next request. Reads the database."""
        profile = self._profile(model or row.model)
        sized = self._sizes(row, profile)
        tokens = tokens_by_part(sized, tail_tokens(row, sent_back(profile)))
        return ContextView(
            model=profile.name,
            window=profile.window,
            reserve=profile.reserve,
            budget=sized.budget,
            **tokens,
            usage=round(tokens["total"] / sized.budget, 4),
            threshold=row.threshold or conf.settings().threshold,
            estimated=self.counter.estimated,
            unavailable=offering.why_not(row.owner_id, profile.name),
        )

    def sizes_of(self, row: Conversation) -> Sizes:
        """The tokens of a conversation's next request besides its messages. Reads the database."""
        return self._sizes(row, self._profile(row.model))

    def _profile(self, model: str) -> Profile:
        # A process that has just started may not know the models yet.
        self.catalogue.recall()
        self.catalogue.reread(model)
        return self.catalogue.known_profile(model)

    def _sizes(self, row: Conversation, profile: Profile) -> Sizes:
        return sizes_for(reading.snapshot_without_tail(row), self.counter, profile)


_apage = in_database_thread(reading.page)
_achanges = in_database_thread(reading.changes)
_aoverview = in_database_thread(reading.overview)
_acontext_of = in_database_thread(reading.context_of)
