"""The bill of a compression: stored with the version, on one ruler, with what the cache costs."""

from __future__ import annotations

import pytest

from compression import services, store
from compression.judging.bill import account
from compression.judging.judge import Measures
from compression.services import Engine
from compression.summarizers.prompt import PromptSummarizer
from compression.testing import ScriptedSummarizer, says
from compression.types import Draft, Ledger, Spent, SummaryStatus, Trigger, Usage
from tests.compression.hosting import COUNTER, SIZES, TRANSCRIPT, add, database, new_conversation
from tests.compression.summarizers.test_prompt import Answer, Model

GOOD = says("They talked about words.", constraints={1: "m1 word word"})


def measures() -> Measures:
    return Measures(
        before=Usage(budget=1000, fixed=100, summary=50, pinned=10, tail=700),
        after=Usage(budget=1000, fixed=100, summary=80, pinned=10, tail=200),
        span_tokens=500,
        growth_tokens=30,
    )


def test_what_lies_behind_the_instructions_is_read_anew() -> None:
    spent = Spent(calls=3, prompt_tokens=900, completion_tokens=70)
    bill = account(measures(), prompt_price=5.0, uncached_surcharge=2.5, spent=spent)
    assert (bill.tokens_before, bill.tokens_after) == (860, 390)
    assert bill.cost_before == pytest.approx(860 * 5 / 1_000_000)
    assert bill.cost_after == pytest.approx(390 * 5 / 1_000_000)
    assert bill.lost_cache_tokens == 80 + 10 + 200
    assert bill.lost_cache_cost == pytest.approx(290 * 2.5 / 1_000_000)
    assert (bill.calls, bill.prompt_tokens, bill.completion_tokens) == (3, 900, 70)


def test_without_a_price_it_is_told_in_tokens() -> None:
    bill = account(measures(), prompt_price=None, uncached_surcharge=None, spent=Spent())
    assert (bill.cost_before, bill.cost_after, bill.lost_cache_cost) == (None, None, None)
    assert bill.lost_cache_tokens == 290


def _engine(summarizer: ScriptedSummarizer) -> Engine:
    return Engine(
        transcript=TRANSCRIPT,
        counter=COUNTER,
        summarizers=(summarizer,),
        prompt_price=2.0,
        uncached_surcharge=1.0,
    )


@pytest.mark.storage
@pytest.mark.django_db(transaction=True)
async def test_the_bill_is_stored_with_the_version_and_agrees_with_the_outcome() -> None:
    conversation = await database(new_conversation, 30)
    summarizer = ScriptedSummarizer()
    summarizer.enqueue(GOOD)
    outcome = await services.compress(
        conversation.pk, engine=_engine(summarizer), sizes=SIZES, trigger=Trigger.THRESHOLD
    )
    (version,) = await store.aversions(conversation.pk)
    bill = version.audit["accounting"]
    assert (bill["tokens_before"], bill["tokens_after"]) == (
        outcome.tokens_before,
        outcome.tokens_after,
    )
    assert bill["cost_before"] == pytest.approx(bill["tokens_before"] * 2 / 1_000_000)
    assert bill["cost_after"] == pytest.approx(bill["tokens_after"] * 2 / 1_000_000)
    assert 0 < bill["lost_cache_tokens"] < bill["tokens_after"]
    assert bill["lost_cache_cost"] == pytest.approx(bill["lost_cache_tokens"] / 1_000_000)
    assert version.duration is not None


def test_what_calls_took_adds_up() -> None:
    one, free = Spent(calls=1, prompt_tokens=5, cost=0.5), Spent(calls=1, completion_tokens=2)
    assert one + free == Spent(calls=2, prompt_tokens=5, completion_tokens=2, cost=0.5)
    assert (free + free).cost is None


@pytest.mark.storage
@pytest.mark.django_db(transaction=True)
async def test_every_call_on_the_way_to_a_version_is_in_its_bill() -> None:
    """A model that refuses three times, then another that needs a repair; each call costs 0.25.

    Breaks when: what a refused draft took is forgotten, in the summariser, by the run, or on the
    rows of its attempts.
    """
    conversation = await database(new_conversation, 30)
    wrong = {"section": "context", "text": "port = 9999", "sources": [1]}
    answers: tuple[list[Answer], ...] = (
        ["I'm sorry, but I can't help with that."],
        [{"narrative": "They talked.", "add": [wrong]}, {"add": []}],
    )
    ladder = tuple(
        PromptSummarizer(Model(*said), COUNTER, window=16_000, max_output_tokens=1000, label=label)
        for label, said in zip(("first", "second"), answers, strict=True)
    )
    engine = Engine(transcript=TRANSCRIPT, counter=COUNTER, summarizers=ladder)
    outcome = await services.compress(
        conversation.pk, engine=engine, sizes=SIZES, trigger=Trigger.THRESHOLD
    )
    assert outcome.cost == pytest.approx(5 * 0.25)
    rows = await store.aversions(conversation.pk, attempts=True)
    by_status = {row.status: row for row in rows}
    version, refused = by_status[SummaryStatus.ACTIVE], by_status[SummaryStatus.REJECTED]
    assert float(version.cost or 0) == pytest.approx(5 * 0.25)
    assert float(refused.cost or 0) == pytest.approx(3 * 0.25)
    bill = version.audit["accounting"]
    assert (bill["calls"], bill["completion_tokens"]) == (5, 5 * 7)


@pytest.mark.storage
@pytest.mark.django_db(transaction=True)
async def test_a_draft_that_was_judged_unfit_was_paid_for() -> None:
    """Breaks when: only what the summariser itself refused is counted."""
    conversation = await database(new_conversation, 30)
    empty, good = ScriptedSummarizer(), ScriptedSummarizer()
    paid = Spent(calls=1, cost=0.5)
    empty.enqueue(Draft(ledger=Ledger(), model="m", prompt_version="1", spent=paid))
    good.enqueue(GOOD)
    engine = Engine(transcript=TRANSCRIPT, counter=COUNTER, summarizers=(empty, good))
    outcome = await services.compress(
        conversation.pk, engine=engine, sizes=SIZES, trigger=Trigger.THRESHOLD
    )
    assert (outcome.success, outcome.cost) == (True, 0.5)


@pytest.mark.storage
@pytest.mark.django_db(transaction=True)
async def test_a_prepared_summary_is_billed_by_the_request_that_it_is_applied_to() -> None:
    """Breaks when: ``apply_ready`` leaves the bill of the moment of preparation."""
    conversation = await database(new_conversation, 30)
    summarizer = ScriptedSummarizer()
    summarizer.enqueue(GOOD)
    engine = _engine(summarizer)
    await services.prepare(conversation.pk, engine=engine, sizes=SIZES)
    prepared = await store.aready(conversation.pk)
    assert prepared is not None
    await database(add, conversation, "user")
    outcome = await services.apply_ready(conversation.pk, engine=engine, sizes=SIZES)
    assert outcome is not None
    (version,) = await store.aversions(conversation.pk)
    bill = version.audit["accounting"]
    assert bill["tokens_after"] == outcome.tokens_after
    assert bill["tokens_after"] > prepared.audit["accounting"]["tokens_after"]
    assert bill["cost_after"] > prepared.audit["accounting"]["cost_after"]
    assert version.audit["retention"] == prepared.audit["retention"]
