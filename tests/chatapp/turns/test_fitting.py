"""How a request is made to fit, without a runner and without a model."""

from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from chatapp.context.tokens import message_tokens
from chatapp.conversations.messages import kept, measures, reading
from chatapp.conversations.messages.masks import StoredMasks
from chatapp.conversations.messages.transcript import StoredTranscript
from chatapp.conversations.summaries.compressions import compression_view
from chatapp.errors import ContextBlocked, NotFound
from chatapp.llm.profiles import Profile
from chatapp.models import Conversation, Message, Summary, Turn
from chatapp.turns.fitting import (
    FittingDeps,
    compression_settings,
    policy_settings,
    prepare,
    prepare_in_background,
    sent_back,
)
from compression import services, store
from compression.engine import Engine
from compression.exceptions import CompressionRunning, SummarizerError
from compression.ports import Summarizer
from compression.services import undo
from compression.store import FitDraft
from compression.testing import CountingSummarizer, ScriptedSummarizer, says
from compression.tokens import CharacterCounter
from compression.types import Ledger, Trigger
from tests.chatapp.context.test_request import check_shape, snapshot_of
from tests.chatapp.stage import stored, until
from tests.chatapp.talking import new, row_of
from tests.chatapp.turns.test_turn import fill
from tests.strict import faults

pytestmark = [pytest.mark.elsewhere, pytest.mark.django_db(transaction=True)]

COUNTER = CharacterCounter()
PROFILE = Profile(name="model", window=4096, calibration=1.0)


class Changes:
    """Counts how often viewers were told."""

    def __init__(self) -> None:
        self.number = 0

    async def __call__(self) -> None:
        self.number += 1


def deps_with(
    *summarizers: Summarizer, profile: Profile = PROFILE, extract: Summarizer | None = None
) -> FittingDeps:
    engine = Engine(
        transcript=StoredTranscript(),
        masks=StoredMasks(),
        counter=COUNTER,
        summarizers=summarizers,
        extract=extract or ScriptedSummarizer(label="extract"),
    )
    return FittingDeps(
        profile=profile, counter=COUNTER, changed=Changes(), engine_for=lambda profile: engine
    )


async def filled(owner: User, turns: int, **changes: Any) -> str:
    code = await stored(lambda: new(owner))
    await stored(lambda: fill(code, turns))
    await stored(lambda: ask(code))
    if changes:
        await stored(lambda: Conversation.objects.filter(code=code).update(**changes))
    return code


def ask(code: str, text: str = "And now?") -> None:
    row = row_of(code)
    Message.objects.create(
        conversation=row,
        seq=row.next_seq,
        role="user",
        text=text,
        token_count=message_tokens(COUNTER, text),
        created_at=timezone.now(),
    )
    Conversation.objects.filter(pk=row.pk).update(next_seq=row.next_seq + 1)


async def pk_of(code: str) -> int:
    return (await stored(lambda: row_of(code))).pk


async def test_it_works(alice: User) -> None:
    code = await filled(alice, 2)
    prepared = await prepare(await pk_of(code), deps_with())
    assert prepared.decision.action == "continue"
    assert prepared.request.manifest["decision"]["action"] == "continue"
    assert len(prepared.request.messages) == 6


async def test_it_compresses_at_the_threshold(alice: User) -> None:
    code = await filled(alice, 12)
    summarizer = CountingSummarizer()
    prepared = await prepare(await pk_of(code), deps_with(summarizer))
    assert len(summarizer.calls) == 1
    assert prepared.request.usage.share < 0.8
    assert prepared.request.manifest["summary_version"] == 1
    check_shape(prepared.request.messages)


