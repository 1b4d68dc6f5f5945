"""Previews: written and stored, applied by a person, and never to anything else."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from chatapp.models import Conversation
from compression import services, store
from compression.exceptions import (
    CompressionRunning,
    NothingToCompress,
    StaleSource,
    StaleVersion,
    SummaryInvalid,
)
from compression.ledger.lines import Act, LineChange, lines_of
from compression.store import previews
from compression.testing import CountingSummarizer, ScriptedSummarizer
from compression.types import Origin, Outcome, Section, SummaryStatus, Trigger
from tests.compression.hosting import (
    SIZES,
    TRANSCRIPT,
    add,
    database,
    new_conversation,
    rows,
    stored,
    supersede,
)
from tests.compression.test_services import GOOD, LONG, compress, engine, scripted, versions

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.elsewhere]


@pytest.fixture
async def conversation() -> Conversation:
    return await database(new_conversation, **LONG)


async def shown(conversation: Conversation, *summarizers: Any, **options: Any) -> Outcome:
    made = engine(*(summarizers or (scripted(GOOD),)))
    return await services.preview(conversation.pk, engine=made, sizes=SIZES, **options)


async def held(conversation: Conversation) -> store.Preview:
    found = await store.apreview(conversation.pk)
    assert found is not None
    return found


async def applied(conversation: Conversation, preview_id: int, *changes: LineChange) -> Outcome:
    return await services.apply_preview(
        conversation.pk, preview_id, changes, engine=engine(), sizes=SIZES, author_id=None
    )


async def test_it_waits_changes_nothing_and_is_applied_once(conversation: Conversation) -> None:
    """Breaks when: the run applies its draft, or applying leaves the preview's row as it is."""
    outcome = await shown(conversation)
    assert (outcome.success, outcome.version, outcome.trigger) == (True, 0, Trigger.PREVIEW)
    row = await database(stored, conversation)
    assert (row.compression_version, row.compressed_through, row.compression_token) == (0, 0, "")
    waiting = await held(conversation)
    assert waiting.current
    assert await store.aready(conversation.pk) is None

    done = await asyncio.gather(
        *(applied(conversation, waiting.id) for _ in range(3)), return_exceptions=True
    )
    versions_made = [one.version for one in done if isinstance(one, Outcome)]
    assert versions_made == [1]
    assert sum(isinstance(one, StaleVersion) for one in done) == 2
    row = await database(stored, conversation)
    assert (row.compression_version, row.compressed_context) == (1, waiting.summary.text)
    assert row.compressed_through == waiting.summary.through_seq
    assert await store.apreview(conversation.pk) is None
    assert await services.undo(conversation.pk, transcript=TRANSCRIPT) == 2
    assert (await database(stored, conversation)).compressed_context == ""


async def test_lines_taken_out_pinned_and_added_are_part_of_the_one_version(
    conversation: Conversation,
) -> None:
    """Breaks when: the changes are applied to what was stored before, or make a second version."""
    await shown(conversation)
    waiting = await held(conversation)
    story, rule = lines_of(waiting.summary.ledger)[:2]
    with pytest.raises(SummaryInvalid):
        await applied(conversation, waiting.id, LineChange(act=Act.STRIKE, key="e99"))
    changes = [
        LineChange(act=Act.PIN, key=story.key),
        LineChange(act=Act.STRIKE, key=rule.key),
        LineChange(act=Act.ADD, text="Never say banana.", section=Section.CONSTRAINTS),
    ]
    assert (await applied(conversation, waiting.id, *changes)).version == 1
    base = await store.aread_base(conversation.pk)
    assert rule.text not in base.text
    assert "Never say banana." in base.text
    assert base.ledger.narrative[0].origin is Origin.PERSON
    (made,) = await store.aversions(conversation.pk)
    assert (made.trigger, made.text) == (Trigger.MANUAL, base.text)


