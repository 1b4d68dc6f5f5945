"""The choice to look at each summary before it is applied."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from chatapp.turns.fitting import prepare, prepare_in_background
from compression import store
from compression.testing import CountingSummarizer
from tests.chatapp.stage import stored
from tests.chatapp.turns.test_fitting import ask, deps_with, filled, pk_of
from tests.chatapp.turns.test_turn import fill

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.elsewhere]


async def test_nothing_is_applied_unseen_while_the_request_fits(alice: User) -> None:
    """Beyond that the preview is applied as it is: a reply never waits for a person.

    Breaks when: the policy is not told of the choice, or ``_compress`` writes another summary.
    """
    code = await filled(alice, 11, preview_first=True)
    pk, summarizer = await pk_of(code), CountingSummarizer()
    deps = deps_with(summarizer)
    prepared = await prepare(pk, deps)
    assert 0.8 <= prepared.request.usage.share <= 1.0
    assert prepared.request.manifest["summary_version"] == 0
    assert not summarizer.calls

    await prepare_in_background(pk, deps)
    await prepare_in_background(pk, deps)
    assert len(summarizer.calls) == 1
    waiting = await store.apreview(pk)
    assert waiting is not None
    assert (await prepare(pk, deps)).request.manifest["summary_version"] == 0

    await stored(lambda: fill(code, 3))
    await stored(lambda: ask(code))
    full = await prepare(pk, deps)
    assert full.request.manifest["boundary"] == waiting.summary.through_seq
    assert full.request.manifest["summary_version"] == 1
    assert len(summarizer.calls) == 1
