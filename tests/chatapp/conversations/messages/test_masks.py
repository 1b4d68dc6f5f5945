"""Which tool results and calls the model sees as a description only, as it is stored."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from chatapp.conversations import branching
from chatapp.conversations.messages import masks, reading
from chatapp.models import Conversation, Message, Turn
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


def put_on(code: str, tokens: dict[int, int]) -> Any:
    return masks.StoredMasks().put_on(row_of(code).pk, tokens)


def take_off(code: str, batch: int) -> Any:
    return masks.StoredMasks().take_off(row_of(code).pk, batch)


def notice(code: str, alice: User) -> tuple[int, list[int], int, int]:
    """The newest batch as the page tells of it."""
    shown = reading.page(alice.pk, code, context_view).compression
    return shown.mask_batch, shown.masked_seqs, shown.masked_results, shown.masked_tokens


def test_it_works(code: str, alice: User) -> None:
    before = row_of(code).event_no
    change = put_on(code, {3: 9})
    assert (change.batch, change.seqs, change.tokens_freed) == (1, (3,), 41)
    changed = masks.changed(row_of(code).pk, change.seqs)
    assert [(one.seq, one.masked) for one in changed.messages] == [(3, True)]
    assert row_of(code).event_no == before + 1 == stored(3).event_no == changed.event_no
    assert stored(3).masked_at is not None
    assert stored(4).masked_at is None
    assert (stored(3).token_count, stored(4).token_count) == (9, 50)
    shown = reading.page(alice.pk, code, context_view).messages
    assert [(one.seq, one.masked, one.text) for one in shown[2:]] == [
        (3, True, "a long result"),
        (4, False, "a long result"),
    ]
    assert notice(code, alice) == (1, [3], 1, 41)


def test_what_is_masked_is_not_masked_twice(code: str) -> None:
    put_on(code, {3: 9})
    first = stored(3)
    assert put_on(code, {3: 1, 4: 9}).seqs == (4,)
    unchanged = ("masked_at", "mask_batch", "event_no", "token_count", "unmasked_tokens")
    assert [getattr(stored(3), name) for name in unchanged] == [
        getattr(first, name) for name in unchanged
    ]
    assert stored(4).masked_at is not None
    number = row_of(code).event_no
    assert put_on(code, {3: 1, 4: 1}) is None
    assert put_on(code, {}) is None
    assert row_of(code).event_no == number


def test_only_results_and_calls_of_this_conversation_are_masked(code: str, bob: User) -> None:
    theirs = new(bob)
    exchange(bob, theirs)
    assert put_on(theirs, dict.fromkeys([1, 2, 3, 4], 9)) is None
    assert put_on(code, {1: 9, 2: 9}) is None
    assert not Message.objects.exclude(masked_at=None).exists()


def test_a_batch_is_undone_as_a_whole(code: str, alice: User) -> None:
    """Breaks when: Undo forgets a message, another batch, or the tokens from before."""
    put_on(code, {3: 9})
    Message.objects.filter(seq=2).update(tool_calls=[{"id": "call_3"}])
    put_on(code, {2: 2, 4: 9})
    assert notice(code, alice)[:3] == (2, [2, 4], 1)
    before = row_of(code).event_no
    change = take_off(code, 2)
    assert (change.batch, change.seqs) == (2, (2, 4))
    assert change.tokens_freed == 50 - 9 + stored(2).token_count - 2
    assert [stored(seq).masked_at is None for seq in (2, 3, 4)] == [True, False, True]
    assert (stored(3).token_count, stored(4).token_count) == (9, 50)
    assert stored(4).event_no == before + 1 == row_of(code).event_no
    tail = reading.snapshot_with_tail(row_of(code).pk).tail
    assert [one.seq for one in tail if one.unmasked] == [2, 4]
    # The batch before it can be undone now.
    assert notice(code, alice)[:2] == (1, [3])
    assert take_off(code, 2) is None
    assert row_of(code).event_no == before + 1


def test_what_was_undone_can_be_masked_again_under_another_number(code: str) -> None:
    put_on(code, {3: 9})
    take_off(code, 1)
    assert put_on(code, {3: 9}).batch == 2
    assert take_off(code, 1) is None
    assert take_off(code, 2).seqs == (3,)


def test_a_branch_has_the_masks_and_can_undo_them(code: str, alice: User) -> None:
    """Breaks when: a branch copies the marks without their batch."""
    Turn.objects.update(finished_at=timezone.now())
    put_on(code, {3: 9})
    branched = branching.branch(alice.pk, code, 4)
    assert notice(branched, alice) == (1, [3], 1, 41)
    assert take_off(branched, 1).seqs == (3,)
    assert notice(code, alice)[0] == 1
