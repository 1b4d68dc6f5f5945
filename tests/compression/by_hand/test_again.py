"""A summary written anew: of the same messages, with what a person did, and never over an edit."""

from __future__ import annotations

import asyncio

import pytest

from chatapp.models import Conversation
from compression import services, store
from compression.exceptions import (
    CompressionRunning,
    NothingToCompress,
    StaleSource,
    StaleVersion,
)
from compression.ledger.lines import Act, LineChange, lines_of
from compression.testing import ScriptedSummarizer, says
from compression.types import Origin, Outcome, Section, SummaryStatus, Trigger
from tests.compression.hosting import (
    COUNTER,
    SIZES,
    TRANSCRIPT,
    add,
    database,
    new_conversation,
    stored,
    supersede,
)
from tests.compression.test_services import GOOD, LONG, compress, engine, scripted, versions

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.elsewhere]

BETTER = says("They agreed on words.")


@pytest.fixture
async def conversation() -> Conversation:
    """Thirty messages, of which a model has summarised the older ones."""
    made = await database(new_conversation, **LONG)
    assert (await compress(made, scripted(GOOD))).success
    return made


async def again(
    conversation: Conversation, version: int, *summarizers: ScriptedSummarizer
) -> Outcome:
    return await services.compress_again(
        conversation.pk,
        version,
        engine=engine(*(summarizers or (scripted(BETTER),))),
        sizes=SIZES,
    )


async def edited(conversation: Conversation, version: int, *changes: LineChange) -> int:
    return await services.edit_lines(
        conversation.pk,
        changes,
        expected_version=version,
        author_id=None,
        counter=COUNTER,
        sizes=SIZES,
    )


async def test_it_takes_in_the_same_messages_and_can_be_undone(conversation: Conversation) -> None:
    """Breaks when: the run goes on from the present summary, so that it takes in what follows."""
    before = await database(stored, conversation)
    await database(add, conversation, "user")
    summarizer = scripted(BETTER)
    outcome = await again(conversation, 1, summarizer)
    assert (outcome.success, outcome.version) == (True, 2)
    row = await database(stored, conversation)
    assert row.compressed_through == before.compressed_through
    assert "They agreed on words." in row.compressed_context
    assert "They talked about words." not in row.compressed_context
    [call] = summarizer.calls
    assert [item.seq for item in call.items] == list(range(1, row.compressed_through + 1))
    new, old = await versions(conversation)
    assert (new.first_seq, new.message_count) == (old.first_seq, old.message_count)
    assert (new.status, old.status) == (SummaryStatus.ACTIVE, SummaryStatus.SUPERSEDED)
    assert await services.undo(conversation.pk, transcript=TRANSCRIPT, author_id=None) == 3
    assert (await database(stored, conversation)).compressed_context == before.compressed_context


async def test_i13_what_a_person_did_since_is_kept(conversation: Conversation) -> None:
    """I13: a line that was added, one that was pinned, and one that was taken out.

    Breaks when: the ledger is the earlier version's alone.
    """
    _, constraint, *_ = lines_of((await store.aread_base(conversation.pk)).ledger)
    rule = LineChange(act=Act.ADD, text="Never shout.", section=Section.CONSTRAINTS)
    assert await edited(conversation, 1, rule) == 2
    assert await edited(conversation, 2, LineChange(act=Act.STRIKE, key=constraint.key)) == 3
    outcome = await again(conversation, 3)
    assert outcome.success
    base = await store.aread_base(conversation.pk)
    assert base.version == 4
    assert "Never shout." in base.text
    assert "They agreed on words." in base.text
    struck = [one for one in base.ledger.entries if one.text == constraint.text]
    assert [(one.origin, one.state) for one in struck] == [(Origin.PERSON, "lifted")]


async def test_c11_an_edit_while_it_runs_stays_and_the_draft_is_dropped(
    conversation: Conversation,
) -> None:
    """C11: the run ends with a sentence, and what the person wrote is what is there.

    Breaks when: the draft is applied whatever version is active.
    """
    summarizer = ScriptedSummarizer()
    held = asyncio.Event()
    summarizer.enqueue(BETTER, wait=held)
    run = asyncio.create_task(again(conversation, 1, summarizer))
    await summarizer.started.wait()
    rule = LineChange(act=Act.ADD, text="Never shout.", section=Section.CONSTRAINTS)
    assert await edited(conversation, 1, rule) == 2
    held.set()
    outcome = await run
    assert (outcome.success, outcome.code) == (False, StaleVersion.code)
    assert "the new draft was dropped" in outcome.reason
    row = await database(stored, conversation)
    assert (row.compression_version, row.compression_token) == (2, "")
    assert "Never shout." in row.compressed_context
    assert "They talked about words." in row.compressed_context


async def test_a_failure_changes_nothing(conversation: Conversation) -> None:
    """Breaks when: the present summary is taken away before there is another one."""
    before = await database(stored, conversation)
    outcome = await again(conversation, 1, scripted(RuntimeError("no")))
    assert not outcome.success
    after = await database(stored, conversation)
    assert after.compressed_context == before.compressed_context
    assert (after.compression_version, after.compressed_through) == (1, before.compressed_through)


async def test_of_a_later_version_only_its_own_messages_are_read(
    conversation: Conversation,
) -> None:
    """Breaks when: the run begins with the ledger or the boundary of the present version."""
    first = (await database(stored, conversation)).compressed_through
    for number in range(30):
        await database(add, conversation, "assistant" if number % 2 else "user")
    assert (await compress(conversation, scripted(says("More words.")))).version == 2
    summarizer = scripted(BETTER)
    assert (await again(conversation, 2, summarizer)).version == 3
    [call] = summarizer.calls
    assert call.items[0].seq == first + 1
    text = (await database(stored, conversation)).compressed_context
    assert "They talked about words." in text
    assert "More words." not in text


async def test_it_is_refused_where_there_is_nothing_to_write_anew(
    conversation: Conversation,
) -> None:
    with pytest.raises(StaleVersion):
        await again(conversation, 7)
    await services.clear(conversation.pk, author_id=None, transcript=TRANSCRIPT)
    with pytest.raises(NothingToCompress):
        await again(conversation, 2)
    # Nobody holds the lease after a refusal.
    assert (await database(stored, conversation)).compression_token == ""


async def test_only_one_run_at_a_time(conversation: Conversation) -> None:
    token = await store.aclaim(conversation.pk, trigger=Trigger.MANUAL, locks_input=False)
    assert token
    with pytest.raises(CompressionRunning):
        await again(conversation, 1)


async def test_i14_not_on_an_earlier_summary_of_changed_messages(
    conversation: Conversation,
) -> None:
    """I14: what was taken back does not come back by way of the version before.

    Breaks when: the version before is not compared with its messages.
    """
    for number in range(30):
        await database(add, conversation, "assistant" if number % 2 else "user")
    assert (await compress(conversation, scripted(says("More words.")))).version == 2
    await database(supersede, conversation, 1)
    with pytest.raises(StaleSource):
        await again(conversation, 2)
