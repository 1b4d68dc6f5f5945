"""The contract of compression as tests that any host can run against its own models.

A host mixes :class:`ContractTests` into a :class:`django.test.TransactionTestCase` and implements
how a conversation is started, and how a message is stored and taken back::

    class Contract(ContractTests, TransactionTestCase):
        transcript = MyTranscript()

        def start(self) -> int: ...
        def say(self, conversation_id: int, role: str, text: str) -> int: ...
        def take_back(self, conversation_id: int, seq: int) -> None: ...

The test database must be shared between threads: with SQLite name a file under ``TEST``.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, ParamSpec, TypeVar

from django.core import checks
from django.test import override_settings

from compression import conf, services, store
from compression.database import close_pools, in_database_thread
from compression.engine import Engine
from compression.exceptions import StaleSource, StaleVersion, SummarizerError
from compression.ports import Masks, Summarizer, Transcript
from compression.summarizers.prompt import PromptSummarizer, instructions
from compression.testing import CountingSummarizer, ScriptedSummarizer, says
from compression.tokens import CharacterCounter
from compression.types import Completion, Outcome, Sizes, SummaryStatus, Trigger

P = ParamSpec("P")
R = TypeVar("R")
COUNTER = CharacterCounter()
MESSAGES = 24
"""User and assistant alternate, so that each user message begins a turn of two messages."""
RULE = "Always answer in rhymes."
GOOD = says("They talked about words.", constraints={1: RULE})
WORST = says("Nothing is kept.")
PATIENCE = 30
"""Seconds to wait for a lease to expire."""


class ContractTests:
    """The rules that hold for every compressed conversation."""

    transcript: ClassVar[Transcript]
    masks: ClassVar[Masks | None] = None
    """None: the host masks nothing."""

    def start(self) -> int:
        """A new, empty conversation; its primary key."""
        raise NotImplementedError

    def say(self, conversation_id: int, role: str, text: str) -> int:
        """Store the next message of an ended turn; returns its ``seq``: 1, 2, 3 …"""
        raise NotImplementedError

    def take_back(self, conversation_id: int, seq: int) -> None:
        """Supersede or delete a message, as the host does when a person edits."""
        raise NotImplementedError

    @classmethod
    def tearDownClass(cls) -> None:
        """Close the connections of compression's threads, so that the database can be deleted."""
        close_pools()
        super().tearDownClass()  # type: ignore[misc]

    # Helpers

    def _talk(self) -> int:
        conversation_id = self.start()
        for number in range(1, MESSAGES + 1):
            role = "user" if number % 2 else "assistant"
            rule = f"{RULE} " if number == 1 else ""
            self.say(conversation_id, role, f"{rule}m{number} " + "word " * 60)
        return conversation_id

    async def _conversation(self) -> tuple[int, Sizes]:
        conversation_id = await _stored(self._talk)
        items = await _stored(self.transcript.items, conversation_id, after_seq=0)
        total = sum(item.tokens for item in items)
        # The budget is the size of the conversation, which is thus just full.
        return conversation_id, Sizes(window=total * 4 // 3, reserve=total // 3, calibration=1.0)

    def _engine(self, *summarizers: Summarizer) -> Engine:
        return Engine(transcript=self.transcript, counter=COUNTER, summarizers=summarizers)

    async def _compress(
        self, conversation_id: int, sizes: Sizes, summarizer: Summarizer
    ) -> Outcome:
        return await services.compress(
            conversation_id,
            engine=self._engine(summarizer),
            sizes=sizes,
            trigger=Trigger.THRESHOLD,
        )

    async def _compressed(self) -> tuple[int, Sizes]:
        conversation_id, sizes = await self._conversation()
        outcome = await self._compress(conversation_id, sizes, _scripted(GOOD))
        assert outcome.success, outcome.reason
        return conversation_id, sizes

    def _talk_with_tools(self) -> int:
        conversation_id = self.start()
        said = (("user", "Look."), ("tool", "a line\n" * 90), ("assistant", "Done."))
        for role, text in said * 5:
            self.say(conversation_id, role, text)
        return conversation_id

    # The contract

    def test_the_settings_are_complete(self) -> None:
        """Every system check of compression passes."""
        assert checks.run_checks(tags=["compression"]) == []

    async def test_a_compression_moves_the_boundary_and_loses_no_message(self) -> None:
        """Each message is summarised or in the tail, once; the originals stay as they were."""
        conversation_id, sizes = await self._conversation()
        before = await _stored(self.transcript.items, conversation_id, after_seq=0)
        outcome = await self._compress(conversation_id, sizes, CountingSummarizer())
        base = await store.aread_base(conversation_id)
        assert (outcome.success, outcome.version, base.version) == (True, 1, 1)
        tail = await _stored(self.transcript.items, conversation_id, after_seq=base.boundary)
        assert tail[0].role == "user"
        summarised = [f"m{number}" for number in range(1, base.boundary + 1)]
        assert " ".join(summarised) in base.text
        assert [item.seq for item in tail] == list(range(base.boundary + 1, MESSAGES + 1))
        after = await _stored(self.transcript.items, conversation_id, after_seq=0)
        assert list(after) == list(before)

    async def test_a_rule_outlives_a_summary_that_does_not_speak_of_it(self) -> None:
        """Constraints are kept word for word until they are lifted."""
        conversation_id, sizes = await self._compressed()
        for number in range(1, MESSAGES + 1):
            role = "user" if number % 2 else "assistant"
            await _stored(self.say, conversation_id, role, "more " * 60)
        outcome = await self._compress(conversation_id, sizes, _scripted(WORST))
        assert outcome.version == 2, outcome.reason
        assert RULE in (await store.aread_base(conversation_id)).text

    async def test_only_one_run_holds_the_lease_and_a_crash_gives_it_back(self) -> None:
        """A lease outlives a crashed run by its own length at most; a late draft has no effect."""
        conversation_id, _ = await self._conversation()
        short = {**_settings(), "LEASE_SECONDS": 0.1, "RENEW_SECONDS": 0.05}
        with override_settings(COMPRESSION=short):
            dead = await store.aclaim(conversation_id, trigger=Trigger.MANUAL, locks_input=True)
        assert dead is not None
        async with asyncio.timeout(PATIENCE):
            while (token := await _claim(conversation_id)) is None:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        assert await _claim(conversation_id) is None
        assert not await store.arenew(conversation_id, dead)
        assert not await store.arelease(conversation_id, dead)
        assert await store.arelease(conversation_id, token)
        assert not (await store.aread_state(conversation_id)).running

    async def test_a_bad_summariser_changes_nothing(self) -> None:
        """The failure is stored for the reviewer; summary and boundary stay the same."""
        conversation_id, sizes = await self._conversation()
        failing = ScriptedSummarizer()
        failing.enqueue(SummarizerError("The server is down."))
        outcome = await self._compress(conversation_id, sizes, failing)
        assert (outcome.success, outcome.code) == (False, SummarizerError.code)
        base = await store.aread_base(conversation_id)
        assert (base.text, base.boundary, base.version) == ("", 0, 0)
        kept = await _stored(store.versions, conversation_id, attempts=True)
        assert [one.status for one in kept] == [SummaryStatus.FAILED]

    async def test_a_message_that_comes_meanwhile_is_in_the_tail(self) -> None:
        """A message that arrives during a run is neither lost nor summarised unseen."""
        conversation_id, sizes = await self._conversation()
        waiting, go = _waiting()
        run = asyncio.create_task(self._compress(conversation_id, sizes, waiting))
        await waiting.started.wait()
        seq = await _stored(self.say, conversation_id, "user", "And this?")
        go.set()
        assert (await run).success
        base = await store.aread_base(conversation_id)
        tail = await _stored(self.transcript.items, conversation_id, after_seq=base.boundary)
        assert tail[-1].seq == seq

    async def test_a_late_draft_loses_to_a_message_taken_back(self) -> None:
        """Messages that a person took back never return in a summary."""
        conversation_id, sizes = await self._conversation()
        waiting, go = _waiting()
        run = asyncio.create_task(self._compress(conversation_id, sizes, waiting))
        await waiting.started.wait()
        await _stored(self.take_back, conversation_id, 3)
        go.set()
        outcome = await run
        assert (outcome.success, outcome.code) == (False, StaleSource.code)
        assert (await store.aread_base(conversation_id)).version == 0

    async def test_undo_and_redo_walk_through_the_versions(self) -> None:
        """Every step is a version of its own; nothing is overwritten."""
        conversation_id, _ = await self._compressed()
        first = await store.aread_base(conversation_id)
        undone = await services.undo(conversation_id, transcript=self.transcript)
        assert (await store.aread_base(conversation_id)).boundary == 0
        redone = await services.redo(conversation_id, transcript=self.transcript)
        again = await store.aread_base(conversation_id)
        assert (undone, redone) == (2, 3)
        assert (again.text, again.boundary) == (first.text, first.boundary)

    async def test_a_version_does_not_come_back_over_a_message_taken_back(self) -> None:
        """Its fingerprint shows that its source has changed."""
        conversation_id, _ = await self._compressed()
        await services.undo(conversation_id, transcript=self.transcript)
        await _stored(self.take_back, conversation_id, 3)
        try:
            await services.redo(conversation_id, transcript=self.transcript)
        except StaleSource:
            assert (await store.aread_base(conversation_id)).text == ""
            return
        raise AssertionError("a stale version came back")

    async def test_a_batch_of_masks_is_put_on_and_taken_off_as_one(self) -> None:
        """Masks change what the model sees, once; no text, and nothing that a person unmasked."""
        if self.masks is None:
            return
        conversation_id = await _stored(self._talk_with_tools)
        before = await _stored(self.transcript.items, conversation_id, after_seq=0)
        sizes = Sizes(window=2 * sum(item.tokens for item in before), reserve=0, calibration=1.0)
        engine = Engine(transcript=self.transcript, masks=self.masks, counter=COUNTER)
        mask = partial(services.mask, conversation_id, engine=engine, sizes=sizes)
        change = await mask()
        assert change is not None
        after = await _stored(self.transcript.items, conversation_id, after_seq=0)
        # The last six messages are left alone.
        assert [item.seq for item in after if item.masked] == list(change.seqs) == [2, 5, 8]
        assert [item.text for item in after] == [item.text for item in before]
        saved = sum(item.tokens for item in before) - sum(item.tokens for item in after)
        assert saved == change.tokens_freed > 0
        assert await mask() is None
        await services.unmask(conversation_id, change.batch, masks=self.masks)
        undone = await _stored(self.transcript.items, conversation_id, after_seq=0)
        assert [item.tokens for item in undone] == [item.tokens for item in before]
        assert [item.seq for item in undone if item.unmasked and not item.masked] == [2, 5, 8]
        assert await mask() is None

    async def test_a_persons_edit_wins_over_a_late_draft_and_stays(self) -> None:
        """An edit needs no lease, and no machine changes its lines afterwards."""
        conversation_id, sizes = await self._compressed()
        for number in range(1, MESSAGES + 1):
            role = "user" if number % 2 else "assistant"
            await _stored(self.say, conversation_id, role, "more " * 60)
        waiting, go = _waiting()
        run = asyncio.create_task(self._compress(conversation_id, sizes, waiting))
        await waiting.started.wait()
        base = await store.aread_base(conversation_id)
        await self._edit(conversation_id, f"{base.text}\n\n## Context\n\n- The cat is Tom.", sizes)
        go.set()
        assert (await run).code == StaleVersion.code
        outcome = await self._compress(conversation_id, sizes, _scripted(WORST))
        assert outcome.success, outcome.reason
        assert "The cat is Tom." in (await store.aread_base(conversation_id)).text

    async def _edit(self, conversation_id: int, text: str, sizes: Sizes) -> None:
        await services.edit(
            conversation_id,
            text,
            expected_version=(await store.aread_base(conversation_id)).version,
            author_id=None,
            counter=COUNTER,
            sizes=sizes,
        )

    async def test_a_prepared_summary_is_applied_without_a_call(self) -> None:
        """A draft prepared in the background is applied at once, by one conditional UPDATE."""
        conversation_id, sizes = await self._conversation()
        summarizer = _scripted(GOOD)
        engine = self._engine(summarizer)
        prepared = await services.prepare(conversation_id, engine=engine, sizes=sizes)
        assert (prepared.success, prepared.version) == (True, 0)
        applied = await services.apply_ready(conversation_id, engine=engine, sizes=sizes)
        assert applied is not None
        assert applied.version == 1
        assert len(summarizer.calls) == 1

    async def test_finished_parts_outlive_a_cancellation_and_are_no_version(self) -> None:
        """Finished parts are reused by the next run over the same messages, then deleted."""
        conversation_id, sizes = await self._conversation()
        before = await self._cancelled(conversation_id, sizes)
        seen = await _stored(store.versions, conversation_id, attempts=True)
        assert SummaryStatus.PARTIAL not in {one.status for one in seen}
        base = await store.aread_base(conversation_id)
        assert (base.text, base.boundary, base.version) == ("", 0, 0)
        items = await _stored(self.transcript.items, conversation_id, after_seq=0)
        kept = await store.afinished_parts(
            base, items, prompt_versions={before.summarizer.prompt_version}, focus=""
        )
        assert kept is not None
        assert (kept.parts, kept.through_seq) == (2, before.shown[1][1])

        after = _Scribe()
        outcome = await self._compress(conversation_id, sizes, after.summarizer)
        assert outcome.success, outcome.reason
        assert after.shown[0][0] == before.shown[1][1] + 1
        base = await store.aread_base(conversation_id)
        told = [f"m{seq} is told" in base.text for seq in range(1, base.boundary + 1)]
        assert all(told), base.text
        assert not await store.adrop_parts(conversation_id)

    async def test_parts_under_a_message_taken_back_are_not_gone_on_with(self) -> None:
        """A message that a person took back does not return in a finished part either."""
        conversation_id, sizes = await self._conversation()
        await self._cancelled(conversation_id, sizes)
        await _stored(self.take_back, conversation_id, 2)
        after = _Scribe()
        outcome = await self._compress(conversation_id, sizes, after.summarizer)
        assert outcome.success, outcome.reason
        assert after.shown[0][0] == 1
        assert "m2 is told" not in (await store.aread_base(conversation_id)).text

    async def _cancelled(self, conversation_id: int, sizes: Sizes) -> _Scribe:
        """The requests of a run that was cancelled in the middle of its third part."""
        scribe = _Scribe(waits_at=3)
        run = asyncio.create_task(self._compress(conversation_id, sizes, scribe.summarizer))
        async with asyncio.timeout(PATIENCE):
            await scribe.waiting.wait()
        await services.cancel(conversation_id)
        assert not (await run).success
        return scribe


class _Scribe:
    """A model that records the messages it is shown, a few per call."""

    def __init__(self, *, waits_at: int = 0) -> None:
        """``waits_at``: number of the call, from 1, that is never answered."""
        self.shown: list[tuple[int, int]] = []
        """First and last seq of each call."""
        self.waiting = asyncio.Event()
        self._waits_at = waits_at

    async def __call__(self, *, user: str, **asked: Any) -> Completion:
        seqs = [int(seq) for seq in re.findall(r'<message-\w+ seq="(\d+)"', user)]
        self.shown.append((seqs[0], seqs[-1]))
        if len(self.shown) == self._waits_at:
            self.waiting.set()
            await asyncio.Event().wait()
        noted = [
            {"section": "context", "text": f"m{seq} is told", "sources": [seq]} for seq in seqs
        ]
        answer = {"narrative": f"They told m{seqs[0]} to m{seqs[-1]}.", "add": noted}
        return Completion(text=json.dumps(answer), finish_reason="stop")

    @property
    def summarizer(self) -> PromptSummarizer:
        """A summariser with room for about five messages in each part."""
        return PromptSummarizer(
            self,
            COUNTER,
            window=COUNTER.count(instructions()) + 1400,
            max_output_tokens=400,
            label="scribe",
        )


def _scripted(delta: Any) -> ScriptedSummarizer:
    summarizer = ScriptedSummarizer()
    summarizer.enqueue(delta)
    return summarizer


def _waiting() -> tuple[ScriptedSummarizer, asyncio.Event]:
    """A summariser that answers when the event is set."""
    summarizer, go = ScriptedSummarizer(), asyncio.Event()
    summarizer.enqueue(GOOD, wait=go)
    return summarizer, go


async def _claim(conversation_id: int) -> str | None:
    return await store.aclaim(conversation_id, trigger=Trigger.MANUAL, locks_input=True)


def _settings() -> dict[str, Any]:
    settings = conf.settings()
    return {"CONVERSATION": settings.conversation, "SUMMARY": settings.summary}


def _unit(work: Callable[[], Any]) -> Any:
    """Run the host's function in a database thread."""
    return work()


_aunit = in_database_thread(_unit)


async def _stored(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    result: R = await _aunit(partial(function, *args, **kwargs))
    return result
