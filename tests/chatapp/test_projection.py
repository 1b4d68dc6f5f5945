"""Before a provider whose own count is far above ours: the projection does not lie (I16)."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User

from tests.chatapp.long_conversations import StrictUpstream, talking
from tests.chatapp.test_long_conversations import assert_fits, history, profile, prose
from tests.inprocess import JSON

pytestmark = pytest.mark.django_db(transaction=True)

WINDOW = 8192
BUDGET = WINDOW - WINDOW // 4


@pytest.mark.parametrize("factor", [3.0, 4.15])
async def test_i16_a_provider_that_counts_four_times_as_much_is_believed(
    alice: User, settings: Any, factor: float
) -> None:
    """The calibration stays within its bounds; the conversation is compressed at its threshold.

    Reported were 6,000 of 6,144 tokens; shown were 1,446, and nothing was compressed.

    Breaks when: usage is projected by the model's calibration alone, or the summariser's room is.
    """
    strict = StrictUpstream(window=WINDOW, factor=factor)
    async with talking(alice, settings, strict) as talk:
        compressed = 0
        for number in range(14):
            turn = await talk.say(prose(110, number))
            assert turn["status"] == "complete", turn["error"]
            reported = turn["usage"]["prompt_tokens"]
            assert reported <= BUDGET
            seen = (await talk.client.get(f"/c/{talk.code}/context/", headers=JSON)).json()
            view = seen["context"]
            row = await talk.row()
            # The next request holds this one and its reply, unless a summary has come meanwhile.
            if row.compression_version == turn["manifest"]["summary_version"]:
                assert view["total"] >= reported
            assert view["usage"] == pytest.approx(view["total"] / BUDGET, abs=0.001)
            assert view["total"] == seen["manifest"]["tokens"]["total"]
            compressed = row.compression_version
            if turn["manifest"]["summary_version"] > 1:
                break
        assert (await profile()).calibration <= 2.0
        assert compressed >= 2, "it went on after the first compression"
        assert_fits(talk)
        applied = [one for one in await talk.summaries() if one.version]
        for one in applied:
            assert one.usage_before is not None
            assert one.usage_after is not None
            assert one.usage_after < one.usage_before <= 1.0


async def test_a_first_request_that_is_refused_says_how_the_provider_counts(
    alice: User, settings: Any
) -> None:
    """An imported conversation: nobody knows until the first refusal, which is believed at once.

    Breaks when: the second try is projected by the calibration alone, within its bounds.
    """
    strict = StrictUpstream(window=WINDOW, factor=4.15)
    async with talking(alice, settings, strict, history(3_000, each=100)) as talk:
        turn = await talk.say("What is next?")
        assert turn["status"] == "complete", turn["error"]
        reported = turn["usage"]["prompt_tokens"]
        assert reported <= turn["manifest"]["tokens"]["total"] <= BUDGET
        refused = len(strict.refused)
        assert (await talk.say("And then?"))["status"] == "complete"
        assert len(strict.refused) == refused


async def test_a_servers_own_instructions_are_no_heavier_tokenizer(
    alice: User, settings: Any
) -> None:
    """600 tokens before each request: a long message still fits.

    Breaks when: the ratio of a short request is taken for every request to come.
    """
    strict = StrictUpstream(window=WINDOW, unseen=600)
    async with talking(alice, settings, strict) as talk:
        assert (await talk.say("Hello"))["status"] == "complete"
        turn = await talk.say(prose(2_000, 1))
        assert turn["status"] == "complete", turn["error"]
        assert turn["manifest"]["summary_version"] == 0
        assert turn["manifest"]["tokens"]["total"] >= 600
        assert_fits(talk)