async def test_one_of_an_earlier_version_or_form_is_never_applied(
    conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Breaks when: ``apply_preview`` takes the row without asking what it was made on."""
    await shown(conversation)
    waiting = await held(conversation)
    monkeypatch.setattr(previews, "FORM", 2)
    assert not (await held(conversation)).current
    with pytest.raises(StaleVersion, match="make the preview anew"):
        await applied(conversation, waiting.id)
    monkeypatch.undo()

    await compress(conversation, scripted(GOOD))
    after = await held(conversation)
    assert (after.id, after.current) == (waiting.id, False)
    with pytest.raises(StaleVersion, match="make the preview anew"):
        await applied(conversation, waiting.id)
    assert await services.apply_waiting(conversation.pk, engine=engine(), sizes=SIZES) is None
    assert (await database(stored, conversation)).compression_version == 1


async def test_i14_a_message_taken_back_meanwhile_is_not_brought_back(
    conversation: Conversation,
) -> None:
    """I14. Breaks when: ``apply_preview`` leaves out require_source()."""
    await shown(conversation)
    waiting = await held(conversation)
    await database(supersede, conversation, 3)
    with pytest.raises(StaleSource):
        await applied(conversation, waiting.id)
    assert (await database(stored, conversation)).compressed_context == ""
    assert (await held(conversation)).id == waiting.id


async def test_one_at_a_time_and_discarded_for_good(conversation: Conversation) -> None:
    """Breaks when: a second preview is stored beside the first."""
    await shown(conversation)
    first = await held(conversation)
    await shown(conversation, scripted(GOOD), through_seq=10)
    second = await held(conversation)
    assert second.id != first.id
    assert second.summary.through_seq == 10
    await services.discard_preview(conversation.pk, second.id)
    for gone in (first, second):
        with pytest.raises(StaleVersion):
            await applied(conversation, gone.id)
        with pytest.raises(StaleVersion):
            await services.discard_preview(conversation.pk, gone.id)
    assert {one.status for one in await database(rows, conversation)} == {SummaryStatus.DISCARDED}
    assert not await versions(conversation) or not await store.aversions(conversation.pk)


async def test_while_it_is_written_the_input_is_free_and_nothing_else_runs(
    conversation: Conversation,
) -> None:
    summarizer, goes_on = ScriptedSummarizer(), asyncio.Event()
    summarizer.enqueue(GOOD, wait=goes_on)
    run = asyncio.create_task(shown(conversation, summarizer))
    await summarizer.started.wait()
    state = await store.aread_state(conversation.pk)
    assert (state.running, state.locks_input, state.trigger) == (True, False, Trigger.PREVIEW)
    with pytest.raises(CompressionRunning):
        await compress(conversation, scripted(GOOD))
    goes_on.set()
    assert (await run).success


async def test_a_range_keeps_what_stands_before_it_word_for_word(
    conversation: Conversation,
) -> None:
    """The messages before it are counted as pinned; with too many of them it frees nothing.

    Breaks when: ``quoted_before`` is left out of the run.
    """
    whole = await shown(conversation, scripted(GOOD), through_seq=24)
    assert (await held(conversation)).from_seq is None
    part = await shown(conversation, scripted(GOOD), from_seq=5, through_seq=24)
    waiting = await held(conversation)
    assert (waiting.from_seq, waiting.summary.first_seq, waiting.summary.through_seq) == (5, 1, 24)
    assert part.tokens_after > whole.tokens_after
    with pytest.raises(NothingToCompress):
        await shown(conversation, scripted(GOOD), from_seq=24, through_seq=24)


async def test_those_nobody_asked_for_are_written_once_and_not_soon_after_a_refusal(
    conversation: Conversation,
) -> None:
    """Breaks when: a discarded preview is written again after each turn."""
    summarizer = CountingSummarizer()

    async def ahead() -> Outcome | None:
        made = engine(summarizer)
        return await services.preview_ahead(conversation.pk, engine=made, sizes=SIZES)

    assert await ahead() is not None
    assert await ahead() is None
    await services.discard_preview(conversation.pk, (await held(conversation)).id)
    assert await ahead() is None
    assert len(summarizer.calls) == 1
    for number in range(6):
        await database(add, conversation, "assistant" if number % 2 else "user")
    assert await ahead() is not None
    taken = await services.apply_waiting(conversation.pk, engine=engine(), sizes=SIZES)
    assert taken is not None
    assert (taken.version, taken.trigger) == (1, Trigger.THRESHOLD)
    assert (await database(stored, conversation)).compressed_context
