from __future__ import annotations

from functools import partial

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from chatapp.conversations.messages import pins, reading
from chatapp.conversations.messages.paging import OLDER_MESSAGES, message_page
from chatapp.conversations.messages.views import turn_views, with_questions
from chatapp.conversations.turns import replacing, sending
from chatapp.errors import (
    NotFound,
    Summarised,
)
from chatapp.live.view_models import MessageView
from chatapp.models import Conversation, Message, Turn
from tests.chatapp.talking import PROCESS_ID, context_view, end, exchange, live_texts, new, row_of

pytestmark = [pytest.mark.storage, pytest.mark.django_db(transaction=True)]


def test_regenerating_supersedes_the_reply_and_keeps_the_question(alice: User) -> None:
    code = new(alice)
    exchange(alice, code, "one", "first reply")
    old = exchange(alice, code, "two", "second reply")
    new_turn = replacing.regenerate(alice.pk, code, model="m", process_id=PROCESS_ID)
    assert new_turn.message_seq == 3
    assert new_turn.reply_seq == 5
    # The reply, which is superseded, and the question, which has another turn now.
    assert sorted(one.seq for one in new_turn.changed) == [3, 4]
    assert live_texts(code) == ["one", "first reply", "two", ""]
    question = Message.objects.get(seq=3)
    assert question.turn_id == new_turn.turn != old.turn
    assert Turn.objects.get(pk=new_turn.turn).user_message == question
    # The message is the new turn's now, and the old one still says which it answered.
    asked = turn_views(with_questions(Turn.objects.filter(pk__in=[old.turn, new_turn.turn])))
    assert [one.message_seq for one in asked] == [3, 3]
    superseded = Message.objects.get(seq=4)
    assert (superseded.text, superseded.superseded_at is None) == ("second reply", False)
    assert superseded.event_no == row_of(code).event_no


def test_regenerating_an_earlier_answer_supersedes_what_followed(alice: User) -> None:
    code = new(alice)
    exchange(alice, code, "one")
    exchange(alice, code, "two")
    accepted = replacing.regenerate(alice.pk, code, model="m", process_id=PROCESS_ID, seq=2)
    assert accepted.message_seq == 1
    assert sorted(one.seq for one in accepted.changed if one.superseded) == [2, 3, 4]
    assert live_texts(code) == ["one", ""]


def test_a_regenerated_question_is_not_left_out_of_its_own_request(alice: User) -> None:
    """Breaks when: ``regenerate`` leaves ``truncated_through`` behind the question."""
    code = new(alice)
    for text in ("one", "two", "three"):
        exchange(alice, code, text)
    Conversation.objects.update(truncated_through=4)
    replacing.regenerate(alice.pk, code, model="m", process_id=PROCESS_ID, seq=3)
    assert row_of(code).truncated_through < 3


