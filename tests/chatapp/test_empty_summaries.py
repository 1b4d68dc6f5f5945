"""Summaries that say nothing, through the whole product, before a model server over real HTTP."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F

from chatapp.context.request import request_sizes
from chatapp.context.tokens import message_tokens
from chatapp.models import Conversation, Message, Summary, Turn, TurnStatus
from compression import services
from compression.types import Outcome, SummaryStatus, Trigger
from tests.chatapp.stage import COUNTER, Stage, staged, stored
from tests.chatapp.talking import row_of
from tests.fake_scripts import (
    Json,
    Script,
    default_answer,
    is_summary_request,
    quoted_messages,
    saying,
)

pytestmark = pytest.mark.django_db(transaction=True)

WINDOW = 4096
TURNS = 40
CALM = "Nobody was in a hurry, and the harbour lay quiet in the morning light. " * 2
NOTHING: dict[str, Any] = {"add": [], "resolve": [], "supersede": [], "lift": []}
EMPTY = {
    "ok": json.dumps({"narrative": "ok", **NOTHING}),
    "ok, in Markdown": "# Summary\nok",
    "one word": json.dumps({"narrative": "Conversation.", **NOTHING}),
    "unknown ids": json.dumps({"narrative": "", **NOTHING, "resolve": [901, 902]}),
    "filler": json.dumps(
        {
            "narrative": "The user and the assistant had a productive conversation and discussed "
            "several important topics in detail.",
            **NOTHING,
        }
    ),
}
FACT = re.compile(r"Berth (\d+) belongs to (\w+)\.")
NAMES = ("Aino", "Bjarne", "Cilla", "Dagny", "Eskil", "Frida", "Gunnar", "Helmi")


def tell(code: str, turns: int, *, wishes: int = 0) -> None:
    """So many ended turns; each user's message holds one fact, and wishes as many as asked for."""
    row = row_of(code)
    for number in range(turns):
        turn = Turn.objects.create(
            conversation=row, status=TurnStatus.COMPLETE, finished_at=row.created_at
        )
        wished = " ".join(
            f"I prefer gadget {number}{wish} in the lighter colour, and without a handle."
            for wish in range(wishes)
        )
        fact = f"Berth {4000 + 37 * number} belongs to {NAMES[number % len(NAMES)]}."
        for role, text in (("user", f"{CALM}{fact} {wished}"), ("assistant", f"I see. {CALM}")):
            with transaction.atomic():
                Conversation.objects.filter(pk=row.pk).update(next_seq=F("next_seq") + 1)
                row.refresh_from_db()
                Message.objects.create(
                    conversation=row,
                    seq=row.next_seq - 1,
                    turn=turn,
                    role=role,
                    text=text,
                    token_count=message_tokens(COUNTER, text),
                    created_at=row.created_at,
                )


async def compact(stage: Stage, trigger: Trigger = Trigger.MANUAL) -> Outcome:
    """Compress at once, or prepare in the background."""
    profile = await stage.services.catalogue.profile("fake-model")
    snapshot = await stage.snapshot()
    sizes = request_sizes(
        snapshot,
        stage.services.counter,
        window=profile.window,
        reserve=profile.reserve,
        calibration=profile.calibration,
    )
    engine = stage.services.engine(profile)
    if trigger is Trigger.BACKGROUND:
        return await services.prepare(snapshot.conversation_id, engine=engine, sizes=sizes)
    return await services.compress(
        snapshot.conversation_id, engine=engine, sizes=sizes, trigger=trigger
    )


def summary_requests(stage: Stage) -> list[Json]:
    return [one.json for one in stage.upstream.chats if is_summary_request(one.json)]


