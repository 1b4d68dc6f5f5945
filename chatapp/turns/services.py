"""What turns run on: the model's client, what is known of models, the ruler, the summarisers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from chatapp.catalogue import Catalogue, Profile
from chatapp.context import build
from chatapp.conversations import reading
from chatapp.conversations.spending import aconversation_within_limit
from chatapp.errors import DailyLimit
from chatapp.live.view_models import CompressionView, ContextView, PageView
from chatapp.llm import activity_log
from chatapp.llm.client import ChatRequest, LLMClient
from chatapp.llm.errors import ContextOverflow, LLMError, ServerTimeout
from chatapp.models import Conversation
from compression import conf
from compression.database import across
from compression.exceptions import SummarizerError
from compression.planning.planner import PlannerSettings, cap_tokens
from compression.ports import Summarizer, TokenCounter, Transcript
from compression.services import Engine
from compression.summarizers.extractive import ExtractiveSummarizer
from compression.summarizers.prompt import PromptSummarizer
from compression.types import Completion, Draft, Item, Ledger, Sizes

# The demo model's summaries take so long, so that the indicator can be seen. Seconds.
DEMO_PACE = 2.0
# By what factor a refused prompt was too long, where its server does not say.
TOO_LONG = 1.5
# Added to what it says: no two prompts are counted quite alike.
MARGIN = 1.05


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """Implements :class:`compression.ports.Complete` on a chat model."""

    client: LLMClient
    profile: Profile

    async def __call__(
        self,
        *,
        system: str,
        user: str,
        schema: Mapping[str, Any] | None,
        max_tokens: int,
        on_tokens: Callable[[int], Awaitable[None]],
    ) -> Completion:
        """Ask for one whole answer.

        Raises SummarizerError with the model's sentence, and past the owner's limit for the day:
        a summary may take many calls, and many of them may be asked for at once.
        """
        await _require_within_limit()
        if self.profile.supports_system_role:
            messages = [
                {"role": "system", "content": system},
                {"role": "user", "content": user},
            ]
        else:
            messages = [{"role": "user", "content": f"{system}\n\n{user}"}]
        request = ChatRequest(
            model=self.profile.name,
            messages=tuple(messages),
            max_tokens=max_tokens,
            response_format=schema if self.profile.supports_json_schema else None,
            include_usage=self.profile.supports_usage,
        )
        try:
            with activity_log.about(purpose="summary"):
                reply = await self.client.complete(request, on_tokens)
        except LLMError as error:
            raise _failed(error, self.profile.window, max_tokens) from error
        prompt = reply.usage.prompt_tokens if reply.usage else 0
        completion = reply.usage.completion_tokens if reply.usage else 0
        cached = reply.usage.cached_tokens if reply.usage else 0
        return Completion(
            text=reply.text,
            finish_reason="tool_calls" if reply.tool_calls else reply.finish_reason,
            model=reply.model or self.profile.name,
            prompt_tokens=prompt,
            completion_tokens=completion,
            cost=self.profile.cost(prompt, completion, cached) if reply.usage else None,
        )


async def _require_within_limit() -> None:
    """Raise SummarizerError when the conversation's owner has reached the limit of the day."""
    conversation_id = activity_log.conversation()
    if conversation_id is not None and not await aconversation_within_limit(conversation_id):
        raise SummarizerError(DailyLimit.reached, fields={"cause": DailyLimit.code})


def _failed(error: LLMError, window: int, reply: int) -> SummarizerError:
    """The same in the words of ``compression``; ``window`` and ``reply`` are tokens."""
    failed = SummarizerError(error.message, fields={"cause": error.code})
    # A server that took all its time once is not waited for a second time.
    failed.transient = error.retryable and not isinstance(error, ServerTimeout)
    if isinstance(error, ContextOverflow):
        failed.too_long = _too_long(error, window, reply)
    return failed


def _too_long(error: ContextOverflow, window: int, reply: int) -> float:
    """By what factor the refused prompt was longer than there is room for."""
    tokens = int(error.fields.get("tokens") or 0)
    room = int(error.fields.get("window") or window) - reply
    return max(MARGIN, MARGIN * tokens / room) if tokens and room > 0 else TOO_LONG


