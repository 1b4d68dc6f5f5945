"""The chat's models as summarisers, for :mod:`compression`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from chatapp.conversations.turns.spending import aconversation_within_limit
from chatapp.errors import DailyLimit
from chatapp.llm import activity_log
from chatapp.llm.client import LLMClient
from chatapp.llm.errors import ContextOverflow, LLMError, ServerTimeout
from chatapp.llm.profiles import Profile
from compression.exceptions import SummarizerError
from compression.ports import Summarizer
from compression.types import Completion, Draft, Item, Ledger

# Factor by which a refused prompt is assumed too long if its server gives no figure.
TOO_LONG = 1.5
# Factor added to the server's figure, since no two prompts are counted quite alike.
MARGIN = 1.05


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """A :class:`compression.ports.Complete` that calls a chat model."""

    client: LLMClient
    profile: Profile
    kind: activity_log.Kind = "summary"
    """What the activity log says that the call is for."""

    async def __call__(
        self,
        *,
        system: str,
        user: str,
        schema: Mapping[str, Any] | None,
        max_tokens: int,
        on_tokens: Callable[[int], Awaitable[None]],
    ) -> Completion:
        """One whole answer.

        Raises SummarizerError with the model's sentence, and beyond the owner's daily limit, which
        is checked here because a summary may take many calls.
        """
        await _require_within_limit()
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        request = replace(
            self.profile.request(messages, max_tokens=max_tokens, response_format=schema),
            summary=True,
        )
        try:
            with activity_log.about(kind=self.kind):
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
    """Raise SummarizerError when the conversation's owner has reached the daily limit."""
    conversation_id = activity_log.conversation()
    if conversation_id is not None and not await aconversation_within_limit(conversation_id):
        raise SummarizerError(DailyLimit.reached, fields={"cause": DailyLimit.code})


def _failed(error: LLMError, window: int, reply: int) -> SummarizerError:
    """The error in terms of ``compression``; ``window`` and ``reply`` are in tokens."""
    failed = SummarizerError(error.message, fields={"cause": error.code})
    # A server that used up all the time once is not waited for again.
    failed.transient = error.retryable and not isinstance(error, ServerTimeout)
    if isinstance(error, ContextOverflow):
        failed.too_long = _too_long(error, window, reply)
    return failed


def _too_long(error: ContextOverflow, window: int, reply: int) -> float:
    """The factor by which the refused prompt was longer than the room for it."""
    tokens = int(error.fields.get("tokens") or 0)
    room = int(error.fields.get("window") or window) - reply
    return max(MARGIN, MARGIN * tokens / room) if tokens and room > 0 else TOO_LONG


@dataclass(frozen=True, slots=True, kw_only=True)
class Paced:
    """A summariser that takes at least ``seconds``, and reports progress meanwhile."""

    inner: Summarizer
    seconds: float

    @property
    def label(self) -> str:
        """The inner summariser's name."""
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