@pytest.mark.parametrize("turns", range(1, 31, 3))
@pytest.mark.parametrize("works", [True, False])
async def test_i16_i8_whatever_the_size_it_fits_and_nothing_is_in_two_places(
    alice: User, turns: int, works: bool
) -> None:
    """With a summariser that works and one that never does.

    Breaks when: truncation or compression is given up before the request fits.
    """
    code = await filled(alice, turns)
    summarizer: Summarizer = CountingSummarizer() if works else ScriptedSummarizer()
    prepared = await prepare(await pk_of(code), deps_with(summarizer))
    assert prepared.request.usage.total <= PROFILE.window - PROFILE.reserve
    manifest = prepared.request.manifest
    sent = {seq for low, high in manifest["seqs"] for seq in range(low, high + 1)}
    left_out = max(manifest["boundary"], manifest["truncated_through"])
    assert sent == set(range(left_out + 1, turns * 2 + 2))


async def test_l09_after_an_overflow_it_compresses_whatever_the_projection_says(
    alice: User,
) -> None:
    code = await filled(alice, 8)
    summarizer = CountingSummarizer()
    deps = deps_with(summarizer)
    assert (await prepare(await pk_of(code), deps)).request.manifest["boundary"] == 0
    prepared = await prepare(await pk_of(code), deps, overflowed=True)
    assert len(summarizer.calls) == 1
    assert prepared.request.manifest["boundary"] > 0
    active = await stored(lambda: Summary.objects.get(version=1))
    assert active.trigger == "overflow"


async def test_a_summariser_that_fails_is_asked_once_a_turn_even_with_a_ready_draft(
    alice: User,
) -> None:
    """Breaks when: a ready draft that cannot be applied keeps the policy at ``compress``."""
    code = await filled(alice, 12)
    summarizer = ScriptedSummarizer()
    pk = await pk_of(code)
    # Ready, and not worth it: it stands for one message.
    row = await stored(lambda: row_of(code))
    await stored(
        lambda: Summary.objects.create(
            conversation=row,
            status="ready",
            trigger="background",
            text="x",
            first_seq=1,
            through_seq=1,
            message_count=1,
            source_fingerprint="of another text",
            source_tokens=2000,
            summary_tokens=1,
        )
    )
    for _ in range(6):
        summarizer.enqueue(SummarizerError("down"))
    prepared = await prepare(pk, deps_with(summarizer))
    assert len(summarizer.calls) == 1
    assert prepared.request.manifest["truncated_through"] > 0


async def test_truncation_is_told_and_ends_with_the_next_compression(alice: User) -> None:
    code = await filled(alice, 12)
    deps = deps_with(ScriptedSummarizer())
    prepared = await prepare(await pk_of(code), deps)
    assert prepared.request.manifest["truncated_through"] > 0
    assert isinstance(deps.changed, Changes)
    assert deps.changed.number == 1
    await stored(lambda: fill(code, 8))
    await stored(lambda: ask(code))
    summarizer = CountingSummarizer()
    # The breaker counts unsuccessful runs; one is not enough to open it.
    prepared = await prepare(await pk_of(code), deps_with(summarizer))
    assert prepared.request.manifest["truncated_through"] == 0
    assert summarizer.calls[0].items[0].seq == 1, "what was left out is taken in"


async def test_a_compression_that_somebody_cancelled_is_not_called_a_failure(alice: User) -> None:
    """The notice and the manifest say why the oldest messages are left out.

    Breaks when: cancelling leaves no attempt behind, or the run ends before it does.
    """
    code = await filled(alice, 12)
    pk = await pk_of(code)
    summarizer = ScriptedSummarizer()
    summarizer.enqueue(says("Never written."), wait=asyncio.Event())
    turn = asyncio.create_task(prepare(pk, deps_with(summarizer)))
    await summarizer.started.wait()
    assert await services.cancel(pk)
    manifest = (await turn).request.manifest
    assert manifest["truncated_through"] > 0
    assert "ailed" not in str(manifest["before"])
    view = await stored(lambda: compression_view(row_of(code)))
    assert view.truncated_because == "the compression was cancelled"
    await stored(lambda: fill(code, 8))
    await stored(lambda: ask(code))
    await prepare(pk, deps_with(ScriptedSummarizer()))
    view = await stored(lambda: compression_view(row_of(code)))
    assert view.truncated_because.startswith("summarising failed: "), "the newest reason counts"


