"""The results of a run: the draft in the form that is stored, and the outcome for the host."""

from __future__ import annotations

from dataclasses import asdict

from compression import store
from compression.engine import Request
from compression.judging.bill import account
from compression.judging.judge import Judgement
from compression.store import FitDraft
from compression.types import Draft, Outcome, Span, Trigger


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
