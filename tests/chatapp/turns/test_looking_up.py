"""Turns in which the model looks up what was compressed, with the model over real HTTP."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from chatapp.context.tokens import message_tokens
from chatapp.conversations.messages import reading
from chatapp.conversations.messages.transcript import StoredTranscript
from chatapp.models import Conversation, Message
from chatapp.rendering.articles import article_of, render_article
from chatapp.tools import registry
from compression import services
from compression.engine import Engine
from compression.planning.planner import PlannerSettings, cap_tokens
from compression.recall.answers import ABOVE
from compression.recall.quoting import in_full, numbers
from compression.summarizers.extractive import ExtractiveSummarizer
from compression.types import Sizes, Trigger
from tests.chatapp.stage import COUNTER, staged, stored
from tests.chatapp.talking import context_view, row_of
from tests.chatapp.turns.test_turn import asked_of, fill
from tests.fake_scripts import Tool, calling, saying

pytestmark = [
    pytest.mark.elsewhere,
    pytest.mark.django_db(transaction=True),
]

SECRET = "The spare key hangs behind the third beehive, on a brass hook."


async def test_a_model_finds_the_words_of_a_message_that_was_compressed(
    alice: User, tmp_path: Path
) -> None:
    """It searches, reads what it found word for word, and answers.

    Breaks when: the tools are not offered after a compression, find nothing of what lies before
    the boundary, or give it otherwise than it was said.
    """
    async with staged(alice, tmp_path, tools=registry.all_of([registry.recall(COUNTER)])) as stage:
        await stage.say(SECRET)
        assert asked_of(stage)[-1].get("tools") is None
        await stored(lambda: fill(stage.code, 60))
        await stage.say("Go on.")
        row = await Conversation.objects.aget(code=stage.code)
        assert row.compressed_through > 2
        search = Tool("search_history", json.dumps({"query": "Where is the spare key?"}))
        read = Tool("read_messages", json.dumps({"first": 1, "last": 1}))
        stage.upstream.enqueue(calling(search), calling(read), saying("Behind the beehive."))
        turn = await stage.say("Where did I put that thing for the door?")
        offered = [one["function"]["name"] for one in asked_of(stage)[-1]["tools"]]
        results = await stored(
            lambda: list(Message.objects.filter(turn=turn, role="tool").order_by("seq"))
        )
    assert turn.status == "complete"
    assert offered == ["search_history", "read_messages"]
    assert [1 in numbers(one.text) for one in results] == [True, True]
    assert all(SECRET in one.text for one in results)


async def test_a_second_search_passes_over_what_the_request_quotes(
    alice: User, tmp_path: Path
) -> None:
    """Breaks when: a search of a later round, or of the next turn, spends its room on words that
    the model has been given; or passes over them after they were masked."""
    async with staged(alice, tmp_path, tools=registry.all_of([registry.recall(COUNTER)])) as stage:
        await stage.say(SECRET)
        await stored(lambda: fill(stage.code, 60))
        await stage.say("Go on.")
        search = Tool("search_history", json.dumps({"query": "spare key"}))
        stage.upstream.enqueue(calling(search), calling(search), saying("Behind the beehive."))
        await stage.say("Where did I put that thing for the door?")
        stage.upstream.enqueue(calling(search), saying("As I said."))
        await stage.say("Where?")
        results = await stored(lambda: [one.text for one in Message.objects.filter(role="tool")])
        assert [1 in in_full(one) for one in results] == [True, False, False]
        assert all(f"{ABOVE} 1" in one for one in results[1:])

        await stored(lambda: Message.objects.filter(role="tool").update(masked_at=timezone.now()))
        stage.upstream.enqueue(calling(search), saying("As I said."))
        await stage.say("Where?")
        last = await stored(lambda: Message.objects.filter(role="tool").order_by("seq").last())
    assert last is not None
    assert 1 in in_full(last.text)


DETAIL = "Write down: the key of the old mill hangs behind the third beehive."
THINGS = ("harbour", "lantern", "module", "river", "ticket", "orbit", "garden", "signal", "copper")
LENGTH, COMPRESSIONS = 3_000, 10
SIZES = Sizes(window=8192, reserve=2048)


def said(row: Conversation) -> None:
    """A conversation of ``LENGTH`` messages, the seventh of which holds a detail."""
    texts = [
        f"On day {seq} the {THINGS[seq % 9]} by the {THINGS[seq % 7]} got paint number {seq * 7}."
        for seq in range(1, LENGTH + 1)
    ]
    texts[6] = DETAIL
    Message.objects.bulk_create(
        Message(
            conversation=row,
            seq=seq,
            role="user" if seq % 2 else "assistant",
            text=text,
            token_count=message_tokens(COUNTER, text),
            created_at=row.created_at,
        )
        for seq, text in enumerate(texts, start=1)
    )
    Conversation.objects.filter(pk=row.pk).update(next_seq=LENGTH + 1)


async def compressed(conversation_id: int, through: int) -> None:
    engine = Engine(
        transcript=StoredTranscript(),
        counter=COUNTER,
        extract=ExtractiveSummarizer(COUNTER, cap_tokens(SIZES, PlannerSettings())),
    )
    outcome = await services.compress(
        conversation_id,
        engine=engine,
        sizes=SIZES,
        trigger=Trigger.MANUAL,
        through_seq=through,
        extract_only=True,
    )
    assert outcome.success, outcome.reason


async def test_a_detail_of_message_7_after_3000_messages_and_ten_compressions(
    alice: User, tmp_path: Path
) -> None:
    """The model asks for it and gets its words; the screen leads there.

    Breaks when: anything is lost on the way of a message to a model that no longer sees it.
    """
    async with staged(alice, tmp_path, tools=registry.all_of([registry.recall(COUNTER)])) as stage:
        row = await stored(lambda: row_of(stage.code))
        await stored(lambda: said(row))
        portion = LENGTH // COMPRESSIONS
        for number in range(1, COMPRESSIONS + 1):
            await compressed(row.pk, number * portion - 2)
        row = await stored(lambda: row_of(stage.code))
        assert (row.compressed_through, row.compression_version) == (LENGTH - 2, COMPRESSIONS)
        search = Tool(
            "search_history", json.dumps({"query": "Where does the key of the mill hang?"})
        )
        read = Tool("read_messages", json.dumps({"first": 7, "last": 7}))
        stage.upstream.enqueue(calling(search), calling(read), saying("Behind the beehive."))
        turn = await stage.say("Where did I put that thing for the door?")
        before = str(asked_of(stage)[0]["messages"])
        results = await stored(
            lambda: list(Message.objects.filter(turn=turn, role="tool").order_by("seq"))
        )
        page = await stored(lambda: reading.page(alice.pk, stage.code, context_view))
        there = await stored(lambda: reading.page(alice.pk, stage.code, context_view, around=7))
    assert DETAIL not in before
    assert turn.status == "complete"
    assert [7 in numbers(one.text) for one in results] == [True, True]
    assert all(DETAIL in one.text for one in results)
    assert any(first <= 7 <= last for first, last in turn.manifest["looked_up"])
    shown = [one for one in page.messages if one.seq in {result.seq for result in results}]
    assert len(shown) == 2
    assert all('<a href="#m-7">' in str(render_article(article_of(one))) for one in shown)
    assert DETAIL in [one.text for one in there.messages if one.seq == 7]
