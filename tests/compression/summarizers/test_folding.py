"""A long span in parts: kept as they come, gone on with, and each failure for its part alone."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from chatapp.models import Conversation, Summary
from compression import services, signals, store
from compression.conf import settings as compression_settings
from compression.exceptions import SummarizerError
from compression.judging import judge
from compression.planning.planner import PlannerSettings
from compression.services import Engine
from compression.summarizers.extractive import ExtractiveSummarizer
from compression.summarizers.prompt import PromptSummarizer
from compression.types import Completion, Outcome, SummaryStatus, Trigger
from tests.compression.hosting import (
    COUNTER,
    SIZES,
    TRANSCRIPT,
    add,
    database,
    new_conversation,
    rows,
    stored,
    supersede,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.elsewhere]

WINDOW = 4000
"""Ruler tokens: about a dozen of the messages below go into one call."""
Fault = SummarizerError | str


class Scribe:
    """A model that notes each message it is shown; what it does otherwise is said by part."""

    def __init__(self, label: str = "scribe") -> None:
        self.label = label
        self.shown: list[tuple[int, int]] = []
        """First and last seq of each call."""
        self.faults: dict[int, Fault] = {}
        """What comes instead, for calls whose messages begin at or behind a seq and reach it."""
        self.lasting: Fault | None = None
        self.holds: dict[int, asyncio.Event] = {}
        self.began: asyncio.Event = asyncio.Event()

    async def __call__(
        self,
        *,
        system: str,
        user: str,
        schema: Mapping[str, Any] | None,
        max_tokens: int,
        on_tokens: Callable[[int], Awaitable[None]],
    ) -> Completion:
        assert COUNTER.count(system) + COUNTER.count(user) + max_tokens <= WINDOW
        seqs = [int(seq) for seq in re.findall(r'<message-\w+ seq="(\d+)"', user)]
        self.shown.append((seqs[0], seqs[-1]))
        if seqs[0] in self.holds:
            self.began.set()
            await self.holds[seqs[0]].wait()
        await on_tokens(3)
        fault = self.lasting
        for seq, one in self.faults.items():
            fault = one if seq in seqs else fault
        if isinstance(fault, SummarizerError):
            raise fault
        noted = [
            {"section": "context", "text": f"m{seq} is told", "sources": [seq]} for seq in seqs
        ]
        answer = {"narrative": f"They told m{seqs[0]} to m{seqs[-1]}.", "add": noted}
        return Completion(
            text=json.dumps(answer) if fault is None else fault,
            finish_reason="stop",
            model=self.label,
            prompt_tokens=100,
            completion_tokens=10,
            cost=0.5,
        )

    @property
    def summarizer(self) -> PromptSummarizer:
        return PromptSummarizer(
            self, COUNTER, window=WINDOW, max_output_tokens=900, label=self.label
        )


def transient(message: str = "The model answered with nothing.") -> SummarizerError:
    error = SummarizerError(message)
    error.transient = True
    return error


def engine(*scribes: Scribe, extract: bool = True) -> Engine:
    return Engine(
        transcript=TRANSCRIPT,
        counter=COUNTER,
        summarizers=tuple(scribe.summarizer for scribe in scribes),
        extract=ExtractiveSummarizer(COUNTER, 300) if extract else None,
    )


async def compress(
    conversation: Conversation,
    *scribes: Scribe,
    extract: bool = True,
    max_calls: int = 40,
    **options: Any,
) -> Outcome:
    return await services.compress(
        conversation.pk,
        engine=engine(*scribes, extract=extract),
        sizes=SIZES,
        trigger=options.pop("trigger", Trigger.THRESHOLD),
        settings=replace(compression_settings(), max_calls=max_calls),
        **options,
    )


@pytest.fixture
def conversation() -> Conversation:
    return new_conversation(120, words=60)


async def parts_of(conversation: Conversation) -> list[tuple[int, int]]:
    """What a model that answers well is asked for, part by part."""
    _, items = await store.aread(conversation.pk, TRANSCRIPT)
    plan = Scribe().summarizer.plan(
        items, (await store.aread_base(conversation.pk)).ledger, focus=""
    )
    return [(chunk.first_seq, chunk.through_seq) for chunk in plan.chunks]


def partial(conversation: Conversation) -> list[Summary]:
    return [row for row in rows(conversation) if row.status == "partial"]


def cost(row: Summary) -> float:
    assert row.cost is not None
    return float(row.cost)


async def test_it_works(conversation: Conversation) -> None:
    scribe = Scribe()
    outcome = await compress(conversation, scribe)
    assert (outcome.success, outcome.degraded, outcome.extracted) == (True, False, ())
    assert len(scribe.shown) > 5
    assert scribe.shown[0][0] == 1
    [version] = await database(rows, conversation)
    assert "extracted" not in version.audit
    assert version.audit["accounting"]["calls"] == len(scribe.shown)
    assert cost(version) == 0.5 * len(scribe.shown)


@pytest.mark.parametrize("fault", ["", "I'm sorry, but I can't help with that.", transient()])
async def test_i11_a_part_without_an_answer_is_extracted_alone_and_named(
    conversation: Conversation, fault: Fault
) -> None:
    """I11. It is asked for again first, and the parts around it are the model's.

    Breaks when: one part's failure throws away those that are finished, or is not told of.
    """
    parts = await parts_of(conversation)
    first, last = parts[3]
    scribe = Scribe()
    scribe.faults[(first + last) // 2] = fault
    outcome = await compress(conversation, scribe)

    assert (outcome.success, outcome.degraded, outcome.model) == (True, False, "scribe")
    tries = scribe.shown.count((first, last))
    assert tries == (2 if isinstance(fault, SummarizerError) else 3)
    assert len(scribe.shown) == len(set(scribe.shown)) + tries - 1
    [part] = outcome.extracted
    assert (part.part, part.first_seq, part.through_seq) == (4, first, last)
    assert part.parts == len(set(scribe.shown))
    [version] = await database(rows, conversation)
    assert version.audit["extracted"][0]["first_seq"] == first
    assert any(f"(messages {first}–{last}) by extract" in one for one in outcome.notes)
    assert version.audit["accounting"]["calls"] == len(scribe.shown)


async def test_a_model_that_fails_part_after_part_is_given_up(conversation: Conversation) -> None:
    """Three in a row. What it has finished stays; the extract has the rest.

    Breaks when: ``_worth_going_on`` counts no failures, or the ladder begins at nothing.
    """
    parts = await parts_of(conversation)
    scribe = Scribe()
    for first, last in parts[2:]:
        scribe.faults[(first + last) // 2] = ""
    outcome = await compress(conversation, scribe)
    assert (outcome.success, outcome.degraded) == (True, False)
    assert len(set(scribe.shown)) == 5
    [part] = outcome.extracted
    assert (part.part, part.first_seq) == (3, parts[2][0])
    version, attempt = await database(rows, conversation)
    assert (attempt.status, version.status) == ("rejected", "active")
    assert cost(attempt) == 0.5 * 9
    assert cost(version) == 0.5 * len(scribe.shown)


@pytest.mark.parametrize(
    ("fault", "calls"),
    [(SummarizerError("The key is wrong."), 1), (transient("Away."), 2), ("", 5)],
)
async def test_i11_a_model_that_never_answers_goes_down_the_ladder(
    conversation: Conversation, fault: Fault, calls: int
) -> None:
    """I11. Breaks when: hard errors are asked again, each part has all its tries, or nobody is told
    why no model wrote it.
    """
    scribe = Scribe()
    scribe.lasting = fault
    outcome = await compress(conversation, scribe)
    assert (outcome.success, outcome.degraded) == (True, True)
    stored = await database(rows, conversation)
    [version] = [row for row in stored if row.version]
    [failed] = [row for row in stored if not row.version]
    [made] = outcome.extracted
    assert (made.first_seq, made.through_seq, made.parts) == (1, version.through_seq, 1)
    assert made.reason == failed.reason
    assert len(scribe.shown) == calls
    assert not await database(partial, conversation)


async def test_the_next_model_goes_on_where_the_first_stopped(conversation: Conversation) -> None:
    """Breaks when: the ladder begins each rung at nothing, or pays for finished parts twice."""
    parts = await parts_of(conversation)
    first, second = Scribe("first"), Scribe("second")
    first.faults[parts[3][0] + 1] = SummarizerError("The key is wrong.")
    outcome = await compress(conversation, first, second)
    assert (outcome.success, outcome.degraded, outcome.model) == (True, False, "second")
    assert len(first.shown) == 4
    assert second.shown[0][0] == parts[2][1] + 1
    version, attempt = await database(rows, conversation)
    assert attempt.reason == "The key is wrong."
    assert cost(version) == 0.5 * (3 + len(second.shown))


async def test_calls_are_bounded_and_the_extract_has_the_oldest(conversation: Conversation) -> None:
    """Repairs and second tries are counted too. Breaks when: the plan has no bound."""
    parts = await parts_of(conversation)
    scribe = Scribe()
    outcome = await compress(conversation, scribe, max_calls=4)
    assert (outcome.success, outcome.degraded) == (True, False)
    assert len(scribe.shown) == 4
    [part] = outcome.extracted
    assert (part.part, part.parts, part.first_seq) == (1, 5, 1)
    assert part.through_seq == scribe.shown[0][0] - 1
    assert "4 are the most" in part.reason
    assert len(parts) > 5

    more = [await database(add, conversation, "user", words=60) for _ in range(90)]
    assert more
    stubborn = Scribe()
    stubborn.lasting = ""
    await compress(conversation, stubborn, max_calls=4)
    assert len(stubborn.shown) <= 4


async def test_without_an_extract_too_many_calls_are_refused(conversation: Conversation) -> None:
    """Breaks when: a host without an extract pays for calls without bound."""
    scribe = Scribe()
    outcome = await compress(conversation, scribe, extract=False, max_calls=2)
    assert (outcome.success, scribe.shown) == (False, [])
    assert "2 are the most" in outcome.reason


async def cancelled(conversation: Conversation, at: int, **options: Any) -> Scribe:
    """A run that a person cancels while its part of that number is asked for."""
    parts = await parts_of(conversation)
    scribe = Scribe()
    scribe.holds[parts[at - 1][0]] = asyncio.Event()
    run = asyncio.create_task(compress(conversation, scribe, **options))
    await asyncio.wait_for(scribe.began.wait(), 10)
    await services.cancel(conversation.pk)
    assert (await run).code == "compression_cancelled"
    return scribe


async def test_finished_parts_outlive_a_cancellation(conversation: Conversation) -> None:
    """They are no version, no attempt and no success, and go when the version comes.

    Breaks when: ``_keep`` stores nothing, or the next run does not look.
    """
    before = await cancelled(conversation, 4)
    [kept] = await database(partial, conversation)
    assert (kept.version, kept.through_seq, kept.audit["parts"]) == (0, before.shown[2][1], 3)
    seen = await store.aversions(conversation.pk, attempts=True)
    assert SummaryStatus.PARTIAL not in {one.status for one in seen}

    after = Scribe()
    outcome = await compress(conversation, after)
    assert outcome.success
    assert after.shown[0][0] == before.shown[2][1] + 1
    assert not await database(partial, conversation)
    [version] = [row for row in await database(rows, conversation) if row.version == 1]
    assert cost(version) == 0.5 * (3 + len(after.shown))
    for seq in (1, before.shown[2][1]):
        assert any(seq in line["sources"] for line in version.ledger)


async def test_a_message_in_many_parts_is_gone_on_with_again_and_again() -> None:
    """Each run that is cancelled at its third part leaves the next to begin two parts further.

    Breaks when: what is kept of a rest is counted from that rest's beginning.
    """
    text = " ".join(f"w{number:05d}" for number in range(6000))
    talk = await database(new_conversation)
    await database(add, talk, "user", text)
    for _ in range(8):
        await database(add, talk, "assistant", "Well. " * 40)
        await database(add, talk, "user", "And so on. " * 20)
    begun = []
    for _ in range(3):
        reader = Reader(waits_at=3)
        run = asyncio.create_task(compress(talk, reader))
        await asyncio.wait_for(reader.began.wait(), 10)
        await services.cancel(talk.pk)
        await run
        begun.append(reader.words[0])
        end = reader.words[1]
    assert begun == sorted(set(begun))
    reader = Reader()
    assert (await compress(talk, reader)).success
    first = re.search(r"w\d{5}", reader.words[0])
    last = re.findall(r"w\d{5}", end)
    assert first is not None
    assert int(first[0][1:]) - int(last[-1][1:]) in {0, 1}


async def test_rules_are_bounded_as_they_come() -> None:
    """What is open is still shown to the last part, beside the strongest of the rules.

    Breaks when: they are bounded only when the whole draft is judged.
    """
    talk = await database(new_conversation)
    for seq in range(1, 121):
        wish = f"I prefer the gadget number {seq} in the lighter colour {7 * seq}. "
        rule = "Never paint the harbour wall in green. " if seq == 5 else ""
        role = "user" if seq % 2 else "assistant"
        await database(add, talk, role, f"{rule}m{seq} {wish}" + "word " * 40)
    scribe = Obedient()
    outcome = await compress(talk, scribe)
    assert (outcome.success, outcome.degraded) == (True, False)
    shown = scribe.notes[-1]
    assert "pending: the lamp is to be mended" in shown
    assert "Never paint the harbour wall in green" in shown
    assert shown.count("constraints:") < 20
    assert any(note.startswith("left out, there is no room: I prefer") for note in outcome.notes)


async def test_a_part_that_is_too_long_is_asked_for_in_shorter_ones(
    conversation: Conversation,
) -> None:
    """A tokenizer that counts a third more than the ruler: what is finished stays finished.

    Breaks when: the ladder gives a model up at its first part that is too long.
    """
    scribe = Heavy()
    outcome = await compress(conversation, scribe)
    assert (outcome.success, outcome.degraded, outcome.extracted) == (True, False, ())
    assert len(scribe.refused) == 1
    assert len(scribe.shown) > len(await parts_of(conversation))
    [version] = [row for row in await database(rows, conversation) if row.version]
    assert {seq for line in version.ledger for seq in line["sources"]} >= {1, version.through_seq}


async def test_a_model_that_finds_everything_too_long_is_asked_three_times(
    conversation: Conversation,
) -> None:
    """Breaks when: ``NARROWED`` does not bound the tries."""
    scribe = Heavy(most=0)
    outcome = await compress(conversation, scribe)
    assert (outcome.success, outcome.degraded) == (True, True)
    assert len(scribe.refused) == 3
    assert len(scribe.shown) == 0


async def test_finished_parts_do_not_close_the_breaker(conversation: Conversation) -> None:
    """Breaks when: a row of finished parts counts as a success."""
    broken = Scribe()
    broken.lasting = SummarizerError("Down.")
    for _ in range(2):
        await compress(conversation, broken, extract=False)
    await cancelled(conversation, 3, extract=False)
    assert (await store.abreaker(conversation.pk)).failures == 2


async def test_i14_parts_under_which_a_message_was_taken_back_are_dropped(
    conversation: Conversation,
) -> None:
    """I14. Breaks when: ``finished_parts`` does not compare the fingerprints."""
    await cancelled(conversation, 4)
    await database(supersede, conversation, 2)
    scribe = Scribe()
    with recorded_parts() as told:
        assert (await compress(conversation, scribe)).success
    assert scribe.shown[0][0] == 1
    assert told[0]["part"] == 1
    text = (await database(stored, conversation)).compressed_context
    [version] = [row for row in await database(rows, conversation) if row.version == 1]
    assert "m2 is told" not in text
    assert all(2 not in line["sources"] for line in version.ledger)


async def test_parts_of_another_focus_or_summary_are_not_gone_on_with(
    conversation: Conversation,
) -> None:
    """Breaks when: what was asked for, or the version it was made on, is not looked at."""
    await cancelled(conversation, 4, focus="the harbour", trigger=Trigger.MANUAL)
    scribe = Scribe()
    scribe.holds[1] = asyncio.Event()
    run = asyncio.create_task(compress(conversation, scribe))
    await asyncio.wait_for(scribe.began.wait(), 10)
    await services.cancel(conversation.pk)
    await run
    assert await database(partial, conversation)
    await services.edit(
        conversation.pk,
        "## Summary\n\nMine.\n",
        expected_version=0,
        author_id=None,
        counter=COUNTER,
        sizes=SIZES,
    )
    assert not await database(partial, conversation)


async def test_parts_outlive_a_run_that_asks_for_less(conversation: Conversation) -> None:
    """Breaks when: parts that reach further than the span are taken for changed ones."""
    before = await cancelled(conversation, 4)
    [kept] = await database(partial, conversation)
    broken = Scribe()
    broken.lasting = SummarizerError("Down.")
    less = before.shown[1][1]
    asked: dict[str, Any] = {"trigger": Trigger.MANUAL, "through_seq": less, "extract": False}
    assert not (await compress(conversation, broken, **asked)).success
    assert broken.shown[0][0] == 1
    after = Scribe()
    assert (await compress(conversation, after)).success
    assert after.shown[0][0] == kept.through_seq + 1


async def test_a_refused_draft_takes_its_parts_along(
    conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else every later run would come to the same. Breaks when: ``_note`` does not drop them."""
    late = Late(monkeypatch)
    outcome = await compress(conversation, late, extract=False)
    assert not outcome.success
    assert len(late.shown) > 3
    assert not await database(partial, conversation)


