"""What a compression costs and brings, on one ruler, for the version's audit. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from compression.judging import Measures
from compression.types import Spent


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounting:
    """The bill of one compression. Sizes in the model's own (calibrated) tokens."""

    tokens_before: int
    #: Of the next request without it.
    tokens_after: int
    #: Of the next request with it.
    lost_cache_tokens: int
    #: What the next request must have read anew, though an unchanged one would be in the
    #: provider's prompt cache: everything behind the instructions.
    lost_cache_cost: float | None
    #: US dollars that those tokens cost more than cached ones; None when no price is known.
    calls: int
    prompt_tokens: int
    completion_tokens: int
    #: All calls of models on the way to this summary, as the providers counted: refused drafts,
    #: repairs and the probe included.


def account(
    measures: Measures,
    *,
    uncached_surcharge: float | None,
    spent: Spent,
) -> Accounting:
    """The bill. ``uncached_surcharge``: US dollars that a million tokens cost more uncached."""
    after = measures.after
    lost = after.summary + after.pinned + after.tail
    surcharge = None if uncached_surcharge is None else lost * uncached_surcharge / 1_000_000
    return Accounting(
        tokens_before=measures.before.total,
        tokens_after=after.total,
        lost_cache_tokens=lost,
        lost_cache_cost=surcharge,
        calls=spent.calls,
        prompt_tokens=spent.prompt_tokens,
        completion_tokens=spent.completion_tokens,
    )