async def past_a_background_run(
    code: str, summarizer: ScriptedSummarizer
) -> tuple[FittingDeps, asyncio.Task[Any]]:
    """While a run in the background writes, the conversation grows until a request must wait."""
    deps = deps_with(summarizer)
    ahead = asyncio.create_task(prepare_in_background(await pk_of(code), deps))
    await summarizer.started.wait()
    await stored(lambda: fill(code, 2))
    await stored(lambda: ask(code))
    return deps, ahead


async def test_i11_a_background_run_that_was_waited_for_and_cancelled_is_not_begun_again(
    alice: User,
) -> None:
    """Nor does an older Cancel stand for this one.

    Breaks when: the request that waited sees only that the run has ended.
    """
    code = await filled(alice, 9)
    pk = await pk_of(code)
    waited_for = Conversation.objects.filter(pk=pk, compression_locks_input=True)
    for cancels in (True, False):
        summarizer, writes = ScriptedSummarizer(), asyncio.Event()
        summarizer.enqueue(says("They talked."), wait=writes)
        summarizer.enqueue(says("They talked again."))
        deps, ahead = await past_a_background_run(code, summarizer)
        turn = asyncio.create_task(prepare(pk, deps))
        await until(waited_for.exists)
        if cancels:
            assert await services.cancel(pk)
        else:
            writes.set()
        manifest = (await turn).request.manifest
        await ahead
        assert len(summarizer.calls) == 1
        assert (manifest["summary_version"], manifest["truncated_through"] > 0) == (
            (0, True) if cancels else (1, False)
        )
        await stored(lambda: Message.objects.filter(seq__gt=20).delete())
        kept.forget()
        await stored(lambda: Conversation.objects.update(truncated_through=0))


