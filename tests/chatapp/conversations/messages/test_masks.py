from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from chatapp.conversations.messages import masks, reading
from chatapp.models import Conversation, Message
from tests.chatapp.talking import context_view, exchange, new, row_of

pytestmark = [pytest.mark.storage, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def code(alice: User) -> str:
    made = new(alice)
    exchange(alice, made)
    row = row_of(made)
    for seq in (3, 4):
        Message.objects.create(
            conversation=row,
            seq=seq,
            role="tool",
            text="a long result",
            tool_call_id=f"call_{seq}",
            tool_name="shell",
            token_count=50,
            created_at=timezone.now(),
        )
    Conversation.objects.update(next_seq=5)
    return made


def stored(seq: int) -> Any:
    return Message.objects.get(seq=seq)


def test_it_works(code: str, alice: User) -> None:
    before = row_of(code).event_no
    masked = masks.mask(row_of(code).pk, {3: 9})
    assert [(one.seq, one.masked) for one in masked.messages] == [(3, True)]
    assert row_of(code).event_no == before + 1 == stored(3).event_no == masked.event_no
    assert stored(3).masked_at is not None
    assert stored(4).masked_at is None
    assert (stored(3).token_count, stored(4).token_count) == (9, 50)
    shown = reading.page(alice.pk, code, context_view).messages
    assert [(one.seq, one.masked, one.text) for one in shown[2:]] == [
        (3, True, "a long result"),
        (4, False, "a long result"),
    ]


def test_what_is_masked_is_not_masked_twice(code: str) -> None:
    masks.mask(row_of(code).pk, {3: 9})
    first = stored(3)
    masks.mask(row_of(code).pk, {3: 1, 4: 9})
    unchanged = ("masked_at", "event_no", "token_count")
    assert [getattr(stored(3), name) for name in unchanged] == [
        getattr(first, name) for name in unchanged
    ]
    assert stored(4).masked_at is not None


def test_only_results_of_this_conversation_are_masked(code: str, bob: User) -> None:
    theirs = new(bob)
    exchange(bob, theirs)
    masks.mask(row_of(theirs).pk, dict.fromkeys([1, 2, 3, 4], 9))
    masks.mask(row_of(code).pk, {1: 9, 2: 9})
    assert not Message.objects.exclude(masked_at=None).exists()
