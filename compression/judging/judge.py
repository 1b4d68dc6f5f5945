"""The judgement of a draft: whether it may be applied, and what it frees. Pure, and slow.

A summariser repairs single entries itself; this last check is the same for every summariser.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from compression.exceptions import DraftRejected
from compression.judging.audit import audit, check_summary
from compression.judging.floor import Floor
from compression.judging.standing_rules import with_missed
from compression.judging.verbatim import with_verbatim
from compression.ledger.bounding import bounded
from compression.ledger.ledger import evict
from compression.ledger.markdown import render
from compression.planning import planner
from compression.planning.planner import FALLBACK_FREES, PlannerSettings
from compression.ports import TokenCounter
from compression.summarizers import extractive
from compression.types import (
    Draft,
    Entry,
    EntryState,
    Item,
    Ledger,
    Origin,
    Section,
    Sizes,
    Span,
    Trigger,
    Usage,
)

MOST_SHARE = 0.20
"""Share of the budget that a summary may have when entries that are never evicted exceed its
cap."""


class Fruitless(DraftRejected):
    """The draft is sound but frees too little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """Usage of the next request with the old boundary and with the new one."""

    before: Usage
    after: Usage
    span_tokens: int
    """Ruler tokens of the messages that leave the tail."""
    growth_tokens: int
    """Ruler tokens by which the summary and the quoted pins grow."""

    @property
    def frees(self) -> float:
        """Share of the budget that the draft frees."""
        return self.before.share - self.after.share


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A fit draft as it will be stored, with what it changes."""

    ledger: Ledger
    text: str
    summary_tokens: int
    """Ruler tokens of the text."""
    audit: dict[str, object]
    measures: Measures


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """The messages, sizes and settings that a draft is judged against."""

    base_text: str
    base_ledger: Ledger
    items: Sequence[Item]
    """All live items after the old boundary."""
    span: Span
    sizes: Sizes
    settings: PlannerSettings
    trigger: Trigger
    counter: TokenCounter


def measure(
    items: Sequence[Item],
    through_seq: int,
    sizes: Sizes,
    *,
    old_summary_tokens: int,
    new_summary_tokens: int,
) -> Measures:
    """The next request before and after; ``sizes.summary`` includes what wraps the old text."""
    framed = old_summary_tokens + sizes.frame if old_summary_tokens else 0
    before = replace(sizes, summary=max(sizes.summary, framed))
    wrapper = before.summary - old_summary_tokens if old_summary_tokens else sizes.frame
    span = [item for item in items if item.seq <= through_seq]
    pins = sum(item.tokens for item in span if item.pinned)
    after = replace(before, summary=new_summary_tokens + wrapper, pinned=sizes.pinned + pins)
    return Measures(
        before=planner.usage(items, before),
        after=planner.usage(items[len(span) :], after),
        span_tokens=sum(item.sent_tokens for item in span),
        growth_tokens=after.summary - before.summary + pins,
    )


def judge(draft: Draft, case: Case) -> Judgement:
    """The draft completed, reduced to its cap, measured and audited.

    Raises DraftRejected with a sentence when it is not fit to be applied, and Fruitless when it is
    sound but frees too little.
    """
    _check_kept(case.base_ledger, draft.ledger)
    count = case.counter.count
    cap = planner.cap_tokens(case.sizes, case.settings)
    floor = _floor(case, cap)
    whole = _completed(draft, case, cap, floor)
    text = render(whole.ledger)
    check_summary(text, case.span.items)
    tokens = count(text)
    if tokens > cap and case.sizes.share(tokens) > MOST_SHARE:
        raise Fruitless(
            f"What must be kept of this conversation takes {case.sizes.share(tokens):.0%} of the "
            "model's window. Shorten the constraints and your own entries by editing the summary.",
            fields={"summary_tokens": tokens, "cap_tokens": cap},
        )
    measures = measure(
        case.items,
        case.span.through_seq,
        case.sizes,
        old_summary_tokens=count(case.base_text),
        new_summary_tokens=tokens,
    )
    _check_gain(measures, case)
    report = audit(
        case.span.items,
        text,
        evicted=whole.evicted,
        notes=(*draft.notes, *whole.notes),
        wanted=floor.salient,
    )
    return Judgement(
        ledger=whole.ledger,
        text=text,
        summary_tokens=tokens,
        audit=asdict(report) | {"retention": report.retention, "floor": whole.floor_figures},
        measures=measures,
    )


def with_room(ledger: Ledger, case: Case) -> tuple[Ledger, tuple[str, ...]]:
    """The ledger of a draft, or of some of its parts, without new rules that have no room.

    See :func:`compression.ledger.bounding.bounded`.
    """
    return bounded(
        ledger,
        case.base_ledger,
        case.span.items,
        cap_tokens=planner.cap_tokens(case.sizes, case.settings),
        most_tokens=case.sizes.ruler(MOST_SHARE),
        count=case.counter.count,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _CompletedDraft:
    """A draft in the form that may be applied: bounded, completed by code, within its cap."""

    ledger: Ledger
    evicted: tuple[str, ...]
    notes: tuple[str, ...]
    floor_figures: dict[str, int]
    """Figures for the audit: the draft's own facts, the extract's, and the lines filled in."""


def _completed(draft: Draft, case: Case, cap: int, floor: Floor) -> _CompletedDraft:
    """The draft after bounding, filling and eviction. Raises DraftRejected below the floor."""
    count, items = case.counter.count, case.span.items
    fair, left_out = with_room(draft.ledger, case)
    # Measured before code adds anything, which could hide that the draft itself says nothing.
    findings = floor.findings(fair)
    # When entries that are never evicted leave no room, the extract has nothing to say either. It
    # is the last resort, so the boundary still moves, as long as the summary is below MOST_SHARE.
    without_room = not findings.asked and draft.prompt_version == extractive.PROMPT_VERSION
    if findings.refusal and not without_room:
        raise DraftRejected(findings.refusal, fields=asdict(findings))
    ruled, kept = with_missed(fair, items, cap_tokens=cap, count=count)
    verbatim = with_verbatim(ruled, case.base_ledger, items, cap_tokens=cap, count=count)
    ledger, evicted = evict(verbatim.ledger, cap, count)
    evicted = (*verbatim.evicted, *evicted)
    lines: tuple[str, ...] = ()
    if floor.findings(ledger).thin:
        filled, lines = floor.filled(ledger, ledger)
        ledger, more = evict(filled, cap, count)
        evicted = (*evicted, *more)
    added = (f"filled by code: {line:.120}" for line in lines)
    listed = (f"kept word for word: {line:.120}" for line in verbatim.lines)
    return _CompletedDraft(
        ledger=ledger,
        evicted=evicted,
        notes=(*left_out, *added, *kept, *listed),
        floor_figures={"held": findings.held, "extract": findings.extract, "filled": len(lines)},
    )


def _floor(case: Case, cap: int) -> Floor:
    """The floor for the draft: an extract of the same messages."""
    count = case.counter.count
    room = extractive.room_for(case.span.items, case.base_ledger, cap, count)
    return Floor(case.base_ledger, case.span.items, count, room=room)


def _check_kept(base: Ledger, new: Ledger) -> None:
    """Check that entries which the machine may not change are unchanged (I13, I18)."""
    entries = {entry.id: entry for entry in new.entries}
    for entry in base.entries:
        if not _kept(entry, entries.get(entry.id)):
            raise DraftRejected(f"The draft changed what must stay as it is: {entry.text:.80}")
    for line in base.narrative:
        if line.origin is Origin.PERSON and line not in new.narrative:
            raise DraftRejected(f"The draft changed what a person wrote: {line.text:.80}")


def _kept(old: Entry, new: Entry | None) -> bool:
    if old.origin is Origin.PERSON:
        return new == old
    if old.section is Section.CONSTRAINTS and old.state is EntryState.LIVE:
        # The summariser checks a lift: it must cite a user's message that speaks of the rule.
        return new is not None and new in (old, replace(old, state=EntryState.LIFTED))
    return True


def _check_gain(measures: Measures, case: Case) -> None:
    """The planner's rule for what a run must free, applied to the summary's real size."""
    # Usage is rounded up to whole tokens in each part; the planner's estimate is not rounded.
    slack = 4 / case.sizes.budget
    manual = case.trigger.by_hand
    needed, lands = case.settings.frees(case.trigger), True
    if not manual:
        landing = case.settings.landing
        starts = [index for index, item in enumerate(case.items) if item.role == "user"]
        last_turn = sum(item.sent_tokens for item in case.items[starts[-1] :]) if starts else 0
        after = measures.after
        standing = (after.fixed + after.summary + after.pinned) / after.budget
        if standing + case.sizes.share(last_turn) > landing:
            needed = FALLBACK_FREES
        else:
            lands = after.share <= landing + slack
    if measures.growth_tokens >= measures.span_tokens or measures.frees + slack < needed:
        raise Fruitless(
            f"The summary would free {max(0.0, measures.frees):.0%} of the model's window, and "
            f"{needed:.0%} is needed for it to be worth it.",
            fields={"frees": measures.frees, "needed": needed},
        )
    if not lands:
        raise Fruitless("With this summary the conversation would still be too long.")
