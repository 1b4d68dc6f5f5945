"""What the screen says that a summary stands for."""

from __future__ import annotations

from functools import partial

import pytest

from chatapp.conversations.summaries.compressions import compression_view
from chatapp.models import Conversation
from compression import services, store
from compression.engine import Engine
from compression.testing import CountingSummarizer
from compression.types import Trigger
from tests.compression.hosting import (
    COUNTER,
    SIZES,
    TRANSCRIPT,
    add,
    database,
    expire_lease,
    new_conversation,
    stored,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage]


async def compressed_twice() -> Conversation:
    conversation = await database(new_conversation, 20)
    engine = Engine(transcript=TRANSCRIPT, counter=COUNTER, summarizers=(CountingSummarizer(),))
    for _ in range(2):
        outcome = await services.compress(
            conversation.pk, engine=engine, sizes=SIZES, trigger=Trigger.MANUAL
        )
        assert outcome.success, outcome.reason
        for number in range(20):
            await database(add, conversation, "assistant" if number % 2 else "user")
    return await database(stored, conversation)


async def test_it_counts_every_message_above_the_boundary() -> None:
    """Breaks when: only the active version's own span is counted."""
    conversation = await compressed_twice()
    view = await database(compression_view, conversation)
    assert view.version == 2
    assert view.message_count == view.boundary == conversation.compressed_through
    assert view.tokens_before > view.tokens_after > 0


async def test_an_edit_stands_for_what_it_edited() -> None:
    conversation = await compressed_twice()
    before = await database(compression_view, conversation)
    await services.edit(
        conversation.pk,
        conversation.compressed_context + "\n\n## Decisions\n- We meet on Monday.\n",
        expected_version=2,
        author_id=conversation.owner_id,
        counter=COUNTER,
        sizes=SIZES,
    )
    after = await database(compression_view, await database(stored, conversation))
    assert (after.message_count, after.tokens_before) == (
        before.message_count,
        before.tokens_before,
    )


async def test_it_is_known_what_undo_takes_back() -> None:
    """Breaks when: a version that was restored is taken for the act of restoring."""
    conversation = await compressed_twice()

    async def undoes() -> str:
        view = await database(compression_view, await database(stored, conversation))
        assert view.edited is (view.undoes == "edit")
        return view.undoes

    assert await undoes() == "manual"
    await services.edit(
        conversation.pk,
        conversation.compressed_context + "\n\n## Decisions\n- We meet on Monday.\n",
        expected_version=2,
        author_id=conversation.owner_id,
        counter=COUNTER,
        sizes=SIZES,
    )
    assert await undoes() == "edit"
    await services.clear(conversation.pk, transcript=TRANSCRIPT)
    assert await undoes() == "clear"
    for expected in ("edit", "manual", "manual", ""):
        await services.undo(conversation.pk, transcript=TRANSCRIPT)
        assert await undoes() == expected
    await services.redo(conversation.pk, transcript=TRANSCRIPT)
    assert await undoes() == "manual"


@pytest.mark.parametrize("known", [True, False], ids=["at-the-next-start", "by-expiry"])
@pytest.mark.parametrize("trigger", [Trigger.MANUAL, Trigger.BACKGROUND])
async def test_what_somebody_asked_for_and_a_dead_process_left_is_said(
    trigger: Trigger, known: bool
) -> None:
    """Until another run begins, or the reader has dismissed it.

    Breaks when: the next start gives every lease back without a trace.
    """
    conversation = await database(new_conversation, 20)

    async def interrupted() -> bool:
        row = await database(stored, conversation)
        view = await database(compression_view, row)
        assert not view.running
        return view.interrupted

    for _ in range(2):
        assert await store.aclaim(conversation.pk, trigger=trigger, locks_input=True)
        await database(store.release_all if known else partial(expire_lease, conversation))
        assert await interrupted() is (trigger is Trigger.MANUAL)
        assert await services.cancel(conversation.pk)
        assert not await interrupted()
    assert await store.aclaim(conversation.pk, trigger=trigger, locks_input=True)
    await database(store.release_all if known else partial(expire_lease, conversation))
    engine = Engine(transcript=TRANSCRIPT, counter=COUNTER, summarizers=(CountingSummarizer(),))
    await services.compress(conversation.pk, engine=engine, sizes=SIZES, trigger=Trigger.MANUAL)
    assert not await interrupted()


async def test_undo_and_redo_are_offered_when_they_can_be_had() -> None:
    """Breaks when: undo is offered for any version, also for one that stands for none."""
    conversation = await compressed_twice()
    first = await database(compression_view, conversation)
    assert (first.can_undo, first.can_redo) == (True, False)
    for _ in range(2):
        await services.undo(conversation.pk, transcript=TRANSCRIPT)
    none_left = await database(compression_view, await database(stored, conversation))
    assert (none_left.can_undo, none_left.can_redo) == (False, True)
    assert none_left.redoes == "manual"
    assert none_left.message_count == 0
    await services.redo(conversation.pk, transcript=TRANSCRIPT)
    again = await database(compression_view, await database(stored, conversation))
    assert (again.can_undo, again.can_redo) == (True, True)
    assert 0 < again.message_count < first.message_count
