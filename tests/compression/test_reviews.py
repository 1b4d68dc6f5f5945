"""A reviewer's word on a stored row: it changes no summary, and none is overwritten unseen."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from chatapp.models import Conversation, Summary
from compression import store
from compression.models import Review
from tests.reviewing import AUDIT, conversation_of, summarise

pytestmark = [pytest.mark.django_db, pytest.mark.storage]


@pytest.fixture
def summary(alice: User) -> Summary:
    return summarise(conversation_of(alice, "one", "two", "three"), "Use spaces")


def test_who_looked_first_is_kept(summary: Summary, alice: User, bob: User) -> None:
    assert store.mark_seen(summary.pk, reviewer_id=alice.pk)
    assert not store.mark_seen(summary.pk, reviewer_id=bob.pk)
    summary.refresh_from_db()
    assert (summary.review, summary.reviewer) == ("seen", alice)
    assert summary.reviewed_at is not None


def test_a_word_that_another_has_said_meanwhile_is_not_overwritten(
    summary: Summary, alice: User, bob: User
) -> None:
    """Breaks when: ``decide`` does not compare with what its reviewer has read."""
    needs_work = Review.NEEDS_WORK
    assert store.decide(
        summary.pk, needs_work, expected="", reviewer_id=alice.pk, note=" Line 2 is wrong.\x00 "
    )
    assert not store.decide(summary.pk, Review.APPROVED, expected="seen", reviewer_id=bob.pk)
    summary.refresh_from_db()
    assert (summary.review, summary.reviewer) == ("needs_work", alice)
    assert summary.review_note == "Line 2 is wrong.\ufffd"
    assert store.decide(summary.pk, Review.APPROVED, expected="needs_work", reviewer_id=bob.pk)
    summary.refresh_from_db()
    now = Summary.objects.get()
    assert (now.review, now.reviewer, now.review_note) == ("approved", bob, None)


def test_a_word_changes_nothing_that_a_model_sees(summary: Summary, alice: User) -> None:
    before = Conversation.objects.values().get()
    store.decide(summary.pk, Review.APPROVED, expected="", reviewer_id=alice.pk)
    assert Conversation.objects.values().get() == before


def test_the_next_version_is_not_reviewed(summary: Summary, alice: User) -> None:
    """Breaks when: a review is copied with the content of a version."""
    store.decide(summary.pk, Review.APPROVED, expected="", reviewer_id=alice.pk)
    base = store.read_base(summary.conversation_id)
    store.edit(base, "## Context\n\n- x", base.ledger, author_id=None, summary_tokens=3)
    assert Summary.objects.get(version=2).review is None


@pytest.mark.parametrize(
    ("audit", "share"),
    [
        (AUDIT, 0.75),
        ({"salient": 0, "retained": 0}, None),
        ({"salient": 3, "retained": 4}, None),
        ({"salient": "3", "retained": 1}, None),
        ({}, None),
    ],
)
def test_the_share_that_a_version_kept_is_stored_with_it(
    alice: User, audit: dict[str, object], share: float | None
) -> None:
    """Also of an audit that came with an import, in any shape.

    Breaks when: ``insert`` leaves the share out, or trusts what it is reckoned from.
    """
    made = summarise(conversation_of(alice, "one", "two", "three"), "x", audit=audit)
    assert made.retention == share