def thirds_told(text: str, through: int) -> set[int]:
    """Of which thirds of the messages the lines of a summary tell, by their sources."""
    sources = [int(seq) for found in re.findall(r"\[([\d, –]+)\]$", text, re.M)
               for seq in re.findall(r"\d+", found)]  # fmt: skip
    return {min(2, 3 * (seq - 1) // through) for seq in sources}


@pytest.mark.parametrize("answer", EMPTY)
async def test_i11_a_summary_that_says_nothing_is_never_applied_as_good(
    alice: User, tmp_path: Path, answer: str
) -> None:
    """I11: refused at the first part with the reason stored; the extract keeps the facts.

    Breaks when: neither the summariser nor judge() looks at the floor.
    """
    async with staged(alice, tmp_path, window=WINDOW) as stage:
        await stored(lambda: tell(stage.code, TURNS))
        stage.upstream.handler = lambda request: saying(EMPTY[answer])
        outcome = await compact(stage)
        row = await stored(lambda: row_of(stage.code))
        rows = await stored(lambda: list(Summary.objects.order_by("pk")))
        calls = len(summary_requests(stage))
    assert outcome.success
    assert outcome.degraded
    [active] = [one for one in rows if one.status == SummaryStatus.ACTIVE]
    assert active.degraded
    assert EMPTY[answer] not in row.compressed_context
    assert len(FACT.findall(row.compressed_context)) >= 5
    assert thirds_told(row.compressed_context, row.compressed_through) == {0, 1, 2}
    refused = [one.reason for one in rows if one.status == SummaryStatus.REJECTED]
    assert len(refused) == 1
    assert "says nothing" in refused[0] or "says too little" in refused[0]
    assert calls <= 5, "three times for the first part, once for each of the next two"


async def test_i11_nothing_that_says_nothing_is_prepared(alice: User, tmp_path: Path) -> None:
    """Breaks when: a draft in the background is not judged like any other."""
    async with staged(alice, tmp_path, window=WINDOW) as stage:
        await stored(lambda: tell(stage.code, TURNS))
        stage.upstream.handler = lambda request: saying(EMPTY["ok"])
        outcome = await compact(stage, Trigger.BACKGROUND)
        rows = await stored(lambda: list(Summary.objects.all()))
    assert not outcome.success
    assert "says nothing" in outcome.reason
    assert {one.status for one in rows} == {SummaryStatus.REJECTED}


async def test_i11_a_boundary_is_not_moved_past_what_nothing_is_said_of(
    alice: User, tmp_path: Path
) -> None:
    """From the second call on only unknown ids are resolved.

    It was applied through its last message with nothing from beyond the first part. Breaks when: a
    part whose operations change nothing is taken for one.
    """
    asked = 0

    def tired(request: Json) -> Script:
        nonlocal asked
        asked += 1
        if asked > 1:
            return saying(EMPTY["unknown ids"])
        return saying(json.dumps(noting(request)))

    async with staged(alice, tmp_path, window=WINDOW) as stage:
        await stored(lambda: tell(stage.code, TURNS))
        stage.upstream.handler = tired
        outcome = await compact(stage)
        row = await stored(lambda: row_of(stage.code))
    assert outcome.success
    assert row.compressed_through > TURNS
    assert thirds_told(row.compressed_context, row.compressed_through) == {0, 1, 2}


def noting(request: Json) -> Json:
    """The facts of the quoted messages, as a good model would note them."""
    facts = [
        {"section": "context", "text": f"berth {berth} = {name}", "sources": [seq]}
        for seq, _, text in quoted_messages(request)
        for berth, name in FACT.findall(text)
    ]
    return {"narrative": "Berths of the quiet harbour were named.", **NOTHING, "add": facts}


async def test_what_a_good_model_writes_is_applied_as_it_is(alice: User, tmp_path: Path) -> None:
    """Breaks when: the floor refuses or fills what holds the facts."""
    async with staged(alice, tmp_path, window=WINDOW) as stage:
        await stored(lambda: tell(stage.code, TURNS))
        stage.upstream.handler = lambda request: (
            saying(json.dumps(noting(request)))
            if is_summary_request(request)
            else default_answer(request)
        )
        outcome = await compact(stage)
        rows = await stored(lambda: list(Summary.objects.all()))
    assert outcome.success
    assert not outcome.degraded
    [active] = rows
    assert active.audit["floor"]["filled"] == 0
    assert not [note for note in active.audit["notes"] if "by code" in note]


async def test_too_many_constraints_do_not_throw_a_draft_away(alice: User, tmp_path: Path) -> None:
    """The strongest are kept, the rest is named in the notes.

    Breaks when: ``bounded`` is left out of judge(): what may not be evicted is above its limit.
    """

    def eager(request: Json) -> Script:
        noted = noting(request)
        for seq, role, text in quoted_messages(request):
            if role == "user":
                wishes = re.findall(r"I prefer [^.]*\.", text)
                noted["add"] += [
                    {"section": "constraints", "text": wish, "sources": [seq]} for wish in wishes
                ]
        return saying(json.dumps(noted))

    async with staged(alice, tmp_path, window=WINDOW) as stage:
        await stored(lambda: tell(stage.code, TURNS, wishes=3))
        stage.upstream.handler = eager
        outcome = await compact(stage)
        row = await stored(lambda: row_of(stage.code))
        [active] = await stored(lambda: list(Summary.objects.all()))
    assert outcome.success, outcome.reason
    assert not outcome.degraded
    left_out = [
        one for one in active.audit["notes"] if one.startswith("left out, there is no room")
    ]
    assert len(left_out) > TURNS
    assert 3 <= row.compressed_context.count("I prefer") < TURNS
    assert row.compressed_context.count("berth ") > 5
