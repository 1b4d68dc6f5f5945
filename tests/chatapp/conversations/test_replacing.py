from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from chatapp.conversations import replacing
from chatapp.errors import (
    NotFound,
    Summarised,
)
from chatapp.models import Conversation, Message, Turn
from tests.chatapp.talking import (
    HOLDER,
    exchange,
    new,
    row_of,
)

pytestmark = [pytest.mark.storage, pytest.mark.django_db(transaction=True)]


def live_texts(code: str) -> list[str]:
    messages = Message.objects.filter(conversation__code=code, superseded_at=None)
    return list(messages.order_by("seq").values_list("text", flat=True))


def test_regenerating_supersedes_the_reply_and_keeps_the_question(alice: User) -> None:
    code = new(alice)
    exchange(alice, code, "one", "first reply")
    old = exchange(alice, code, "two", "second reply")
    new_turn = replacing.regenerate(alice.pk, code, model="m", holder=HOLDER)
    assert new_turn.message_seq == 3
    assert new_turn.reply_seq == 5
    # The reply, which is superseded, and the question, which has another turn now.
    assert sorted(one.seq for one in new_turn.changed) == [3, 4]
    assert live_texts(code) == ["one", "first reply", "two", ""]
    question = Message.objects.get(seq=3)
    assert question.turn_id == new_turn.turn != old.turn
    assert Turn.objects.get(pk=new_turn.turn).user_message == question
    superseded = Message.objects.get(seq=4)
    assert (superseded.text, superseded.superseded_at is None) == ("second reply", False)
    assert superseded.event_no == row_of(code).event_no


def test_regenerating_an_earlier_answer_supersedes_what_followed(alice: User) -> None:
    code = new(alice)
    exchange(alice, code, "one")
    exchange(alice, code, "two")
    accepted = replacing.regenerate(alice.pk, code, model="m", holder=HOLDER, seq=2)
    assert accepted.message_seq == 1
    assert sorted(one.seq for one in accepted.changed if one.superseded) == [2, 3, 4]
    assert live_texts(code) == ["one", ""]


def test_a_regenerated_question_is_not_left_out_of_its_own_request(alice: User) -> None:
    """Breaks when: ``regenerate`` leaves ``truncated_through`` behind the question."""
    code = new(alice)
    for text in ("one", "two", "three"):
        exchange(alice, code, text)
    Conversation.objects.update(truncated_through=4)
    replacing.regenerate(alice.pk, code, model="m", holder=HOLDER, seq=3)
    assert row_of(code).truncated_through < 3


def test_editing_supersedes_the_message_and_what_followed(alice: User) -> None:
    code = new(alice)
    exchange(alice, code, "one")
    exchange(alice, code, "two")
    edited = replacing.edit(
        alice.pk, code, 3, text="two, better", tokens=9, model="m", holder=HOLDER
    )
    assert [one.seq for one in edited.changed] == [3, 4]
    assert [one.seq for one in edited.messages] == [5, 6]
    assert live_texts(code) == ["one", "Yes", "two, better", ""]
    assert Message.objects.get(seq=5).token_count == 9


def test_i14_nothing_below_the_boundary_is_changed_in_place(alice: User) -> None:
    """Breaks when: ``_must_be_free`` does not compare with ``compressed_through``."""
    code = new(alice)
    exchange(alice, code, "one")
    exchange(alice, code, "two")
    Conversation.objects.update(compressed_through=2)
    with pytest.raises(Summarised) as caught:
        replacing.edit(alice.pk, code, 1, text="x", tokens=1, model="m", holder=HOLDER)
    assert caught.value.fields == {"seq": 1, "boundary": 2}
    with pytest.raises(Summarised):
        replacing.regenerate(alice.pk, code, model="m", holder=HOLDER, seq=2)
    assert Message.objects.filter(superseded_at=None).count() == 4
    assert Turn.objects.filter(finished_at=None).count() == 0


def test_what_is_no_question_cannot_be_edited(alice: User) -> None:
    code = new(alice)
    with pytest.raises(NotFound):
        replacing.regenerate(alice.pk, code, model="m", holder=HOLDER)
    exchange(alice, code)
    for seq in (2, 9):
        with pytest.raises(NotFound):
            replacing.edit(alice.pk, code, seq, text="x", tokens=1, model="m", holder=HOLDER)
