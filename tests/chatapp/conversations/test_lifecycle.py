from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from chatapp.conversations import lifecycle, listing, ownership
from chatapp.conversations.messages import reading
from chatapp.errors import NotFound
from chatapp.models import Conversation, Project
from tests.chatapp.talking import new, row_of

pytestmark = [pytest.mark.storage, pytest.mark.django_db(transaction=True)]


def test_deletion_hides_and_can_be_taken_back(alice: User) -> None:
    code = new(alice)
    lifecycle.set_flag(alice.pk, code, "deleted_at", on=True)
    assert listing.newest(alice.pk) is None
    assert listing.links(alice.pk) == []
    assert ownership.may_follow(alice.pk, code) is None
    with pytest.raises(NotFound):
        ownership.owned(alice.pk, code)
    with pytest.raises(NotFound):
        reading.snapshot_with_tail(row_of(code).pk)
    lifecycle.set_flag(alice.pk, code, "deleted_at", on=False)
    assert listing.newest(alice.pk) == code


def test_each_change_of_settings_is_numbered(alice: User) -> None:
    code = new(alice)
    assert lifecycle.change(alice.pk, code, {"system_prompt": "Be brief."}) == 1
    assert lifecycle.change(alice.pk, code, {"keep_turns": 3}) == 2


def test_a_project_must_be_ones_own(alice: User, bob: User) -> None:
    Project.objects.create(owner=bob, name="Secret", slug="secret")
    with pytest.raises(NotFound):
        lifecycle.create(alice.pk, project="secret")
    assert lifecycle.project_id(alice.pk, "") is None
    assert Conversation.objects.count() == 0
    assert lifecycle.create(bob.pk, project="secret")
