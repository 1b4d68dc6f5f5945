"""The helpers that hosts test with keep the contracts of the real ones."""

from __future__ import annotations

import asyncio

import pytest

from compression.exceptions import SummarizerError
from compression.ledger.ledger import Delta
from compression.summarizers.prompt import PromptSummarizer
from compression.testing import (
    CountingSummarizer,
    ListTranscript,
    RealModelCalled,
    ScriptedSummarizer,
    forbid_real_models,
    says,
)
from compression.tokens import CharacterCounter
from compression.types import Completion, Draft, Item, Ledger, Section

ITEMS = (
    Item(seq=1, role="user", text="m1 always answer in French", tokens=8),
    Item(seq=2, role="assistant", text="m2 d'accord", tokens=4),
)


async def ignore(tokens: int) -> None:
    """Nobody listens."""


async def test_it_works() -> None:
    summarizer = ScriptedSummarizer()
    summarizer.enqueue(says("They met.", constraints={1: "always answer in French"}))

    draft = await summarizer.draft(ITEMS, Ledger(), focus="French", on_tokens=ignore)

    [entry] = draft.ledger.entries
    assert (entry.section, entry.text, entry.sources) == (
        Section.CONSTRAINTS,
        "always answer in French",
        (1,),
    )
    assert draft.ledger.narrative[0].through_seq == 2
    [call] = summarizer.calls
    assert (call.items, call.focus) == (ITEMS, "French")


async def test_it_raises_what_was_enqueued_and_when_nothing_was() -> None:
    summarizer = ScriptedSummarizer()
    summarizer.enqueue(SummarizerError("down"))
    for message in ("down", "Nothing was enqueued"):
        with pytest.raises(SummarizerError, match=message):
            await summarizer.draft(ITEMS, Ledger(), focus="", on_tokens=ignore)


async def test_it_gives_a_whole_draft_unchanged_and_reports_tokens() -> None:
    summarizer = ScriptedSummarizer()
    whole = Draft(ledger=Ledger(), model="any", prompt_version="1")
    summarizer.enqueue(whole, tokens=(1, 20))
    heard: list[int] = []

    async def hear(tokens: int) -> None:
        heard.append(tokens)

    assert await summarizer.draft(ITEMS, Ledger(), focus="", on_tokens=hear) is whole
    assert heard == [1, 20]


async def test_a_waiting_call_can_be_cancelled() -> None:
    summarizer = ScriptedSummarizer()
    summarizer.enqueue(Delta(narrative="never"), wait=asyncio.Event())
    call = asyncio.create_task(summarizer.draft(ITEMS, Ledger(), focus="", on_tokens=ignore))
    await summarizer.started.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert summarizer.cancelled == 1


async def test_the_counting_one_lists_each_marker_with_its_source() -> None:
    draft = await CountingSummarizer().draft(ITEMS, Ledger(), focus="", on_tokens=ignore)
    [entry] = draft.ledger.entries
    assert (entry.text, entry.sources) == ("m1 m2", (1, 2))


def test_the_transcript_in_memory_cuts_where_it_is_told() -> None:
    transcript = ListTranscript({7: list(ITEMS)})
    assert transcript.items(7, after_seq=1) == [ITEMS[1]]
    assert transcript.items(7, after_seq=0, through_seq=1) == [ITEMS[0]]
    assert transcript.items(8, after_seq=0) == []


async def test_no_test_reaches_a_real_model_unseen() -> None:
    """Neither for a whole draft nor for a part of one, as a run asks for.

    Breaks when: ``forbid_real_models`` guards ``draft`` alone, or raises what a run survives.
    """

    async def ask(**asked: object) -> Completion:
        raise AssertionError("It was asked.")

    real = PromptSummarizer(ask, CharacterCounter(), window=8000, max_output_tokens=900, label="a")
    plan = real.plan(ITEMS, Ledger(), focus="")
    with forbid_real_models():
        [chunk] = plan.chunks
        part = real.part(plan, chunk, Ledger(), focus="", on_tokens=ignore, most_calls=1)
        whole = real.draft(ITEMS, Ledger(), focus="", on_tokens=ignore)
        for asking in (part, whole):
            with pytest.raises(RealModelCalled) as raised:
                await asking
            assert not isinstance(raised.value, Exception)