@dataclass(frozen=True, slots=True, kw_only=True)
class Paced:
    """A summariser that takes at least so many seconds, telling its progress meanwhile."""

    inner: Summarizer
    seconds: float

    @property
    def label(self) -> str:
        """The name of what does the work."""
        return self.inner.label

    async def draft(
        self,
        items: Sequence[Item],
        ledger: Ledger,
        *,
        focus: str,
        on_tokens: Callable[[int], Awaitable[None]],
    ) -> Draft:
        """See :meth:`compression.ports.Summarizer.draft`."""
        written = 0

        async def note(tokens: int) -> None:
            nonlocal written
            written = tokens

        draft = await self.inner.draft(items, ledger, focus=focus, on_tokens=note)
        steps = 20
        for step in range(1, steps + 1):
            await on_tokens(written * step // steps)
            await asyncio.sleep(self.seconds / steps)
        return draft


@dataclass(frozen=True, slots=True, kw_only=True)
class Machinery:
    """The real objects, built once a process by :mod:`chatapp.wiring`."""

    client: LLMClient
    catalogue: Catalogue
    counter: TokenCounter
    transcript: Transcript
    demo: bool
    summary_model: str = ""
    automatic_titles: bool = False
    #: Whether the model is asked for a title after a conversation's first reply.

    def engine(self, profile: Profile) -> Engine:
        """What compression works with for conversations of this model."""
        sizes = Sizes(
            window=profile.window, reserve=profile.reserve, calibration=profile.calibration
        )
        limits = PlannerSettings(summary_tokens=conf.settings().summary_tokens)
        extract = ExtractiveSummarizer(self.counter, cap_tokens(sizes, limits))
        if self.demo:
            return Engine(
                transcript=self.transcript,
                counter=self.counter,
                summarizers=(),
                extract=Paced(inner=extract, seconds=DEMO_PACE),
            )
        names = dict.fromkeys([self.summary_model or profile.name, profile.name])
        return Engine(
            transcript=self.transcript,
            counter=self.counter,
            summarizers=tuple(self._summarizer(name, profile) for name in names),
            extract=extract,
            probe=ModelCall(client=self.client, profile=profile),
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
        )

    # Reading for screens: the rows know nothing of windows and calibrations, these functions do.

    async def apage(self, user_id: int, code: str, **place: int | None) -> PageView:
        """What the page of a conversation shows, at ``place`` (before, after or around a seq).

        Raises NotFound.
        """
        return await _apage(user_id, code, self.context_view, **place)

    async def achanges(self, conversation_id: int, after: int) -> PageView:
        """What changed in a conversation since ``after``. Raises NotFound."""
        return await _achanges(conversation_id, after, self.context_view)

    async def aoverview(self, conversation_id: int) -> tuple[int, CompressionView, ContextView]:
        """``event_no``, compression and context of a conversation. Raises NotFound."""
        return await _aoverview(conversation_id, self.context_view)

    async def acontext(self, conversation_id: int, *, model: str = "") -> ContextView:
        """What the next request of a conversation will use, or would with another ``model``.

        Raises NotFound.
        """
        return await _acontext_of(conversation_id, partial(self.context_view, model=model))

    def context_view(self, row: Conversation, tail_tokens: int, *, model: str = "") -> ContextView:
        """Usage of the next request of a conversation with so many ruler tokens in its tail."""
        # A process that has just begun may not have heard of any model yet.
        self.catalogue.recall()
        self.catalogue.reread(model or row.model)
        profile = self.catalogue.known_profile(model or row.model)
        sized = build.sizes(
            reading.frame(row),
            _Remembering(self.counter),
            window=profile.window,
            reserve=profile.reserve,
            calibration=profile.calibration,
            model=profile.name,
        )
        tokens = build.tokens_by_part(sized, tail_tokens)
        return ContextView(
            model=profile.name,
            window=profile.window,
            reserve=profile.reserve,
            budget=sized.budget,
            **tokens,
            usage=round(tokens["total"] / sized.budget, 4),
            threshold=row.threshold or conf.settings().threshold,
            estimated=self.counter.estimated,
        )


@dataclass(frozen=True, slots=True)
class _Remembering:
    """A ruler that counts no text twice: each screen counts the same instructions and summaries."""

    counter: TokenCounter

    @property
    def estimated(self) -> bool:
        return self.counter.estimated

    def count(self, text: str) -> int:
        return _cached_count(self.counter.count, text)


@lru_cache(maxsize=512)
def _cached_count(count: Callable[[str], int], text: str) -> int:
    return count(text)


_apage = across(reading.page)
_achanges = across(reading.changes)
_aoverview = across(reading.overview)
_acontext_of = across(reading.context_of)
