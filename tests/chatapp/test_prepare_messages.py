"""``COMPRESSION_PREPARE_MESSAGES`` in the running product, on conversations as people have them."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User

from tests.chatapp.long_conversations import StrictUpstream, Talk, talking
from tests.chatapp.test_long_conversations import prose
from tests.fake_scripts import Json, Script, default_answer, is_summary_request, saying
from tests.inprocess import JSON

pytestmark = pytest.mark.django_db(transaction=True)


def answering(tokens: int) -> Any:
    def answer(request: Json) -> Script:
        if is_summary_request(request):
            return default_answer(request)
        return saying(prose(tokens, len(request["messages"])))

    return answer


async def exchange(talk: Talk, turns: int, *, tokens: int) -> None:
    for number in range(turns):
        turn = await talk.say(prose(tokens, 1000 + number))
        assert turn["status"] == "complete", turn["error"]


async def test_26_messages_at_8192_have_a_summary_prepared(alice: User, settings: Any) -> None:
    """Questions of 30 tokens, replies of 110: a third of the room, far below the soft threshold.

    Nothing was prepared: nearly all of it counted as the tail, for which a fifth of the budget is
    kept in tokens.

    Breaks when: what is kept is measured in tokens for a run that is made for its messages.
    """
    settings.COMPRESSION = {**settings.COMPRESSION, "PREPARE_MESSAGES": 10}
    strict = StrictUpstream(window=8192, answer=answering(110))
    async with talking(alice, settings, strict) as talk:
        await exchange(talk, 13, tokens=30)
        seen = (await talk.client.get(f"/c/{talk.code}/context/", headers=JSON)).json()
        assert seen["context"]["usage"] < 0.5
        (ready,) = await talk.summaries()
        assert (ready.status, ready.trigger) == ("ready", "background")
        assert ready.message_count >= 10
        assert (await talk.row()).compression_version == 0, "it is put aside, not applied"


async def test_so_many_short_messages_are_not_worth_a_summary(alice: User, settings: Any) -> None:
    """As docs/operations.md says: what would free less than a tenth of the room is left alone.

    Breaks when: the number alone decides, and a model is paid for a summary that gains nothing.
    """
    settings.COMPRESSION = {**settings.COMPRESSION, "PREPARE_MESSAGES": 10}
    strict = StrictUpstream(window=8192, answer=answering(15))
    async with talking(alice, settings, strict) as talk:
        await exchange(talk, 13, tokens=15)
        assert await talk.summaries() == []
