"""What a viewer asks of the database by itself."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from chatapp.conversations import viewer_checks
from chatapp.conversations.turns import progress
from chatapp.conversations.viewer_checks import ChangeMarker
from chatapp.models import Conversation, Summary
from compression import store
from compression.types import Outcome, Trigger
from tests.chatapp.talking import begin, end, exchange, new, row_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage]

MANUAL = Trigger.MANUAL


def test_a_change_marker_tells_whether_a_turn_is_open_and_how_far_it_is(alice: User) -> None:
    """Breaks when: the text's length is not among what is looked at, and no number tells of it."""
    code = new(alice)
    pk = row_of(code).pk
    idle = {"running": False, "opened": False, "written": 0}
    assert viewer_checks.change_marker(pk) == ChangeMarker(event_no=0, **idle)  # type: ignore[arg-type]
    accepted = begin(alice, code)
    assert viewer_checks.change_marker(pk) == ChangeMarker(
        event_no=1, running=False, opened=True, written=0
    )
    progress.checkpoint(
        [
            progress.Checkpoint(
                message_id=accepted.reply_id, turn=accepted.turn, text="Ünd 😀", reasoning="Hm"
            )
        ]
    )
    assert viewer_checks.change_marker(pk) == ChangeMarker(
        event_no=1, running=False, opened=True, written=7
    )
    end(accepted)
    assert viewer_checks.change_marker(pk) == ChangeMarker(event_no=2, **idle)  # type: ignore[arg-type]
    Conversation.objects.update(deleted_at="2026-01-01T00:00Z")
    assert viewer_checks.change_marker(pk) is None


def test_a_change_marker_that_meets_the_end_of_a_compression_takes_it_as_one_thing(
    alice: User,
) -> None:
    """One query sees one state: the run is there, or it is over.

    Breaks when: a column of the lease is read later than the others.
    """
    pk = row_of(new(alice)).pk
    token = store.claim(pk, trigger=MANUAL, locks_input=True)
    assert token is not None
    marker = viewer_checks.change_marker(pk)
    assert marker is not None
    assert marker.running
    store.release(pk, token)
    marker = viewer_checks.change_marker(pk)
    assert marker is not None
    assert not marker.running


def ended(pk: int, since: Any = None) -> Outcome:
    return viewer_checks.how_it_ended(pk, trigger=MANUAL, version=0, since=since)


def test_how_a_run_ended_is_told_from_what_is_stored(alice: User) -> None:
    """Each end that leaves something behind, and those that leave nothing.

    Breaks when: what an earlier run left is taken for this one's.
    """
    code = new(alice)
    exchange(alice, code)
    pk, began = row_of(code).pk, timezone.now()
    assert ended(pk, began).reason == "It ended without a summary."
    store.claim(pk, trigger=MANUAL, locks_input=True)
    Conversation.objects.update(compression_lease_expires_at="2026-01-01T00:00Z")
    assert ended(pk, began).reason == "The server stopped while the summary was written."
    store.cancel(pk)
    store.claim(pk, trigger=MANUAL, locks_input=True)
    store.cancel(pk)
    assert ended(pk, began).code == "compression_cancelled"
    for status, code_, success in (
        ("rejected", "draft_rejected", False),
        ("failed", "summarizer_failed", False),
        ("ready", "", True),
        ("discarded", "", True),
    ):
        Summary.objects.create(conversation_id=pk, status=status, trigger="manual", reason="Why")
        outcome = ended(pk, began)
        assert (outcome.success, outcome.code) == (success, code_)
        assert outcome.reason == ("" if success else "Why")
    assert ended(pk, timezone.now()).code == "lease_lost"
    Summary.objects.create(
        conversation_id=pk, status="superseded", trigger="manual", version=1, usage_before=0.8
    )
    Summary.objects.create(conversation_id=pk, status="active", trigger="edit", version=2)
    outcome = ended(pk, timezone.now())
    assert (outcome.success, outcome.version, outcome.usage_before) == (True, 1, 0.8)
