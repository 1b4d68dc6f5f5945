"""The facts of one version, in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from compression import conf, store
from compression.admin.review import Fact
from compression.judging.stored_audit import extracted_parts
from compression.models import AbstractSummary
from compression.types import SummaryStatus, Trigger

ATTEMPTS = (SummaryStatus.REJECTED, SummaryStatus.FAILED)
# Triggers of a person's changes, for which no model is called.
PEOPLES = (Trigger.EDIT, Trigger.RESTORE, Trigger.CLEAR)


def covered(summary: AbstractSummary, whole: store.StandsFor | None = None) -> str:
    """The messages of a version's own span, or of the ``whole`` summary, in words."""
    if not summary.through_seq:
        return "nothing: no summary came of it" if summary.status in ATTEMPTS else "no messages"
    span = whole or summary
    return f"{span.message_count:,} messages, {span.first_seq:,} to {summary.through_seq:,}"


def spans(summary: Any, own: str) -> list[Fact]:
    """All messages that the text stands for, and those of this version's own span (``own``)."""
    if not summary.through_seq:
        return [Fact(label="Stands for", value=covered(summary))]
    whole = store.stands_for(summary)
    facts = [Fact(label="Stands for", value=covered(summary, whole), url=own)]
    if whole.message_count > summary.message_count:
        facts[0] = replace(facts[0], url="")
        took = f"{summary.message_count:,} messages, {summary.source_tokens:,} tokens"
        span = f"{summary.first_seq:,} to {summary.through_seq:,}"
        facts.append(
            Fact(label="Of these, taken in by this version", value=f"{took}, {span}", url=own)
        )
    tokens = f"{whole.source_tokens:,} → {summary.summary_tokens:,}"
    return [*facts, Fact(label="Tokens", value=tokens)]


def usage(summary: Any) -> str:
    """The size of the next request before and after; unknown for a person's change."""
    before, after = summary.usage_before, summary.usage_after
    if before is None or after is None:
        return "not measured"
    return f"{share(before)} → {share(after)}"


def share(value: float) -> str:
    """A share of 1 as a percentage."""
    return f"{100 * value:.0f} %"


def or_none(value: Any) -> Any:
    """The value, or a word that says that there is none."""
    return "none" if value is None else value


def price(summary: Any, *, by_person: bool) -> str:
    """The cost of the model calls; a person's change has none."""
    if summary.cost:
        return f"{summary.cost} USD"
    return "none" if by_person else "not known"


def in_use() -> str:
    """The instructions that new summaries are asked for with."""
    prompt = conf.prompt()
    where = "from PROMPTS_DIR" if prompt.path else "packaged"
    return f"{prompt.name} ({where}), version {prompt.version}"


def instructions(version: str) -> str:
    """The version of the instructions that a summary followed, and whether they are in use now."""
    prompt = conf.prompt()
    if version == prompt.version:
        return f"{version}: {prompt.name}. {prompt.description}"
    return f"{version}; in use now: {in_use()}" if version else "none"


def seconds(duration: float | None) -> str:
    """A duration to a tenth of a second."""
    return "none" if duration is None else f"{duration:.1f}"


def by_extract(summary: Any) -> str:
    """Whether no model wrote the version, or which parts of it none wrote, and why."""
    parts = [str(one) for one in extracted_parts((summary.audit or {}).get("extracted"))]
    return "; ".join(parts) or yes(summary.degraded)


def yes(value: bool) -> str:
    """Yes or no."""
    return "yes" if value else "no"


def bill(audit: Mapping[str, Any]) -> list[Fact]:
    """The audit's floor, accounting and probe; nothing for versions without them."""
    bill, probe = audit.get("accounting"), audit.get("probe")
    facts = []
    # An extract has no lines by a model.
    if (beside := audit.get("floor")) and not (bill and bill.get("calls") == 0):
        lines = beside["filled"]
        added = (
            f"{lines:,} line{'' if lines == 1 else 's'} filled by code" if lines else "not filled"
        )
        held = f"{beside['held']:,} facts; the plain extract {beside['extract']:,}; {added}"
        facts.append(Fact(label="Kept by the model's own lines", value=held))
    if bill:
        sizes = f"{bill['tokens_before']:,} → {bill['tokens_after']:,} tokens"
        if bill.get("cost_before") is not None:
            sizes += f", {bill['cost_before']:.6f} → {bill['cost_after']:.6f} USD"
        lost, cost = f"{bill['lost_cache_tokens']:,} tokens", bill["lost_cache_cost"]
        priced = f"{lost}, {cost:.6f} USD" if cost is not None else lost
        called = f"{bill['prompt_tokens']:,} in, {bill['completion_tokens']:,} out"
        if bill.get("calls"):
            called += f", in {bill['calls']:,} calls"
        facts += [
            Fact(label="Next request", value=sizes),
            Fact(label="Read again because the prompt cache is lost", value=priced),
            Fact(label="Tokens of the summary's own calls", value=called),
        ]
    if probe:
        score = (
            f"{probe['right']} of {probe['asked']} answered from the summary alone, "
            f"{probe['added']} added"
            if "right" in probe
            else probe.get("error", "The messages held nothing to ask about.")
        )
        facts.append(Fact(label="Closed-book probe", value=score))
    return facts
