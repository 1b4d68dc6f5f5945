"""The results of a run: the draft as it is stored, its measures, and the outcome for the host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from compression import store
from compression.engine import Engine, Request
from compression.judging.bill import account
from compression.judging.judge import Judgement, Measures, measure
from compression.ports import TokenCounter
from compression.store import FitDraft, Version
from compression.types import Draft, Item, Outcome, Sizes, Span, Spent, Trigger


def quoted_before(items: Sequence[Item], seq: int | None) -> tuple[Item, ...]:
    """The items, those before ``seq`` counted as pinned; None: as they are.

    Results of tools cannot be pinned.
    """
    if seq is None:
        return tuple(items)
    return tuple(
        replace(one, pinned=True) if one.seq < seq and one.role != "tool" else one for one in items
    )


def fit_draft(
    request: Request,
    span: Span,
    draft: Draft,
    judgement: Judgement,
    *,
    trigger: Trigger,
    duration: float,
) -> FitDraft:
    """A draft judged fit, with its measures and its bill. Slow: call it in a thread."""
    bill = account(
        judgement.measures,
        prompt_price=request.engine.prompt_price,
        uncached_surcharge=request.engine.uncached_surcharge,
        spent=draft.spent,
    )
    return FitDraft(
        trigger=trigger,
        text=judgement.text,
        ledger=judgement.ledger,
        first_seq=span.first_seq,
        through_seq=span.through_seq,
        message_count=len(span.items),
        fingerprint=store.fingerprint(span.items),
        source_tokens=span.source_tokens,
        summary_tokens=judgement.summary_tokens,
        usage_before=judgement.measures.before.share,
        usage_after=judgement.measures.after.share,
        model=draft.model,
        prompt_version=draft.prompt_version,
        cost=draft.spent.cost,
        duration=duration,
        degraded=draft.degraded,
        audit=judgement.audit
        | {"accounting": asdict(bill)}
        | ({"extracted": [asdict(one) for one in draft.extracted]} if draft.extracted else {}),
    )


def measure_prepared(
    through_seq: int,
    summary_tokens: int,
    base_text: str,
    items: Sequence[Item],
    sizes: Sizes,
    counter: TokenCounter,
) -> Measures:
    """The next request now, and with a stored draft that ends at ``through_seq``. Slow."""
    tokens = counter.count(base_text)
    return measure(
        items,
        through_seq,
        replace(sizes, summary=max(sizes.summary, tokens + sizes.frame) if tokens else 0),
        old_summary_tokens=tokens,
        new_summary_tokens=summary_tokens,
    )


def audit_now(audit: Mapping[str, Any], measures: Measures, engine: Engine) -> dict[str, Any]:
    """A stored draft's audit with its bill at the time it is applied."""
    billed = audit.get("accounting", {})
    bill = account(
        measures,
        prompt_price=engine.prompt_price,
        uncached_surcharge=engine.uncached_surcharge,
        spent=Spent(
            calls=billed.get("calls", 0),
            prompt_tokens=billed.get("prompt_tokens", 0),
            completion_tokens=billed.get("completion_tokens", 0),
        ),
    )
    return {**audit, "accounting": asdict(bill)}


def applied_outcome(
    summary: Version, measures: Measures, version: int, *, trigger: Trigger, seconds: float
) -> Outcome:
    """The outcome of applying a stored draft as ``version``."""
    return Outcome(
        success=True,
        trigger=trigger,
        version=version,
        message_count=summary.message_count,
        tokens_before=measures.before.total,
        tokens_after=measures.after.total,
        usage_before=measures.before.share,
        usage_after=measures.after.share,
        model=summary.model,
        cost=None if summary.cost is None else float(summary.cost),
        duration=seconds,
    )


def success(
    fit: FitDraft, draft: Draft, judgement: Judgement, *, duration: float, version: int = 0
) -> Outcome:
    """The outcome of a run with a summary; ``version`` is 0 if it was only prepared."""
    measures = judgement.measures
    return Outcome(
        success=True,
        trigger=fit.trigger,
        version=version,
        message_count=fit.message_count,
        tokens_before=measures.before.total,
        tokens_after=measures.after.total,
        usage_before=measures.before.share,
        usage_after=measures.after.share,
        degraded=draft.degraded,
        model=draft.model,
        cost=draft.spent.cost,
        duration=duration,
        notes=draft.notes,
        extracted=draft.extracted,
    )