async def test_i11_a_run_that_is_cancelled_as_it_is_waited_for_is_not_begun_again(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Breaks when: what was cancelled before is read only once the request waits."""
    code = await filled(alice, 9)
    pk = await pk_of(code)
    summarizer = ScriptedSummarizer()
    summarizer.enqueue(says("They talked."), wait=asyncio.Event())
    summarizer.enqueue(says("They talked again."))
    deps, ahead = await past_a_background_run(code, summarizer)
    compress = services.compress

    async def cancelled_at_once(*args: Any, **kwargs: Any) -> Any:
        try:
            return await compress(*args, **kwargs)
        except CompressionRunning:
            assert await services.cancel(pk)
            raise

    monkeypatch.setattr(services, "compress", cancelled_at_once)
    await prepare(pk, deps)
    await ahead
    assert len(summarizer.calls) == 1


async def test_a_question_that_never_fits_is_refused(alice: User) -> None:
    code = await filled(alice, 0)
    await stored(lambda: Message.objects.all().delete())
    await stored(lambda: ask(code, "word " * 10_000))
    with pytest.raises(ContextBlocked) as caught:
        await prepare(await pk_of(code), deps_with(CountingSummarizer()))
    assert caught.value.fields["total"] > 3072


async def test_a_deleted_conversation_is_not_found(alice: User) -> None:
    code = await filled(alice, 1, deleted_at=timezone.now())
    pk = await stored(lambda: Conversation.objects.get(code=code).pk)
    with pytest.raises(NotFound):
        await prepare(pk, deps_with())


async def test_old_tool_results_are_masked_before_anything_is_compressed(alice: User) -> None:
    code = await stored(lambda: new(alice))
    await stored(lambda: with_tools(code))
    summarizer = CountingSummarizer()
    prepared = await prepare(await pk_of(code), deps_with(summarizer))
    assert summarizer.calls == []
    assert prepared.request.manifest["masked"] == [3]
    assert "result masked" in str(prepared.request.messages)
    assert (await stored(lambda: Message.objects.get(seq=3))).text == "found " * 2000


async def test_what_is_masked_counts_as_what_is_sent_of_it(alice: User) -> None:
    """The screen's meter, the planner and the request agree on what the tail costs.

    Breaks when: a mask leaves the message's ``token_count`` as it was, or counts the original.
    """
    code = await stored(lambda: new(alice))
    await stored(lambda: with_tools(code))
    prepared = await prepare(await pk_of(code), deps_with(CountingSummarizer()))
    assert prepared.request.manifest["masked"] == [3]
    sent = [one for one in prepared.request.messages if one["role"] == "tool"]
    row = await stored(lambda: Message.objects.get(seq=3))
    assert row.token_count == message_tokens(COUNTER, sent[0]["content"])
    meter = await stored(lambda: measures.tail_tokens(row_of(code)))
    assert meter == prepared.request.manifest["tokens"]["tail"]


def with_tools(code: str) -> None:
    row = row_of(code)
    call = {"id": "call_0", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    for seq, role, text, more in [
        (1, "user", "look", {}),
        (2, "assistant", "", {"tool_calls": [call]}),
        (3, "tool", "found " * 2000, {"tool_call_id": "call_0", "tool_name": "look"}),
        *((seq, ("user", "assistant")[seq % 2 == 1], f"m{seq}", {}) for seq in range(4, 13)),
    ]:
        Message.objects.create(
            conversation=row,
            seq=seq,
            role="assistant" if seq == 4 else role,
            text=text,
            token_count=message_tokens(COUNTER, text),
            created_at=timezone.now(),
            **more,  # type: ignore[arg-type]
        )
    Conversation.objects.filter(pk=row.pk).update(next_seq=13)


async def test_a_turn_waits_for_the_compression_that_is_in_its_way(alice: User) -> None:
    code = await filled(alice, 2)
    pk = await pk_of(code)
    token = await store.aclaim(pk, trigger=Trigger.MANUAL, locks_input=True)
    assert token
    waiting = asyncio.create_task(prepare(pk, deps_with()))
    await until(lambda: row_of(code).compression_locks_input)
    assert not waiting.done()
    await store.arelease(pk, token)
    assert (await waiting).decision.action == "continue"


async def test_a_background_compression_is_in_nobodys_way(alice: User) -> None:
    code = await filled(alice, 2)
    pk = await pk_of(code)
    assert await store.aclaim(pk, trigger=Trigger.BACKGROUND, locks_input=False)
    assert (await prepare(pk, deps_with())).decision.action == "continue"


async def test_between_soft_and_threshold_a_summary_is_prepared_after_the_turn(
    alice: User,
) -> None:
    code = await filled(alice, 9)
    pk = await pk_of(code)
    summarizer = ScriptedSummarizer()
    summarizer.enqueue(says("They talked."))
    deps = deps_with(summarizer)
    prepared = await prepare(pk, deps)
    assert prepared.decision.action == "prepare"
    assert summarizer.calls == []
    await prepare_in_background(pk, deps)
    assert len(summarizer.calls) == 1
    assert await store.aready(pk) is not None
    assert (await reading.asnapshot_with_tail(pk)).boundary == 0


async def test_beyond_the_threshold_too_a_summary_is_prepared_after_the_turn(alice: User) -> None:
    """A long reply passes it at once; the next message finds the summary made.

    Breaks when: only what the policy calls ``prepare`` is prepared.
    """
    code = await filled(alice, 12)
    pk = await pk_of(code)
    summarizer = ScriptedSummarizer()
    summarizer.enqueue(says("They talked."))
    deps = deps_with(summarizer)
    await prepare_in_background(pk, deps)
    assert await store.aready(pk) is not None
    prepared = await prepare(pk, deps)
    assert prepared.request.manifest["summary_version"] == 1
    assert len(summarizer.calls) == 1


async def test_i16_one_giant_turn_is_shortened_to_fit(alice: User) -> None:
    """I16: a result that no window holds, of the turn that goes on; too recent to be masked.

    Breaks when: ``_shortened`` refuses what ``shorten_giant`` can make fit.
    """
    code = await stored(lambda: new(alice))
    await stored(lambda: with_tools(code))
    later = Message.objects.filter(conversation__code=code, seq__gt=3)
    await stored(lambda: later.delete())
    prepared = await prepare(await pk_of(code), deps_with(CountingSummarizer()))
    assert prepared.request.usage.share <= 1.0
    assert prepared.request.manifest["shortened"] == [3]
    assert prepared.request.manifest["decision"]["action"] == "block"
    assert "characters left out here to fit the window" in str(prepared.request.messages)
    check_shape(prepared.request.messages)
    assert (await stored(lambda: Message.objects.get(seq=3))).text == "found " * 2000


async def test_i11_c05_a_summariser_that_only_fails_is_left_alone(alice: User) -> None:
    """I11, C05: three failed runs, then turns are left out without asking it again.

    Until the conversation has grown by a quarter of the budget.
    Breaks when: the policy is not told what the breaker says, or how much was said since.
    """
    code = await filled(alice, 12)
    pk = await pk_of(code)
    failing = ScriptedSummarizer()
    for _ in range(6):
        prepared = await prepare(pk, deps_with(failing))
        assert prepared.request.manifest["truncated_through"] > 0
        view = await stored(lambda: compression_view(row_of(code)))
        assert view.truncated_because.startswith("summarising failed: ")
        await stored(lambda: Conversation.objects.filter(pk=pk).update(truncated_through=0))
    assert len(failing.calls) == 3
    for turns, calls in ((3, 3), (1, 4), (3, 4)):
        await stored(partial(fill, code, turns))
        await stored(lambda: Conversation.objects.filter(pk=pk).update(truncated_through=0))
        await prepare(pk, deps_with(failing))
        assert len(failing.calls) == calls


async def test_i11_an_extract_stands_in_for_models_that_only_fail(alice: User) -> None:
    """I11: nothing is left out of a request because nobody could write ahead.

    Breaks when: an open breaker keeps the extract away too, or the model is asked once more.
    """
    code = await filled(alice, 9)
    pk = await pk_of(code)
    failing, extract = ScriptedSummarizer(), CountingSummarizer(label="extract")
    deps = deps_with(failing, extract=extract)
    for calls in (1, 2, 3, 3):
        await prepare_in_background(pk, deps)
        assert len(failing.calls) == calls
    assert not extract.calls
    await stored(lambda: fill(code, 2))
    await stored(lambda: ask(code))
    manifest = (await prepare(pk, deps)).request.manifest
    assert [one["action"] for one in manifest["before"]] == ["compress"]
    assert (manifest["summary_version"], manifest["truncated_through"]) == (1, 0)
    assert (len(failing.calls), len(extract.calls)) == (3, 1)
    assert (await stored(lambda: Summary.objects.get(version=1))).degraded


async def test_i11_a_ready_draft_that_cannot_be_applied_does_not_close_the_breaker(
    alice: User,
) -> None:
    """I11. Breaks when: ``_compress`` goes on to a model where only a ready draft was to be had."""
    code = await filled(alice, 12)
    pk = await pk_of(code)
    base, items = await store.aread(pk, StoredTranscript())
    draft = FitDraft(
        trigger=Trigger.BACKGROUND,
        text="x",
        ledger=Ledger(),
        first_seq=1,
        through_seq=1,
        message_count=1,
        fingerprint=store.fingerprint(items[:1]),
        # More than it stands for, so that it seems worth it until it is measured.
        source_tokens=2000,
        summary_tokens=1,
    )
    token = await store.aclaim(pk, trigger=Trigger.BACKGROUND, locks_input=False)
    assert token
    assert await store.asave_ready(pk, token, base, draft)
    failing = ScriptedSummarizer()
    for _ in range(6):
        prepared = await prepare(pk, deps_with(failing))
        assert prepared.request.manifest["truncated_through"] > 0
        await stored(lambda: Conversation.objects.filter(pk=pk).update(truncated_through=0))
    assert await store.aready(pk) is not None
    assert len(failing.calls) == 3


async def test_a_conversations_own_threshold_holds_for_its_runs(alice: User) -> None:
    """Where compression begins at 0.5 it lands lower, so that less stays verbatim.

    Breaks when: a run gets the settings of all conversations.
    """
    boundaries = []
    for threshold in (0.8, 0.5):
        code = await stored(partial(new, alice))
        await stored(partial(fill, code, 36, words=15))
        await stored(partial(ask, code))
        own = Conversation.objects.filter(code=code)
        await stored(partial(own.update, threshold=threshold))
        prepared = await prepare(await pk_of(code), deps_with(CountingSummarizer()))
        boundaries.append(prepared.request.manifest["boundary"])
    assert 0 < boundaries[0] < boundaries[1]


async def test_after_an_undo_nothing_is_compressed_below_0_95(alice: User) -> None:
    """Breaks when: the policy is not told that the last change was an Undo."""
    code = await filled(alice, 11)
    pk, summarizer = await pk_of(code), CountingSummarizer()
    deps = deps_with(summarizer)
    assert (await prepare(pk, deps)).request.manifest["summary_version"] == 1
    await undo(pk, transcript=StoredTranscript())

    prepared = await prepare(pk, deps)
    assert 0.80 <= prepared.request.usage.share < 0.95
    assert prepared.decision.action == "continue"
    await prepare_in_background(pk, deps)
    assert len(summarizer.calls) == 1

    await stored(lambda: fill(code, 2))
    await stored(lambda: ask(code))
    assert (await prepare(pk, deps)).request.manifest["summary_version"] == 3
    assert len(summarizer.calls) == 2


@pytest.mark.parametrize(
    ("turns", "messages", "prepared"),
    [(7, 0, False), (7, 4, True), (7, 40, False), (3, 2, False)],
)
async def test_so_many_messages_are_prepared_whatever_the_usage(
    alice: User, settings: Any, turns: int, messages: int, prepared: bool
) -> None:
    """Off by default, counted beyond the tail, and never for less than 0.10 of the budget.

    Breaks when: ``_due`` does not count, or nobody asks it below the soft threshold.
    """
    settings.COMPRESSION = {**settings.COMPRESSION, "PREPARE_MESSAGES": messages}
    code = await filled(alice, turns)
    summarizer = CountingSummarizer()
    pk = await pk_of(code)
    deps = deps_with(summarizer)
    assert (await prepare(pk, deps)).request.usage.share < 0.65
    await prepare_in_background(pk, deps)
    assert len(summarizer.calls) == prepared
    assert (await store.aready(pk) is not None) == prepared
    await prepare_in_background(pk, deps)
    assert len(summarizer.calls) == prepared


class WatchedCounter(CharacterCounter):
    """Knows the threads in which it was asked."""

    def __init__(self) -> None:
        self.threads: set[int] = set()

    def count(self, text: str) -> int:
        """As always."""
        self.threads.add(threading.get_ident())
        return super().count(text)


@pytest.mark.parametrize("turns", [2, 110])
async def test_i25_a_long_request_is_made_in_a_thread(alice: User, turns: int) -> None:
    """I25: a short one is not, since the way to a thread delays its first token.

    Breaks when: ``_as_request`` makes a long request in the event loop.
    """
    code = await filled(alice, turns)
    counter = WatchedCounter()
    deps = replace(deps_with(), counter=counter, profile=replace(PROFILE, window=200_000))
    prepared = await prepare(await pk_of(code), deps)
    assert prepared.request.usage.share < 0.65
    assert (threading.get_ident() in counter.threads) == (turns == 2)


def test_a_conversations_own_settings_go_before_the_defaults() -> None:
    own = replace(snapshot_of([]), threshold=0.6, keep_turns=5, compression_off=True)
    assert (policy_settings(own).threshold, policy_settings(own).off) == (0.6, True)
    settings = compression_settings(own)
    assert (settings.threshold, settings.keep_turns) == (0.6, 5)
    assert policy_settings(snapshot_of([])).off is False


async def masked_seqs(code: str) -> list[int]:
    rows = Message.objects.filter(conversation__code=code, masked_at__isnull=False)
    return await stored(lambda: list(rows.order_by("seq").values_list("seq", flat=True)))


async def test_results_of_the_open_turn_are_masked_between_its_rounds(alice: User) -> None:
    """I15, I17: the results outside the last six messages, and the file that the model wrote.

    Breaks when: masking leaves the open turn alone, takes one of the last six messages, or masks
    anew in each round.
    """
    code = await stored(lambda: new(alice))
    await stored(lambda: in_rounds(code, 5))
    pk = await pk_of(code)
    first = (await prepare(pk, deps_with())).request
    assert first.manifest["masked"] == [2, 3, 4, 5] == await masked_seqs(code)
    written = json.loads(first.messages[2]["tool_calls"][0]["function"]["arguments"])
    assert written["path"] == "notes/0.txt"
    assert written["content"].startswith("[masked: ")
    assert [one["role"] for one in first.messages[1:]] == ["user", *["assistant", "tool"] * 5]
    assert faults(first.messages) == []
    await stored(lambda: in_rounds(code, 1, start=5, size=20))
    second = (await prepare(pk, deps_with())).request
    assert second.messages[: len(first.messages)] == first.messages
    assert first.usage.share < 0.65 < 0.65 + second.usage.share


def in_rounds(code: str, rounds: int, *, start: int = 0, size: int = 900) -> None:
    """An open turn in which the model writes a file and gets a long answer, again and again."""
    row = row_of(code)
    turn, _ = Turn.objects.get_or_create(conversation=row, finished_at=None, status="tools")
    messages: list[dict[str, Any]] = []
    if not start:
        messages.append({"role": "user", "text": "Write"})
    for number in range(start, start + rounds):
        arguments = json.dumps({"path": f"notes/{number}.txt", "content": "note\n" * (size // 10)})
        function = {"name": "write", "arguments": arguments}
        call = {"id": f"call_{number}", "type": "function", "function": function}
        result = {"tool_call_id": f"call_{number}", "tool_name": "write"}
        messages.append({"role": "assistant", "text": "", "tool_calls": [call]})
        messages.append({"role": "tool", "text": "written\n" * (size // 8), **result})
    for seq, fields in enumerate(messages, start=row.next_seq):
        tokens = message_tokens(COUNTER, fields["text"], fields.get("tool_calls", []))
        Message.objects.create(
            conversation=row,
            seq=seq,
            turn=turn,
            token_count=tokens,
            created_at=timezone.now(),
            **fields,
        )
    Conversation.objects.filter(pk=row.pk).update(next_seq=row.next_seq + len(messages))


async def test_what_a_compression_leaves_is_masked_with_it(alice: User) -> None:
    """The provider's cache is lost anyway, so less than 0.05 B is worth it then.

    Breaks when: only the soft threshold masks, the batch of a compression must be as large, or the
    transcript leaves out calls of the open turn.
    """
    code = await filled(alice, 11)
    pk = await pk_of(code)
    await stored(lambda: in_rounds(code, 4, size=300))
    prepared = await prepare(pk, deps_with(CountingSummarizer()))
    assert prepared.request.manifest["summary_version"] == 1
    assert prepared.request.manifest["masked"] == await masked_seqs(code) != []
    assert prepared.request.manifest["before"][0]["action"] == "compress"
    assert faults(prepared.request.messages) == []


async def test_a_batch_that_was_undone_is_not_masked_again_at_once(alice: User) -> None:
    """Breaks when: Undo only takes the marks off."""
    code = await stored(lambda: new(alice))
    await stored(lambda: in_rounds(code, 5))
    pk = await pk_of(code)
    await prepare(pk, deps_with())
    change = await services.unmask(pk, 1, masks=StoredMasks())
    assert change.seqs == (2, 3, 4, 5)
    await prepare(pk, deps_with())
    assert await masked_seqs(code) == []


THINKS = replace(PROFILE, reasoning_back="always")


def with_thoughts(code: str, *, turns: int = 0, tokens: int = 3500) -> None:
    """Small turns, then one that is open, in which the model thought and called a tool."""
    fill(code, turns, words=15)
    row = row_of(code)
    turn = Turn.objects.create(conversation=row, model=PROFILE.name)
    call = {"id": "call_0", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    thought = {"reasoning": "so " * tokens, "reasoning_field": "reasoning"}
    more: tuple[tuple[str, dict[str, Any]], ...] = (
        ("user", {"text": "look"}),
        ("assistant", {"tool_calls": [call], "reasoning_tokens": tokens, **thought}),
        ("tool", {"text": "found", "tool_call_id": "call_0", "tool_name": "look"}),
        ("assistant", {"status": "streaming", "token_count": 0}),
    )
    for number, (role, fields) in enumerate(more):
        calls = fields.get("tool_calls", [])
        Message.objects.create(
            conversation=row,
            seq=row.next_seq + number,
            turn=turn,
            role=role,
            created_at=timezone.now(),
            **{"token_count": message_tokens(COUNTER, fields.get("text", ""), calls), **fields},
        )
    Conversation.objects.filter(pk=row.pk).update(next_seq=row.next_seq + len(more))


@pytest.mark.parametrize("turns", [0, 3])
async def test_i16_i17_reasoning_leaves_before_any_words_do(alice: User, turns: int) -> None:
    """And for good, so that the next request begins as this one.

    Breaks when: reasoning does not count as part of what has to fit, so that there is nothing to
    leave out; or turns are left out for its sake.
    """
    code = await stored(lambda: new(alice))
    await stored(lambda: with_thoughts(code, turns=turns))
    deps = deps_with(ScriptedSummarizer(), profile=THINKS)
    prepared = await prepare(await pk_of(code), deps)
    manifest = prepared.request.manifest
    assert prepared.request.usage.share < 0.5
    assert manifest["before"][-1]["action"] == "drop_reasoning"
    assert (manifest["truncated_through"], manifest["shortened"]) == (0, [])
    assert not any("reasoning" in one for one in prepared.request.messages)
    row = await stored(lambda: row_of(code))
    assert row.reasoning_dropped_through == 2 * turns + 3
    assert isinstance(deps.changed, Changes)
    assert deps.changed.number == 1
    again = await prepare(await pk_of(code), deps)
    assert again.request.messages == prepared.request.messages
    assert again.request.manifest["before"] == []


@pytest.mark.parametrize("counted_by", ["each message", "the database"])
@pytest.mark.parametrize("mode", ["never", "tool_turns", "always"])
async def test_the_meter_counts_the_reasoning_that_is_sent(
    alice: User, monkeypatch: pytest.MonkeyPatch, mode: str, counted_by: str
) -> None:
    """The screen, the planner and the request agree, however long the tail is.

    Breaks when: the meter shows a fifth of the window in use where the next send is refused.
    """
    if counted_by == "the database":
        monkeypatch.setattr(measures, "MOST_COUNTED", 0)
    code = await stored(lambda: new(alice))
    await stored(lambda: with_thoughts(code, turns=2, tokens=700))
    profile = replace(PROFILE, reasoning_back=mode)
    prepared = await prepare(await pk_of(code), deps_with(profile=profile))
    tail = prepared.request.manifest["tokens"]["tail"]
    row = await stored(lambda: row_of(code))
    assert await stored(lambda: measures.tail_tokens(row, sent_back(profile))) == tail
    plain = await stored(lambda: measures.tail_tokens(row))
    assert tail - plain == (0 if mode == "never" else 700)
    transcript = StoredTranscript(back=sent_back(profile))
    items = await stored(lambda: transcript.items(row.pk, after_seq=0))
    assert sum(one.sent_tokens for one in items) == tail
