"""The flow: claim, draft, judge, apply, release; whatever the summariser does."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from chatapp.models import Conversation
from compression import services, signals, store
from compression.conf import CompressionSettings
from compression.conf import settings as compression_settings
from compression.exceptions import (
    CompressionRunning,
    NothingToCompress,
    StaleVersion,
    SummarizerError,
    SummaryInvalid,
)
from compression.ledger.ledger import Delta
from compression.ports import Summarizer
from compression.services import Engine
from compression.store import Version
from compression.summarizers.extractive import ExtractiveSummarizer
from compression.testing import MARKER, CountingSummarizer, ScriptedSummarizer, says
from compression.types import (
    Draft,
    Entry,
    EntryState,
    Ledger,
    Outcome,
    Section,
    SummaryStatus,
    Trigger,
)
from tests.compression.hosting import (
    COUNTER,
    SIZES,
    TRANSCRIPT,
    add,
    database,
    expire_lease,
    new_conversation,
    open_turn,
    stored,
    supersede,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage]

GOOD = says("They talked about words.", constraints={1: "m1 word word"})
LONG = {"messages": 30, "words": 60}
"""About 3100 ruler tokens, above the budget of 3000."""


def engine(*summarizers: Summarizer, extract: bool = False) -> Engine:
    return Engine(
        transcript=TRANSCRIPT,
        counter=COUNTER,
        summarizers=summarizers,
        extract=ExtractiveSummarizer(COUNTER, 300) if extract else None,
    )


async def compress(
    conversation: Conversation,
    *summarizers: Summarizer,
    trigger: Trigger = Trigger.THRESHOLD,
    extract: bool = False,
    settings: CompressionSettings | None = None,
    **options: Any,
) -> Outcome:
    return await services.compress(
        conversation.pk,
        engine=engine(*summarizers, extract=extract),
        sizes=SIZES,
        trigger=trigger,
        settings=settings,
        **options,
    )


async def prepare(conversation: Conversation, *summarizers: Summarizer) -> Outcome:
    return await services.prepare(conversation.pk, engine=engine(*summarizers), sizes=SIZES)


def scripted(*answers: Delta | Draft | BaseException) -> ScriptedSummarizer:
    summarizer = ScriptedSummarizer()
    for answer in answers:
        summarizer.enqueue(answer)
    return summarizer


def hasty() -> CompressionSettings:
    """Renewals every 20 ms, so that a lost lease is noticed within a test."""
    return replace(compression_settings(), renew_seconds=0.02)


async def versions(conversation: Conversation) -> tuple[Version, ...]:
    return await store.aversions(conversation.pk, attempts=True)


@contextmanager
def recorded() -> Iterator[list[tuple[str, dict[str, Any]]]]:
    """What the signals said, by name, in order."""
    heard: list[tuple[str, dict[str, Any]]] = []
    named = {
        "started": signals.compression_started,
        "progress": signals.compression_progress,
        "completed": signals.compression_completed,
        "withdrawn": signals.compression_withdrawn,
        "changed": signals.summary_changed,
    }
    receivers = []
    for name, signal in named.items():

        async def receive(*, name: str = name, **facts: Any) -> None:
            facts.pop("signal")
            facts.pop("sender")
            heard.append((name, facts))

        signal.connect(receive)
        receivers.append((signal, receive))
    yield heard
    for signal, receiver in receivers:
        signal.disconnect(receiver)


@pytest.fixture
async def conversation() -> Conversation:
    return await database(new_conversation, **LONG)


async def test_it_works(conversation: Conversation) -> None:
    summarizer = ScriptedSummarizer()
    summarizer.enqueue(GOOD, tokens=(5, 6, 7))

    with recorded() as heard:
        outcome = await compress(conversation, summarizer, focus="the words")

    row = await database(stored, conversation)
    assert outcome.success
    assert (outcome.code, outcome.version, row.compression_version) == ("", 1, 1)
    assert row.compressed_context.startswith("## Summary")
    assert "m1 word word" in row.compressed_context
    assert row.compression_token == ""
    [call] = summarizer.calls
    assert call.focus == "the words"
    assert [item.seq for item in call.items] == list(range(1, row.compressed_through + 1))
    # Several reports at once are one signal.
    assert [name for name, _ in heard] == ["started", "progress", "completed"]
    assert heard[0][1] == {
        "conversation_id": conversation.pk,
        "trigger": Trigger.THRESHOLD,
        "message_count": outcome.message_count,
        "source_tokens": sum(item.tokens for item in call.items),
        "locks_input": True,
    }
    assert heard[-1][1]["outcome"] == outcome


async def test_its_figures_are_of_one_ruler(conversation: Conversation) -> None:
    outcome = await compress(conversation, scripted(GOOD))

    row = await database(stored, conversation)
    items = await database(TRANSCRIPT.items, conversation.pk, after_seq=0)
    tail = [item for item in items if item.seq > row.compressed_through]
    summary = COUNTER.count(row.compressed_context)
    assert outcome.tokens_before == SIZES.fixed + sum(item.tokens for item in items)
    assert outcome.tokens_after == SIZES.fixed + summary + sum(item.tokens for item in tail)
    assert outcome.usage_before == outcome.tokens_before / SIZES.budget
    assert outcome.usage_after <= 0.45
    [version] = await versions(conversation)
    assert version.summary_tokens == summary
    assert version.usage_after == pytest.approx(outcome.usage_after)
    assert version.audit["retention"] <= 1.0


async def test_i8_c15_over_many_compressions_each_message_is_summarised_once() -> None:
    """I8, C13, C15: ten compressions in a row; what is summarised and the tail are everything.

    Breaks when: the new boundary is not the span's, or the span begins elsewhere than after the
    old one.
    """
    conversation = await database(new_conversation, 0)
    summarizer = CountingSummarizer()
    for _ in range(10):
        for number in range(30):
            await database(add, conversation, "assistant" if number % 2 else "user")
        outcome = await compress(conversation, summarizer)
        assert outcome.success
        row = await database(stored, conversation)
        tail = await database(TRANSCRIPT.items, conversation.pk, after_seq=row.compressed_through)
        tail_markers = [m for item in tail for m in MARKER.findall(item.text)]
        found = MARKER.findall(row.compressed_context) + tail_markers
        last = row.next_seq - 1
        assert sorted(found) == sorted(f"m{seq}" for seq in range(1, last + 1))
        assert row.compressed_through <= last
        with pytest.raises(NothingToCompress):
            await compress(conversation, summarizer)
    assert len(summarizer.calls) == 10


@pytest.mark.parametrize(
    "roles", [[], ["user"], ["user", "assistant"], ["user"] * 6, ["assistant"] * 6]
)
async def test_c13_short_conversations_cost_no_call(roles: list[str]) -> None:
    """I11, C13: nothing to compress is said before any model is called.

    Breaks when: planning comes after the first draft.
    """
    conversation = await database(new_conversation, 0)
    for role in roles:
        await database(add, conversation, role, words=5)
    summarizer = scripted(GOOD)

    with recorded() as heard, pytest.raises(NothingToCompress):
        await compress(conversation, summarizer, trigger=Trigger.MANUAL)

    assert summarizer.calls == []
    assert heard == [("withdrawn", {"conversation_id": conversation.pk})]
    row = await database(stored, conversation)
    assert (row.compression_version, row.compression_token) == (0, "")


async def test_i8_c08_an_open_turn_is_never_compressed(conversation: Conversation) -> None:
    """I8, C08: compressing while an answer streams, with messages behind it already.

    Breaks when: the planner does not look at an item's ``open``.
    """
    turn = await database(open_turn, conversation)
    asked = await database(add, conversation, "user", turn=turn)
    await database(add, conversation, "assistant", turn=turn)
    for number in range(20):
        await database(add, conversation, "assistant" if number % 2 else "user")

    summarizer = scripted(GOOD)
    await compress(conversation, summarizer, trigger=Trigger.MANUAL)

    assert max(item.seq for item in summarizer.calls[0].items) == asked.seq - 1


# --- concurrency -------------------------------------------------------------------------------


async def test_i10_c02_twenty_requests_at_once_are_one_call(conversation: Conversation) -> None:
    """I10, C02: two tabs and the automatic trigger together.

    Breaks when: compress() goes on without a token.
    """
    summarizer = ScriptedSummarizer()
    go_on = asyncio.Event()
    summarizer.enqueue(GOOD, wait=go_on)
    runs = [
        asyncio.create_task(compress(conversation, summarizer, trigger=trigger))
        for trigger in [Trigger.MANUAL, Trigger.THRESHOLD] * 10
    ]
    await summarizer.started.wait()
    waiting = set(runs)
    while len(waiting) > 1:
        _, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    go_on.set()

    ended = await asyncio.gather(*runs, return_exceptions=True)

    outcomes = [one for one in ended if isinstance(one, Outcome)]
    assert len(outcomes) == 1
    assert outcomes[0].success
    refused = [one for one in ended if isinstance(one, CompressionRunning)]
    assert len(refused) == 19
    assert len(summarizer.calls) == 1


async def test_i10_c04_a_lost_lease_cancels_the_work(conversation: Conversation) -> None:
    """I10, I27, C04: the lease is taken over while the model is slow.

    Breaks when: holding() does not end the work when a renewal changes no row.
    """
    summarizer = ScriptedSummarizer()
    summarizer.enqueue(GOOD, wait=asyncio.Event())
    with recorded() as heard:
        slow = asyncio.create_task(compress(conversation, summarizer, settings=hasty()))
        await summarizer.started.wait()
        await database(expire_lease, conversation)
        while await store.aclaim(conversation.pk, trigger=Trigger.MANUAL, locks_input=True) is None:
            await database(expire_lease, conversation)
        outcome = await slow

    assert (outcome.success, outcome.code) == (False, "lease_lost")
    assert summarizer.cancelled == 1
    assert heard[-1] == ("completed", {"conversation_id": conversation.pk, "outcome": outcome})
    row = await database(stored, conversation)
    assert row.compression_version == 0
    assert row.compression_token != ""  # the second worker's


async def test_i10_a_long_run_keeps_its_lease(conversation: Conversation) -> None:
    """I10: a run longer than the lease holds it by renewing.

    Breaks when: the renewal is left out.
    """
    summarizer = ScriptedSummarizer()
    go_on = asyncio.Event()
    summarizer.enqueue(GOOD, wait=go_on)
    run = asyncio.create_task(compress(conversation, summarizer, settings=hasty()))
    await summarizer.started.wait()
    first = (await database(stored, conversation)).compression_lease_expires_at
    assert first is not None
    # The condition waited for: a renewal has moved the expiry.
    while (await database(stored, conversation)).compression_lease_expires_at == first:
        assert not run.done()
    go_on.set()
    assert (await run).success


async def test_cancelling_by_a_person_ends_the_run(conversation: Conversation) -> None:
    """And does not count for the breaker, whatever failed before.

    Breaks when: every run's last attempt counts as one that ended it.
    """
    summarizer = ScriptedSummarizer()
    summarizer.enqueue(GOOD, wait=asyncio.Event())
    failing = scripted(SummarizerError())
    run = asyncio.create_task(compress(conversation, failing, summarizer))
    await summarizer.started.wait()

    assert await services.cancel(conversation.pk)
    outcome = await run

    assert (outcome.success, outcome.code) == (False, "compression_cancelled")
    assert summarizer.cancelled == 1
    assert not (await store.aread_state(conversation.pk)).running
    assert not await services.cancel(conversation.pk)
    past = await store.abreaker(conversation.pk)
    assert past == store.Breaker(cancelled=1)


async def test_i10_cancelling_the_task_gives_the_lease_back(conversation: Conversation) -> None:
    """I10, C03: shutdown while the model writes.

    Breaks when: outcome() does not end the run when its awaiter is cancelled.
    """
    summarizer = ScriptedSummarizer()
    summarizer.enqueue(GOOD, wait=asyncio.Event())
    with recorded() as heard:
        run = asyncio.create_task(compress(conversation, summarizer))
        await summarizer.started.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run

    assert heard[-1][0] == "completed"
    assert heard[-1][1]["outcome"].code == "compression_cancelled"
    assert summarizer.cancelled == 1
    assert not (await store.aread_state(conversation.pk)).running
    assert (await compress(conversation, scripted(GOOD))).success


async def test_i11_c03_a_cancellation_waits_for_the_end_of_a_run(
    conversation: Conversation,
) -> None:
    """I11, C03: shutdown while a failed run is being recorded: no attempt is silent.

    Breaks when: _end() can be cut short by who awaits it.
    """
    reached, go_on = asyncio.Event(), asyncio.Event()
    told: list[Outcome] = []

    async def slow(*, outcome: Outcome, **facts: Any) -> None:
        reached.set()
        await go_on.wait()
        told.append(outcome)

    signals.compression_completed.connect(slow)
    try:
        run = asyncio.create_task(compress(conversation, scripted(SummarizerError("Down."))))
        await reached.wait()
        run.cancel()
        await asyncio.sleep(0)
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await run
    finally:
        signals.compression_completed.disconnect(slow)

    assert [one.code for one in told] == ["summarizer_failed"]
    assert [one.reason for one in await versions(conversation)] == ["Down."]
    assert not (await store.aread_state(conversation.pk)).running


async def test_i13_c11_a_persons_edit_wins_over_the_run(conversation: Conversation) -> None:
    """I13, C11: an edit while the model writes.

    Breaks when: apply() leaves the version out of its WHERE.
    """
    await compress(conversation, scripted(GOOD))
    for number in range(30):
        await database(add, conversation, "assistant" if number % 2 else "user")
    summarizer = ScriptedSummarizer()
    go_on = asyncio.Event()
    summarizer.enqueue(says("More words."), wait=go_on)
    run = asyncio.create_task(compress(conversation, summarizer))
    await summarizer.started.wait()

    text = "## Constraints\n\n- Never say banana.\n"
    assert await edit(conversation, text, expected_version=1) == 2
    go_on.set()
    outcome = await run

    assert (outcome.success, outcome.code) == (False, "stale_version")
    row = await database(stored, conversation)
    assert (row.compression_version, row.compression_token) == (2, "")
    assert "Never say banana." in row.compressed_context


async def test_i14_a_message_taken_back_meanwhile_stops_the_run(
    conversation: Conversation,
) -> None:
    """I14, C09: an edit of a message that is just being summarised.

    Breaks when: apply() leaves out require_source().
    """
    summarizer = ScriptedSummarizer()
    go_on = asyncio.Event()
    summarizer.enqueue(GOOD, wait=go_on)
    run = asyncio.create_task(compress(conversation, summarizer))
    await summarizer.started.wait()
    await database(supersede, conversation, 3)
    go_on.set()

    outcome = await run

    assert (outcome.success, outcome.code) == (False, "stale_source")
    assert (await database(stored, conversation)).compressed_context == ""


async def test_i31_c10_deleting_the_conversation_ends_the_run(conversation: Conversation) -> None:
    """I31, C10: the conversation is deleted while the model writes.

    Breaks when: renew() does not ask whether the conversation is still compressible.
    """
    summarizer = ScriptedSummarizer()
    summarizer.enqueue(GOOD, wait=asyncio.Event())
    run = asyncio.create_task(compress(conversation, summarizer, settings=hasty()))
    await summarizer.started.wait()

    await database(conversation.delete)
    outcome = await run

    assert (outcome.success, outcome.code) == (False, "lease_lost")
    assert summarizer.cancelled == 1
    assert await database(Conversation.objects.count) == 0


# --- the ladder --------------------------------------------------------------------------------


def draft_saying(text: str) -> Draft:
    entries = (Entry(id=1, section=Section.CONTEXT, text=text, sources=(1,)),) if text else ()
    return Draft(ledger=Ledger(entries=entries), model="scripted", prompt_version="test")


BAD: dict[str, Draft | BaseException] = {
    "empty": draft_saying(""),
    "refused": draft_saying("I'm sorry, but I can't help with that."),
    "much too long": Draft(
        ledger=Ledger(
            entries=(Entry(id=1, section=Section.DONE, text="word " * 20_000, sources=(1,)),)
        ),
        model="scripted",
        prompt_version="test",
    ),
    "failing": SummarizerError("The server is down."),
    "broken": ValueError("a bug"),
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
async def test_i11_c05_a_bad_draft_changes_nothing(
    conversation: Conversation, bad: Draft | BaseException
) -> None:
    """I11, C05: refused drafts leave the state intact, with a reason and a bounded cost.

    Breaks when: judge() does not check the summary, the ladder tries a summariser again, or what
    frees too little is counted as a failure.
    """
    summarizer = scripted(bad, GOOD)

    with recorded() as heard:
        outcome = await compress(conversation, summarizer)

    assert not outcome.success
    assert outcome.code in {"draft_rejected", "summarizer_failed"}
    assert outcome.reason.endswith(".")
    assert len(summarizer.calls) == 1
    assert heard[-1][1]["outcome"] == outcome
    row = await database(stored, conversation)
    assert (row.compression_version, row.compressed_through, row.compression_token) == (0, 0, "")
    [attempt] = await versions(conversation)
    assert attempt.version == 0
    assert attempt.status in {SummaryStatus.REJECTED, SummaryStatus.FAILED}
    assert attempt.reason == outcome.reason
    counted = await store.abreaker(conversation.pk)
    fruitless = bad is BAD["much too long"]
    assert (counted.fruitless, counted.failures) == (fruitless, not fruitless)
    # The chat stays usable, and so does compression.
    assert (await database(add, conversation, "user")).seq == 31
    assert (await compress(conversation, summarizer)).success
    assert await store.abreaker(conversation.pk) == store.Breaker()


async def test_i13_i18_a_draft_that_touches_what_must_stay_is_refused(
    conversation: Conversation,
) -> None:
    """I13, I18: a summariser that rewrites a constraint, or drops a person's entry.

    Breaks when: judge() leaves out _check_kept().
    """
    await compress(conversation, scripted(GOOD))
    text = (await database(stored, conversation)).compressed_context
    await edit(conversation, text + "\n## Decisions\n\n- Mine alone.\n", expected_version=1)
    for number in range(30):
        await database(add, conversation, "assistant" if number % 2 else "user")
    base = await store.aread_base(conversation.pk)
    rule, mine = base.ledger.entries[0], base.ledger.entries[-1]
    assert (rule.section, mine.text) == (Section.CONSTRAINTS, "Mine alone.")
    for entries in (
        [replace(rule, text="m1 word"), mine],
        [replace(rule, state=EntryState.EVICTED), mine],
        [mine],
        [rule],
        [rule, replace(mine, state=EntryState.DONE)],
    ):
        ledger = replace(base.ledger, entries=tuple(entries))
        bad = Draft(ledger=ledger, model="scripted", prompt_version="test")
        assert (await compress(conversation, scripted(bad))).code == "draft_rejected"
    assert (await database(stored, conversation)).compression_version == 2

    assert (await compress(conversation, scripted(says("More words.")))).success
    after = (await store.aread_base(conversation.pk)).ledger
    assert after.entries == base.ledger.entries


async def test_the_ladder_walks_down_to_the_extract(conversation: Conversation) -> None:
    first = scripted(SummarizerError("The server is down."))
    second = scripted(draft_saying(""))

    outcome = await compress(conversation, first, second, extract=True)

    assert (outcome.success, outcome.degraded) == (True, True)
    attempts = (await versions(conversation))[::-1]
    assert [row.status.value for row in attempts] == ["active", "failed", "rejected"]
    assert attempts[1].reason == "The server is down."
    assert attempts[0].degraded


async def test_a_run_that_fails_counts_once_however_many_models_were_asked(
    conversation: Conversation,
) -> None:
    """Breaks when: each attempt counts for the breaker."""
    await compress(conversation, scripted(SummarizerError()), scripted(SummarizerError()))
    assert len(await versions(conversation)) == 2
    assert (await store.abreaker(conversation.pk)).failures == 1


async def test_the_second_model_answers_for_the_first(conversation: Conversation) -> None:
    outcome = await compress(conversation, scripted(SummarizerError()), scripted(GOOD))
    assert (outcome.success, outcome.degraded) == (True, False)


async def test_where_the_extract_is_the_method_nothing_is_degraded(
    conversation: Conversation,
) -> None:
    outcome = await compress(conversation, extract=True)
    assert (outcome.success, outcome.degraded) == (True, False)


async def test_a_receiver_that_raises_breaks_nothing(conversation: Conversation) -> None:
    async def broken(**facts: Any) -> None:
        raise RuntimeError("a receiver's bug")

    every = (signals.compression_started, signals.compression_completed)
    for signal in every:
        signal.connect(broken)
    try:
        assert (await compress(conversation, scripted(GOOD))).success
    finally:
        for signal in every:
            signal.disconnect(broken)


# --- the background ----------------------------------------------------------------------------


async def test_a_prepared_summary_is_applied_at_once(conversation: Conversation) -> None:
    with recorded() as heard:
        prepared = await prepare(conversation, scripted(GOOD))
        assert (prepared.success, prepared.version) == (True, 0)
        assert (await database(stored, conversation)).compressed_context == ""
        late = await database(add, conversation, "user")

        applied = await services.apply_ready(conversation.pk, engine=engine(), sizes=SIZES)

    assert applied is not None
    assert (applied.success, applied.version) == (True, 1)
    assert applied.usage_before - applied.usage_after > 0.5
    row = await database(stored, conversation)
    assert "m1 word word" in row.compressed_context
    assert row.compressed_through < late.seq
    assert [name for name, _ in heard] == ["started", "completed", "completed"]
    assert heard[0][1]["locks_input"] is False
    assert await services.apply_ready(conversation.pk, engine=engine(), sizes=SIZES) is None


async def test_a_prepared_summary_that_frees_too_little_waits(conversation: Conversation) -> None:
    await prepare(conversation, scripted(GOOD))
    large = replace(SIZES, window=100_000)
    assert await services.apply_ready(conversation.pk, engine=engine(), sizes=large) is None
    assert await store.aready(conversation.pk) is not None


async def test_nothing_is_prepared_twice_nor_by_the_extract(conversation: Conversation) -> None:
    await prepare(conversation, scripted(GOOD))
    again = scripted(GOOD)
    with pytest.raises(NothingToCompress):
        await prepare(conversation, again)
    assert again.calls == []
    with pytest.raises(NothingToCompress):
        await services.prepare(conversation.pk, engine=engine(extract=True), sizes=SIZES)


async def test_a_failing_background_run_does_not_fall_to_the_extract(
    conversation: Conversation,
) -> None:
    outcome = await services.prepare(
        conversation.pk, engine=engine(scripted(SummarizerError()), extract=True), sizes=SIZES
    )
    assert (outcome.success, outcome.code) == (False, "summarizer_failed")
    assert await store.aready(conversation.pk) is None


@pytest.mark.parametrize("fails", [False, True])
async def test_a_background_run_becomes_the_one_that_is_waited_for(
    conversation: Conversation, fails: bool
) -> None:
    summarizer = ScriptedSummarizer()
    go_on = asyncio.Event()
    summarizer.enqueue(SummarizerError() if fails else GOOD, wait=go_on)
    background = asyncio.create_task(
        services.prepare(conversation.pk, engine=engine(summarizer, extract=True), sizes=SIZES)
    )
    await summarizer.started.wait()

    with recorded() as heard:
        with pytest.raises(CompressionRunning) as caught:
            await compress(conversation, scripted(GOOD))
        assert caught.value.fields == {"promoted": True}
        assert (await store.aread_state(conversation.pk)).locks_input
        waiting = asyncio.create_task(services.settled(conversation.pk))
        go_on.set()
        outcome = await background
        assert not (await waiting).running

    # Once it is waited for, the extract may answer for a model that failed.
    assert (outcome.success, outcome.version, outcome.degraded) == (True, 1, fails)
    assert outcome.trigger is Trigger.THRESHOLD
    assert [name for name, _ in heard if name != "progress"] == ["started", "completed"]
    assert heard[0][1]["locks_input"] is True
    assert heard[0][1]["message_count"] == outcome.message_count


async def test_a_run_of_another_process_becomes_the_one_that_is_waited_for(
    conversation: Conversation,
) -> None:
    """Who asked is told, and so are the viewers: the page locks.

    Breaks when: nothing is announced of a run that does not live here.
    """
    pk = conversation.pk
    assert await store.aclaim(pk, trigger=Trigger.BACKGROUND, locks_input=False)
    with recorded() as heard, pytest.raises(CompressionRunning) as caught:
        await compress(conversation, scripted(GOOD))
    assert caught.value.fields == {"promoted": True}
    assert (await store.aread_state(pk)).locks_input
    ((name, told),) = heard
    assert (name, told["trigger"], told["locks_input"]) == ("started", Trigger.THRESHOLD, True)


@pytest.mark.parametrize("fails", [False, True])
async def test_a_run_that_another_process_made_urgent_is_applied(
    conversation: Conversation, fails: bool
) -> None:
    """It learns of that from its lease alone.

    Breaks when: a run goes by the trigger that it began with.
    """
    summarizer, go_on = ScriptedSummarizer(), asyncio.Event()
    summarizer.enqueue(SummarizerError() if fails else GOOD, wait=go_on)
    run = asyncio.create_task(
        services.prepare(conversation.pk, engine=engine(summarizer, extract=True), sizes=SIZES)
    )
    await summarizer.started.wait()
    assert await store.apromote(conversation.pk, trigger=Trigger.THRESHOLD, locks_input=True)
    go_on.set()
    outcome = await run
    assert (outcome.success, outcome.version, outcome.degraded) == (True, 1, fails)
    assert outcome.trigger is Trigger.THRESHOLD


# --- a person's ---------------------------------------------------------------------------------


async def edit(conversation: Conversation, text: str, *, expected_version: int) -> int:
    return await services.edit(
        conversation.pk,
        text,
        expected_version=expected_version,
        author_id=conversation.owner_id,
        counter=COUNTER,
        sizes=SIZES,
    )


async def test_an_edit_is_checked_and_kept(conversation: Conversation) -> None:
    await compress(conversation, scripted(GOOD))
    text = (await database(stored, conversation)).compressed_context

    for wrong in ("", "   ", "\x00", "no heading at all\n## Nonsense\n", "- x\n" * 100_000):
        with pytest.raises(SummaryInvalid):
            await edit(conversation, wrong, expected_version=1)
    assert await edit(conversation, text.replace("words", "birds"), expected_version=1) == 2
    with pytest.raises(StaleVersion) as caught:
        await edit(conversation, text, expected_version=1)

    assert caught.value.fields["submitted_text"] == text
    row = await database(stored, conversation)
    assert row.compressed_context == caught.value.fields["current_text"]
    assert "birds" in row.compressed_context
    [newest, _] = await versions(conversation)
    assert (newest.trigger, newest.author_id) == (Trigger.EDIT, conversation.owner_id)
    assert await services.undo(conversation.pk, transcript=TRANSCRIPT) == 3
    assert (await database(stored, conversation)).compressed_context == text
    assert await services.redo(conversation.pk, transcript=TRANSCRIPT) == 4
    assert await services.restore(conversation.pk, 0, transcript=TRANSCRIPT) == 5
    assert (await database(stored, conversation)).compressed_context == ""


async def test_each_change_of_a_persons_is_told_once(conversation: Conversation) -> None:
    """Breaks when: a change does not go through ``_changed``, or is told before it is stored."""
    await compress(conversation, scripted(GOOD))
    text = (await database(stored, conversation)).compressed_context
    seen: dict[str, Any] = {"transcript": TRANSCRIPT}
    with recorded() as heard:
        await edit(conversation, text.replace("words", "birds"), expected_version=1)
        await services.undo(conversation.pk, **seen, expected_version=2)
        await services.redo(conversation.pk, **seen, expected_version=3)
        await services.restore(conversation.pk, 1, **seen, expected_version=4)
        await services.clear(conversation.pk, **seen)
    assert heard == [
        ("changed", {"conversation_id": conversation.pk, "version": version})
        for version in (2, 3, 4, 5, 6)
    ]


async def test_what_a_person_read_before_another_change_is_refused(
    conversation: Conversation,
) -> None:
    """Breaks when: ``expected_version`` is not compared in the change's own transaction."""
    await compress(conversation, scripted(GOOD))
    seen: dict[str, Any] = {"transcript": TRANSCRIPT, "expected_version": 0}
    with recorded() as heard:
        for change in (services.undo, services.redo):
            with pytest.raises(StaleVersion):
                await change(conversation.pk, **seen)
        with pytest.raises(StaleVersion):
            await services.restore(conversation.pk, 0, **seen)
    assert heard == []
    assert (await database(stored, conversation)).compression_version == 1


@pytest.mark.parametrize(("tokens", "fits"), [(600, True), (601, False)])
async def test_an_edit_may_have_twice_the_cap(
    conversation: Conversation, tokens: int, fits: bool
) -> None:
    """The cap is 300 here. Breaks when: the limit of an edit is another."""
    text = ("## Context\n\n- " + "word " * 400)[: 3 * tokens - 1] + "."
    assert COUNTER.count(text) == tokens
    if fits:
        assert await edit(conversation, text, expected_version=0) == 1
    else:
        with pytest.raises(SummaryInvalid):
            await edit(conversation, text, expected_version=0)


async def test_clear_leaves_no_summary(conversation: Conversation) -> None:
    await compress(conversation, scripted(GOOD))
    assert await services.clear(conversation.pk, transcript=TRANSCRIPT) == 2
    row = await database(stored, conversation)
    assert (row.compressed_context, row.compressed_through) == ("", 30)
