"""A line changed is a version, made against the version that the person has read."""

from __future__ import annotations

import pytest

from compression import services, store
from compression.exceptions import StaleVersion, SummaryInvalid
from compression.ledger.lines import Act, LineChange, lines_of
from compression.types import Section, Trigger
from tests.compression.hosting import COUNTER, SIZES, TRANSCRIPT, database, new_conversation
from tests.compression.test_services import GOOD, LONG, compress, scripted

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.elsewhere]


async def changed(conversation_id: int, change: LineChange, version: int) -> int:
    return await services.edit_lines(
        conversation_id,
        [change],
        expected_version=version,
        author_id=None,
        counter=COUNTER,
        sizes=SIZES,
    )


async def test_each_change_is_a_version_and_is_undone_as_one() -> None:
    """Breaks when: ``edit_lines`` does not compare versions, or changes the version in place."""
    conversation = await database(new_conversation, **LONG)
    await compress(conversation, scripted(GOOD))
    base = await store.aread_base(conversation.pk)
    rule = next(line for line in lines_of(base.ledger) if line.section is Section.CONSTRAINTS)
    strike = LineChange(act=Act.STRIKE, key=rule.key)
    assert await changed(conversation.pk, strike, 1) == 2
    after = await store.aread_base(conversation.pk)
    assert rule.markdown not in after.text
    assert after.boundary == base.boundary

    # A page that was read before, and a second press of the same button.
    with pytest.raises(StaleVersion) as refused:
        await changed(conversation.pk, strike, 1)
    assert refused.value.fields == {"current_version": 2}
    assert (await store.aread_base(conversation.pk)).version == 2

    with pytest.raises(SummaryInvalid, match="not there any more"):
        await changed(conversation.pk, strike, 2)
    long = LineChange(act=Act.ADD, text="word " * 900, section=Section.CONTEXT)
    with pytest.raises(SummaryInvalid, match="at most"):
        await changed(conversation.pk, long, 2)

    assert await services.undo(conversation.pk, transcript=TRANSCRIPT) == 3
    assert (await store.aread_base(conversation.pk)).text == base.text
    assert [one.trigger for one in await store.aversions(conversation.pk)][1] is Trigger.EDIT
