"""Turns in which the model looks up what was compressed, with the model over real HTTP."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.contrib.auth.models import User

from chatapp.models import Conversation, Message
from chatapp.tools import registry
from compression.recall.quoting import numbers
from tests.chatapp.stage import COUNTER, staged, stored
from tests.chatapp.turns.test_turn import asked_of, fill
from tests.fake_scripts import Tool, calling, saying

pytestmark = [
    pytest.mark.storage,
    pytest.mark.events,
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