async def test_a_background_run_keeps_its_parts_and_extracts_none(
    conversation: Conversation,
) -> None:
    """The run that is waited for goes on behind them.

    Breaks when: the extract stands in for a part while nobody waits.
    """
    parts = await parts_of(conversation)
    scribe = Scribe()
    scribe.faults[parts[3][0] + 1] = ""
    prepared = await services.prepare(conversation.pk, engine=engine(scribe), sizes=SIZES)
    assert not prepared.success
    assert len(await database(partial, conversation)) == 1
    after = Scribe()
    assert (await compress(conversation, after)).success
    assert after.shown[0][0] == parts[2][1] + 1


async def test_parts_are_kept_by_who_holds_the_lease(conversation: Conversation) -> None:
    """Breaks when: ``keep_parts`` does not look at the token."""
    await cancelled(conversation, 3)
    base, items = await store.aread(conversation.pk, TRANSCRIPT)
    kept = await store.afinished_parts(
        base, items, prompt_versions={Scribe().summarizer.prompt_version}, focus=""
    )
    assert kept is not None
    covered = [item for item in items if item.seq <= kept.through_seq]
    for token, done in (("somebody", False), (None, True)):
        held = token or await store.aclaim(
            conversation.pk, trigger=Trigger.MANUAL, locks_input=False
        )
        assert held is not None
        stored_now = await store.akeep_parts(
            held, base, kept, covered, trigger=Trigger.MANUAL, focus="other"
        )
        assert stored_now is done
    [row] = await database(partial, conversation)
    assert row.audit["focus"] == "other"


