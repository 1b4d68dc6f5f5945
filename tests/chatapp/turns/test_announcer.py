"""What viewers are told of a compression that several processes have to do with."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from chatapp.live import compression_progress
from chatapp.live.view_models import CompressionView
from chatapp.models import Conversation
from chatapp.turns.announcer import Announcer
from compression import store
from compression.types import Trigger
from tests.chatapp.stage import Stage, staged, stored

pytestmark = [pytest.mark.elsewhere, pytest.mark.django_db(transaction=True)]


@pytest.fixture
async def stage(alice: User, tmp_path: Path) -> AsyncIterator[Stage]:
    async with staged(alice, tmp_path) as made:
        yield made


async def begins(
    announcer: Announcer, row: Conversation, messages: int, *, trigger: Trigger, locks: bool
) -> None:
    """The signal of a run that has begun, or that is waited for from now on."""
    await announcer.compression_started(
        conversation_id=row.pk,
        trigger=trigger,
        message_count=messages,
        source_tokens=10 * messages,
        locks_input=locks,
    )


async def test_who_waits_for_a_run_of_another_process_is_told_what_it_takes_in(
    stage: Stage,
) -> None:
    """The one that is asked to wait does not know the span; the row does.

    Breaks when: the count is kept in the process of the run.
    """
    row = await stored(lambda: Conversation.objects.get(code=stage.code))
    assert await store.aclaim(row.pk, trigger=Trigger.BACKGROUND, locks_input=False)
    await begins(stage.announcer, row, 7, trigger=Trigger.BACKGROUND, locks=False)
    assert (await stage.told("compression-started", locks_input=False))["message_count"] == 7
    assert await store.apromote(row.pk, trigger=Trigger.MANUAL, locks_input=True)
    elsewhere = Announcer(stage.services, stage.bus)
    await begins(elsewhere, row, 0, trigger=Trigger.MANUAL, locks=True)
    assert (await stage.told("compression-started", locks_input=True))["message_count"] == 7
    # What is written is told by the process that writes.
    await stage.announcer.compression_progress(conversation_id=row.pk, tokens_written=12)
    assert (await stage.told("compression-progress", tokens_written=12))["message_count"] == 7


async def test_a_page_of_any_process_says_which_part_is_written(stage: Stage) -> None:
    """Breaks when: the part is not told in JSON, or is known to its own process only."""
    row = await stored(lambda: Conversation.objects.get(code=stage.code))
    token = await store.aclaim(row.pk, trigger=Trigger.MANUAL, locks_input=True)
    assert token
    await begins(stage.announcer, row, 90, trigger=Trigger.MANUAL, locks=True)
    part: dict[str, Any] = {
        "part": 3,
        "parts": 38,
        "first_seq": 41,
        "through_seq": 55,
        "seconds_left": 19.2,
    }
    told = stage.announcer.compression_progress
    await told(conversation_id=row.pk, tokens_written=12, **part)
    event = await stage.told("compression-progress", tokens_written=12)
    assert {name: event[name] for name in part} == part | {"seconds_left": 20}
    lines = ("A rule", "A fact")
    later = part | {"seconds_left": 11.0, "lines": lines}
    await told(conversation_id=row.pk, tokens_written=40, **later)
    event = await stage.told("compression-progress", tokens_written=40)
    assert tuple(event["lines"]) == lines

    async def shown() -> CompressionView:
        return (await stage.services.aoverview(row.pk))[1]

    here = await shown()
    assert (here.tokens_written, here.part, here.parts, here.seconds_left) == (40, 3, 38, 11)
    assert (here.part_first_seq, here.part_through_seq, here.lines) == (41, 55, list(lines))
    # Another process has what was stored when the part began.
    compression_progress.ends(row.pk)
    there = await shown()
    assert (there.tokens_written, there.part, there.parts, there.seconds_left) == (0, 3, 38, 20)
    assert (there.part_first_seq, there.part_through_seq) == (41, 55)
    await store.arelease(row.pk, token)
    assert await store.aclaim(row.pk, trigger=Trigger.MANUAL, locks_input=True)
    assert (await shown()).parts == 1


async def test_nothing_is_said_of_the_run_before(stage: Stage) -> None:
    """Breaks when: a new run begins with the count of the one before."""

    async def said() -> tuple[bool, int]:
        _, compression, _ = await stage.services.aoverview(row.pk)
        return compression.running, compression.messages_under_way

    row = await stored(lambda: Conversation.objects.get(code=stage.code))
    token = await store.aclaim(row.pk, trigger=Trigger.MANUAL, locks_input=True)
    assert token
    await begins(stage.announcer, row, 7, trigger=Trigger.MANUAL, locks=True)
    assert await said() == (True, 7)
    await store.arelease(row.pk, token)
    assert await said() == (False, 0)
    assert await store.aclaim(row.pk, trigger=Trigger.MANUAL, locks_input=True)
    assert await said() == (True, 0)