def test_editing_supersedes_the_message_and_what_followed(alice: User) -> None:
    code = new(alice)
    exchange(alice, code, "one")
    exchange(alice, code, "two")
    edited = replacing.edit(
        alice.pk, code, 3, text="two, better", tokens=9, model="m", process_id=PROCESS_ID
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
        replacing.edit(alice.pk, code, 1, text="x", tokens=1, model="m", process_id=PROCESS_ID)
    assert caught.value.fields == {"seq": 1, "boundary": 2}
    with pytest.raises(Summarised):
        replacing.regenerate(alice.pk, code, model="m", process_id=PROCESS_ID, seq=2)
    assert Message.objects.filter(superseded_at=None).count() == 4
    assert Turn.objects.filter(finished_at=None).count() == 0


def test_what_is_no_question_cannot_be_edited(alice: User) -> None:
    code = new(alice)
    with pytest.raises(NotFound):
        replacing.regenerate(alice.pk, code, model="m", process_id=PROCESS_ID)
    exchange(alice, code)
    for seq in (2, 9):
        with pytest.raises(NotFound):
            replacing.edit(
                alice.pk, code, seq, text="x", tokens=1, model="m", process_id=PROCESS_ID
            )


def regenerate(owner: User, code: str, text: str) -> sending.Accepted:
    accepted = replacing.regenerate(owner.pk, code, model="model", process_id=PROCESS_ID)
    end(accepted, text)
    return accepted


def edit(owner: User, code: str, seq: int, text: str) -> sending.Accepted:
    accepted = replacing.edit(
        owner.pk, code, seq, text=text, tokens=5, model="model", process_id=PROCESS_ID
    )
    end(accepted, f"on {text}")
    return accepted


def marked(messages: tuple[MessageView, ...] | list[MessageView]) -> list[int]:
    return [one.seq for one in messages if one.replaces]


def texts(owner: User, code: str, seq: int) -> list[str]:
    messages, more = replacing.replaced(owner.pk, code, seq)
    assert not more
    return [one.text for one in messages]


def test_what_was_replaced_can_be_read(alice: User) -> None:
    code = new(alice)
    exchange(alice, code, "one", "first")
    assert marked(reading.page(alice.pk, code, context_view).messages) == []
    regenerate(alice, code, "second")
    regenerate(alice, code, "third")
    assert marked(reading.page(alice.pk, code, context_view).messages) == [4]
    assert texts(alice, code, 4) == ["first", "second"]
    edit(alice, code, 1, "two")
    assert marked(reading.page(alice.pk, code, context_view).messages) == [5]
    assert texts(alice, code, 5) == ["one", "first", "second", "third"]
    assert texts(alice, code, 6) == []
    exchange(alice, code, "three", "next")
    regenerate(alice, code, "another")
    page = reading.page(alice.pk, code, context_view)
    assert marked(page.messages) == [5, 9]
    assert texts(alice, code, 9) == ["next"]


def test_another_answer_to_an_earlier_question_takes_the_place_of_what_followed(
    alice: User,
) -> None:
    code = new(alice)
    for text in ("one", "two"):
        exchange(alice, code, text, f"on {text}")
    end(replacing.regenerate(alice.pk, code, model="model", process_id=PROCESS_ID, seq=2), "again")
    assert texts(alice, code, 5) == ["on one", "two", "on two"]


def test_whatever_tells_of_a_message_tells_that_it_replaces_others(alice: User) -> None:
    """Breaks when: one of them fetches its messages without ``for_screen``, so that an event takes
    the mark away which the page has."""
    code = new(alice)
    exchange(alice, code, "one", "first")
    accepted = edit(alice, code, 1, "two")
    assert marked(accepted.messages) == [3]
    again = replacing.regenerate(alice.pk, code, model="model", process_id=PROCESS_ID)
    assert marked(again.messages) == [5]
    assert marked(again.changed) == [3]
    ended = end(again, "more")
    assert ended is not None
    assert ended.message is not None
    assert ended.message.replaces
    assert marked(reading.changes(row_of(code).pk, 1, context_view).messages) == [3, 5]
    assert pins.pin(alice.pk, code, 3, on=True, most_tokens=100)[2].replaces
    assert reading.message(alice.pk, code, 3).replaces
    window = reading.page(alice.pk, code, context_view, after=4)
    assert marked(window.messages) == [5], "what it replaces is outside the window"


def test_a_reply_that_said_nothing_is_not_missed(alice: User) -> None:
    """Breaks when: a retry of what failed before its first word is marked, or hides what was said
    before that."""
    code = new(alice)
    exchange(alice, code, "one", "")
    assert marked(regenerate(alice, code, "").messages) == []
    assert marked(regenerate(alice, code, "first").messages) == []
    for text in ("", "", "second"):
        accepted = regenerate(alice, code, text)
        assert marked(accepted.messages) == [accepted.reply_seq]
    assert texts(alice, code, accepted.reply_seq) == ["first"]


def test_many_come_in_parts(alice: User) -> None:
    code = new(alice)
    for number in range(30):
        exchange(alice, code, f"{number}", "an answer")
    edit(alice, code, 1, "from the start")
    first, more = replacing.replaced(alice.pk, code, 61)
    assert [one.seq for one in first] == list(range(1, OLDER_MESSAGES + 1))
    assert more
    rest, more = replacing.replaced(alice.pk, code, 61, after=OLDER_MESSAGES)
    assert [one.seq for one in rest] == list(range(OLDER_MESSAGES + 1, 61))
    assert not more


@pytest.mark.skipif(connection.vendor != "sqlite", reason="counts the steps of SQLite")
def test_r05_much_that_was_replaced_costs_a_page_no_more(alice: User) -> None:
    """Breaks when: each message looks through all that was superseded before it."""
    row = row_of(new(alice))
    steps = []
    for through in (100, 3_000):
        first, now = row.next_seq, timezone.now()
        row.next_seq = first + through
        row.save()
        Message.objects.bulk_create(
            Message(conversation=row, seq=seq, text="x", created_at=now, superseded_at=now)
            for seq in range(first, row.next_seq)
        )
        taken: list[int] = []
        connection.connection.set_progress_handler(partial(taken.append, 0), 100)
        message_page(row)
        connection.connection.set_progress_handler(None, 0)
        steps.append(len(taken))
    assert 0 < steps[0] <= steps[1] < 2 * steps[0]


def test_what_is_not_there_replaces_nothing(alice: User, bob: User) -> None:
    """Breaks when: ``replaced`` takes anybody's conversation, or a superseded message."""
    code = new(alice)
    exchange(alice, code, "one", "first")
    edit(alice, code, 1, "two")
    for person, seq in ((bob, 3), (alice, 1), (alice, 9), (alice, 0)):
        with pytest.raises(NotFound):
            replacing.replaced(person.pk, code, seq)