async def test_the_progress_names_part_messages_and_time(conversation: Conversation) -> None:
    """Breaks when: a part begins untold, the time is told before a part was finished, or no line of
    a finished part is told.
    """
    parts = await parts_of(conversation)
    scribe = Scribe()
    scribe.faults[parts[1][0] + 1] = ""
    with recorded_parts() as told:
        await compress(conversation, scribe)
    assert [one["part"] for one in told] == sorted(one["part"] for one in told)
    assert {one["part"] for one in told} == set(range(1, told[0]["parts"] + 1))
    assert len({one["parts"] for one in told}) == 1
    assert all(one["first_seq"] <= one["through_seq"] for one in told)
    assert told[0]["seconds_left"] is None
    assert told[-1]["seconds_left"] >= 0.0
    # Each part begins with lines of the one before.
    assert told[0]["lines"] == ()
    assert all(one["lines"] for one in told if one["part"] > 1)
    written = [one["tokens_written"] for one in told]
    assert written == sorted(written)
    assert written[-1] > 0


class Reader(Scribe):
    """Notes what it reads of the words, and may never answer a call."""

    def __init__(self, *, waits_at: int = 0) -> None:
        super().__init__()
        self._waits_at = waits_at
        self.words: list[str] = []

    async def __call__(self, **asked: Any) -> Completion:
        self.words.append(" ".join(re.findall(r"w\d{1,5}", asked["user"])))
        if len(self.words) == self._waits_at:
            self.began.set()
            await asyncio.Event().wait()
        answer = await super().__call__(**asked)
        first, *_, last = self.words[-1].split() or ["", ""]
        told = json.loads(answer.text) | {"narrative": f"They told {first} and {last}."}
        return replace(answer, text=json.dumps(told))


