from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User

from chatapp.conversations import lifecycle, listing
from chatapp.models import Conversation
from tests.chatapp.talking import begin, end, new

pytestmark = [pytest.mark.storage, pytest.mark.django_db(transaction=True)]


def test_archived_ones_have_a_list_of_their_own(alice: User) -> None:
    kept, archived = new(alice), new(alice)
    lifecycle.set_flag(alice.pk, archived, "archived_at", on=True)
    assert [one.code for one in listing.links(alice.pk)] == [kept]
    assert [one.code for one in listing.links(alice.pk, archived=True)] == [archived]
    assert listing.newest(alice.pk) == kept


def test_r05_the_list_costs_the_same_at_ten_thousand_conversations(
    alice: User, django_assert_num_queries: Any
) -> None:
    """R05: one query and so many lines; the rest is found by searching.

    Breaks when: ``links`` reads all there are, or asks for each whether it is answering.
    """
    Conversation.objects.bulk_create(
        Conversation(owner=alice, title=f"number {number}") for number in range(10_000)
    )
    with django_assert_num_queries(1):
        found = listing.links(alice.pk)
    assert len(found) == listing.LINKS


def test_the_list_has_pinned_ones_first_then_the_latest(
    alice: User, bob: User, django_assert_num_queries: Any
) -> None:
    first, second, third = new(alice), new(alice), new(alice)
    new(bob)
    lifecycle.set_flag(alice.pk, second, "pinned_at", on=True)
    accepted = begin(alice, first)
    with django_assert_num_queries(1):
        links = listing.links(alice.pk)
    assert [one.code for one in links] == [second, first, third]
    assert [one.answering for one in links] == [False, True, False]
    end(accepted)
    assert not any(one.answering for one in listing.links(alice.pk))
