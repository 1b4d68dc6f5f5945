"""The cost and the gain of a compression, for the version's audit. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from compression.judging.judge import Measures
from compression.types import Spent


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounting:
    """The bill of one compression. Sizes in calibrated tokens."""

    tokens_before: int
    """Size of the next request without the compression."""
    tokens_after: int
    """Size of the next request with it."""
    cost_before: float | None
    cost_after: float | None
    """US dollars for the same requests with nothing cached; None when no price is known."""
    lost_cache_tokens: int
    """Tokens after the instructions, which the provider's prompt cache would hold if the request
    had not changed, and which it must now read again."""
    lost_cache_cost: float | None
    """US dollars that those tokens cost more than cached ones; None when no price is known."""
    calls: int
    prompt_tokens: int
    completion_tokens: int
    """All model calls that led to this summary, as the providers counted them: refused drafts,
    repairs and the probe included."""


def account(
    measures: Measures,
    *,
    prompt_price: float | None,
    uncached_surcharge: float | None,
    spent: Spent,
) -> Accounting:
    """The bill. Prices are those of :class:`compression.engine.Engine`."""
    before, after = measures.before, measures.after
    lost = after.summary + after.pinned + after.tail
    return Accounting(
        tokens_before=before.total,
        tokens_after=after.total,
        cost_before=_priced(before.total, prompt_price),
        cost_after=_priced(after.total, prompt_price),
        lost_cache_tokens=lost,
        lost_cache_cost=_priced(lost, uncached_surcharge),
        calls=spent.calls,
        prompt_tokens=spent.prompt_tokens,
        completion_tokens=spent.completion_tokens,
    )


def _priced(tokens: int, price: float | None) -> float | None:
    return None if price is None else tokens * price / 1_000_000