class Obedient(Scribe):
    """Takes every wish for a rule, and notes one thing that is to be done."""

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[str] = []
        """As each call was shown them."""

    async def __call__(self, **asked: Any) -> Completion:
        self.notes.append(asked["user"].split("<message-")[0])
        answer = await super().__call__(**asked)
        told = json.loads(answer.text)
        for seq, said in re.findall(r'seq="(\d+)" role="user">\n([^<]*)', asked["user"]):
            told["add"] += [
                {"section": "constraints", "text": one, "sources": [int(seq)]}
                for one in re.findall(r"(?:I prefer|Never)[^.]*", said)
            ]
        if len(self.notes) == 1:
            lamp = {"section": "pending", "text": "the lamp is to be mended", "sources": [1]}
            told["add"].append(lamp)
        return replace(answer, text=json.dumps(told))


class Heavy(Scribe):
    """Its tokenizer makes more of a text, and it refuses what is above its window."""

    def __init__(self, most: int = WINDOW) -> None:
        super().__init__()
        self.most = most
        self.refused: list[int] = []

    async def __call__(self, **asked: Any) -> Completion:
        prompt = COUNTER.count(asked["system"]) + COUNTER.count(asked["user"])
        if (tokens := int(prompt * 1.35)) + asked["max_tokens"] > self.most:
            self.refused.append(tokens)
            error = SummarizerError("The prompt is too long.")
            error.too_long = 1.3 if self.most else 1.1
            raise error
        return await super().__call__(**asked)


class Late(Scribe):
    """When it has written, a draft must free more than any can."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self._monkeypatch = monkeypatch

    async def __call__(self, **asked: Any) -> Completion:
        self._monkeypatch.setattr(PlannerSettings, "frees", lambda *_: 100.0)
        self._monkeypatch.setattr(judge, "FALLBACK_FREES", 100.0)
        return await super().__call__(**asked)


class recorded_parts:
    """What the progress signal said."""

    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []

    def __enter__(self) -> list[dict[str, Any]]:
        signals.compression_progress.connect(self.receive)
        return self.told

    def __exit__(self, *_: object) -> None:
        signals.compression_progress.disconnect(self.receive)

    async def receive(self, **facts: Any) -> None:
        self.told.append(facts)
