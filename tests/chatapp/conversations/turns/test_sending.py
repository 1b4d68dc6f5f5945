from __future__ import annotations

import uuid
from dataclasses import replace
from functools import partial

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from chatapp.conversations import drafts, lifecycle, people
from chatapp.conversations.messages.reading import unlocked_snapshot_with_tail
from chatapp.conversations.turns import replacing, sending
from chatapp.errors import (
    MovedOn,
    NotFound,
    NothingQueued,
    NothingToStop,
    TooManyReplies,
    TurnOpen,
)
from chatapp.models import Conversation, Message, Turn, TurnStatus
from compression import store
from compression.types import Trigger
from tests.chatapp.talking import (
    PROCESS_ID,
    at_once,
    begin,
    end,
    exchange,
    live_texts,
    new,
    row_of,
    send,
)

pytestmark = [pytest.mark.storage, pytest.mark.django_db(transaction=True)]


def test_it_works(alice: User) -> None:
    code = new(alice)
    accepted = begin(alice, code, "Hello")
    question, reply = Message.objects.filter(conversation__code=code).order_by("seq")
    assert (question.seq, question.role, question.text, question.status) == (
        1,
        "user",
        "Hello",
        "complete",
    )
    assert (reply.seq, reply.role, reply.text, reply.status) == (2, "assistant", "", "streaming")
    turn = Turn.objects.get(pk=accepted.turn)
    assert question.turn == reply.turn == turn
    assert turn.lease_token == PROCESS_ID
    assert turn.finished_at is None
    assert accepted.fresh
    assert [one.seq for one in accepted.messages] == [1, 2]
    assert row_of(code).next_seq == 3
    assert row_of(code).event_no == accepted.event_no == question.event_no == turn.event_no


def test_its_first_request_is_read_with_it(alice: User) -> None:
    """What the message's turn is asked with is what a request reads just after.

    Breaks when: something is read before it is stored, or left out.
    """
    code = new(alice)
    lifecycle.change(alice.pk, code, {"system_prompt": "In rhyme."})
    people.change(alice.pk, {"instructions": "Be kind."})
    for number in range(3):
        accepted = begin(alice, code, f"number {number}")
        assert accepted.snapshot is not None
        read = unlocked_snapshot_with_tail(accepted.conversation_id)
        assert read is not None
        assert accepted.snapshot == replace(read, tool_servers=False)
        assert accepted.snapshot.own_instructions == "Be kind."
        assert end(accepted, prompt_tokens=9, manifest={"counted": 8}) is not None


def test_while_a_compression_locks_the_input_nothing_is_read_ahead(alice: User) -> None:
    """Breaks when: the request is made of what the compression is about to replace."""
    code = new(alice)
    exchange(alice, code)
    assert store.claim(row_of(code).pk, trigger=Trigger.MANUAL, locks_input=True)
    assert begin(alice, code).snapshot is None


def test_a_stranger_sends_nothing(alice: User, bob: User) -> None:
    code = new(alice)
    exchange(alice, code)
    for work in (
        lambda: send(bob, code),
        lambda: replacing.regenerate(bob.pk, code, model="m", process_id=PROCESS_ID),
        lambda: replacing.edit(
            bob.pk, code, 1, text="x", tokens=1, model="m", process_id=PROCESS_ID
        ),
        lambda: sending.change_queue(bob.pk, code, "remove"),
        lambda: sending.request_stop(bob.pk, code),
        lambda: sending.release(bob.pk, code),
    ):
        with pytest.raises(NotFound):
            work()
    assert Message.objects.count() == 2


def test_i2_a_repeated_send_starts_nothing(alice: User) -> None:
    """Breaks when: ``accept`` begins a turn without looking for the ``client_msg_id``."""
    code, identity = new(alice), uuid.uuid4()
    first = begin(alice, code, "Hello", client_msg_id=identity)
    for _ in range(2):
        again = begin(alice, code, "Hello", client_msg_id=identity)
        assert not again.fresh
        assert (again.turn, again.message_seq, again.reply_seq) == (
            first.turn,
            first.message_seq,
            first.reply_seq,
        )
        end(first)
    assert Message.objects.count() == 2
    assert Turn.objects.count() == 1


def test_i2_one_identity_from_many_threads_is_one_message(alice: User) -> None:
    """Breaks when: ``accept`` reads before it holds the conversation's row."""
    code, identity = new(alice), uuid.uuid4()
    works = [partial(send, alice, code, "Hello", identity) for _ in range(8)]
    results = at_once(*works)
    assert not [one for one in results if isinstance(one, BaseException)]
    accepted = [one for one in results if isinstance(one, sending.Accepted)]
    assert len(accepted) == 8
    assert sum(one.fresh for one in accepted) == 1
    assert len({(one.turn, one.message_seq) for one in accepted}) == 1
    assert Message.objects.count() == 2


def test_i3_seqs_are_unique_and_without_gaps(alice: User) -> None:
    """Eight senders at once: one turn begins, one message waits, six are told so; nothing lost.

    Breaks when: ``_allocate`` reads ``next_seq`` without the row held, or takes a seq for a
    message that is then refused.
    """
    code = new(alice)
    results = at_once(*[partial(send, alice, code, f"text {n}") for n in range(8)])
    began = [one for one in results if isinstance(one, sending.Accepted)]
    queued = [one for one in results if isinstance(one, sending.Queued)]
    refused = [one for one in results if isinstance(one, TurnOpen)]
    assert (len(began), len(queued), len(refused)) == (1, 1, 6)
    for _ in range(3):
        exchange_ends(alice, code)
    seqs = list(Message.objects.order_by("seq").values_list("seq", flat=True))
    assert seqs == list(range(1, row_of(code).next_seq))


def exchange_ends(alice: User, code: str) -> None:
    """End the open turn and send what waits."""
    turn = Turn.objects.filter(finished_at=None).first()
    if turn is not None:
        Turn.objects.filter(pk=turn.pk).update(status="complete", finished_at=turn.started_at)
    sending.accept_queued(row_of(code).pk, count=len, model="model", process_id=PROCESS_ID)


def test_i3_senders_in_many_conversations_do_not_disturb_one_another(alice: User) -> None:
    """Breaks when: numbers are taken from anything but the conversation's own row."""
    codes = [new(alice) for _ in range(8)]
    results = at_once(*[partial(exchange, alice, code) for code in codes])
    assert not [one for one in results if isinstance(one, BaseException)]
    for code in codes:
        seqs = Message.objects.filter(conversation__code=code).values_list("seq", flat=True)
        assert sorted(seqs) == [1, 2]


def test_a_text_waits_while_a_turn_is_open_and_is_sent_when_it_ends(alice: User) -> None:
    code, identity = new(alice), uuid.uuid4()
    first = begin(alice, code, "one")
    queued = send(alice, code, "two", identity)
    assert isinstance(queued, sending.Queued)
    assert row_of(code).draft == "two"
    assert queued.event_no == row_of(code).event_no
    # The same once more, as after a lost answer.
    assert isinstance(send(alice, code, "two", identity), sending.Queued)
    assert (
        sending.accept_queued(row_of(code).pk, count=len, model="m", process_id=PROCESS_ID) is None
    )
    end(first)
    second = sending.accept_queued(row_of(code).pk, count=len, model="m", process_id=PROCESS_ID)
    assert second is not None
    assert live_texts(code) == ["one", "Hello yourself", "two", ""]
    sent = Message.objects.get(seq=3)
    assert (sent.client_msg_id, sent.token_count) == (identity, 3)
    row = row_of(code)
    assert (row.draft, row.draft_client_msg_id, row.send_when_done) == ("", None, False)
    # A repetition that comes late is known.
    assert not begin(alice, code, "two", client_msg_id=identity).fresh


def test_a_second_message_does_not_push_the_waiting_one_away(alice: User) -> None:
    code = new(alice)
    begin(alice, code, "one")
    send(alice, code, "two")
    with pytest.raises(TurnOpen):
        send(alice, code, "three")
    assert row_of(code).draft == "two"


def test_i1_what_waits_is_not_lost_when_its_turn_ended_without_sending_it(alice: User) -> None:
    """The process died in between; the next message must not take the place of what waits.

    Breaks when: ``accept`` looks at ``send_when_done`` only while a turn is open.
    """
    code = new(alice)
    first = begin(alice, code, "one")
    send(alice, code, "two")
    assert sending.orphaned_queues() == []
    end(first)
    assert sending.orphaned_queues() == [row_of(code).pk]
    with pytest.raises(TurnOpen):
        send(alice, code, "three")
    assert sending.accept_queued(row_of(code).pk, count=len, model="m", process_id=PROCESS_ID)
    assert live_texts(code)[2] == "two"
    assert sending.orphaned_queues() == []


def test_what_waits_is_sent_once_by_whoever_comes_first(alice: User) -> None:
    code = new(alice)
    first = begin(alice, code, "one")
    send(alice, code, "two")
    end(first)
    pk = row_of(code).pk
    work = partial(sending.accept_queued, pk, count=len, model="m", process_id=PROCESS_ID)
    results = at_once(*[work] * 4)
    assert sum(isinstance(one, sending.Accepted) for one in results) == 1
    assert results.count(None) == 3
    assert Message.objects.filter(text="two").count() == 1


def test_what_waits_is_answered_by_the_model_chosen_meanwhile(alice: User) -> None:
    code = new(alice)
    first = begin(alice, code, "one")
    send(alice, code, "two")
    lifecycle.change(alice.pk, code, {"model": "another"})
    end(first)
    second = sending.accept_queued(row_of(code).pk, count=len, model="model", process_id=PROCESS_ID)
    assert second is not None
    assert second.model == "another"


def test_the_queue_can_be_edited_and_emptied(alice: User) -> None:
    code = new(alice)
    first = begin(alice, code, "one")
    send(alice, code, "two")
    before = row_of(code).event_no
    assert sending.change_queue(alice.pk, code, "edit", "two and a half") == before + 1
    assert row_of(code).draft == "two and a half"
    sending.change_queue(alice.pk, code, "remove")
    row = row_of(code)
    assert (row.draft, row.send_when_done) == ("two and a half", False)
    with pytest.raises(NothingQueued):
        sending.change_queue(alice.pk, code, "edit", "nothing waits")
    end(first)
    assert sending.accept_queued(row.pk, count=len, model="m", process_id=PROCESS_ID) is None


def test_stop_holds_what_is_queued(alice: User) -> None:
    """It is not sent by anybody but its writer, and neither a draft nor another message takes its
    place.

    Breaks when: ``request_stop`` leaves the message in the queue, or ``save_draft``, ``accept`` or
    a sweep does not ask whether one is held.
    """
    code = new(alice)
    first, queued = begin(alice, code, "one"), uuid.uuid4()
    send(alice, code, "two", client_msg_id=queued)
    assert sending.request_stop(alice.pk, code, hold=True)[2]
    end(first, status=TurnStatus.STOPPED)
    assert sending.orphaned_queues() == []
    drafts.save_draft(alice.pk, code, "")
    with pytest.raises(TurnOpen):
        send(alice, code, "three")
    assert isinstance(send(alice, code, "two", client_msg_id=queued), sending.Queued)
    more = begin(alice, code, "Go on.", beside_held=True)
    with pytest.raises(TurnOpen):
        send(alice, code, "Go on.", beside_held=True)
    end(more)
    assert sending.accept_queued(row_of(code).pk, count=len, model="m", process_id="p") is None
    row = row_of(code)
    assert (row.draft, row.held) == ("two", True)
    assert sending.release(alice.pk, code) is None
    sent = sending.accept_queued(row.pk, count=len, model="m", process_id=PROCESS_ID)
    assert sent is not None
    assert sent.messages[0].text == "two"
    end(sent)
    assert row_of(code).held is False


def test_what_is_held_can_become_a_draft(alice: User) -> None:
    """Breaks when: ``remove`` leaves the identifier, so that the draft still counts as held."""
    code = new(alice)
    first = begin(alice, code, "one")
    send(alice, code, "two")
    sending.request_stop(alice.pk, code, hold=True)
    end(first, status=TurnStatus.STOPPED)
    sending.change_queue(alice.pk, code, "remove")
    assert (row_of(code).draft, row_of(code).held) == ("two", False)
    drafts.save_draft(alice.pk, code, "two and a half")
    assert begin(alice, code, "two and a half").fresh


def test_a_sender_who_has_not_seen_the_last_message_is_told(alice: User) -> None:
    code = new(alice)
    exchange(alice, code)
    with pytest.raises(MovedOn) as caught:
        send(alice, code, last_seen_seq=1)
    assert caught.value.fields == {"last_seq": 2}
    assert begin(alice, code, last_seen_seq=2).fresh


def test_a_deleted_conversation_takes_nothing(alice: User) -> None:
    code = new(alice)
    first = begin(alice, code)
    send(alice, code, "two")
    lifecycle.set_flag(alice.pk, code, "deleted_at", on=True)
    end(first)
    pk = Conversation.objects.get(code=code).pk
    assert sending.accept_queued(pk, count=len, model="m", process_id=PROCESS_ID) is None
    assert sending.orphaned_queues() == []
    with pytest.raises(NotFound):
        send(alice, code)


def test_one_turn_at_a_time(alice: User) -> None:
    code = new(alice)
    exchange(alice, code)
    begin(alice, code)
    with pytest.raises(TurnOpen):
        replacing.regenerate(alice.pk, code, model="m", process_id=PROCESS_ID)
    with pytest.raises(TurnOpen):
        replacing.edit(alice.pk, code, 1, text="x", tokens=1, model="m", process_id=PROCESS_ID)
    assert Turn.objects.filter(finished_at=None).count() == 1


def test_a_stop_is_asked_for_once(alice: User) -> None:
    code = new(alice)
    with pytest.raises(NothingToStop):
        sending.request_stop(alice.pk, code)
    accepted = begin(alice, code)
    asked = (accepted.conversation_id, accepted.turn, False)
    assert sending.request_stop(alice.pk, code) == asked
    first = Turn.objects.get(pk=accepted.turn).stop_requested_at
    sending.request_stop(alice.pk, code)
    assert Turn.objects.get(pk=accepted.turn).stop_requested_at == first
    end(accepted, status=TurnStatus.STOPPED)
    with pytest.raises(NothingToStop):
        sending.request_stop(alice.pk, code)


def open_turns(owner: User) -> int:
    return Turn.objects.filter(conversation__owner=owner, finished_at=None).count()


def test_r02_replies_of_one_person_at_once_are_bounded(
    alice: User, bob: User, settings: Settings
) -> None:
    """A hundred sends in as many conversations, ten at once (the pool has no more for all): as many
    begin as may, nothing is stored of the others, and another person is not affected.

    Breaks when: open turns are counted without the owner's row held (on PostgreSQL), or of one
    conversation instead of one person.
    """
    settings.REPLIES_PER_USER = 3
    sends = [partial(send, alice, new(alice)) for _ in range(100)]
    results = [one for first in range(0, 100, 10) for one in at_once(*sends[first : first + 10])]
    begun = [one for one in results if isinstance(one, sending.Accepted)]
    refused = [one for one in results if isinstance(one, TooManyReplies)]
    assert (len(begun), len(refused)) == (3, 97)
    assert refused[0].retryable
    assert refused[0].fields == {"most": 3}
    assert Message.objects.count() == 6
    assert begin(bob, new(bob)).fresh
    # One that ends makes room for one.
    end(begun[0])
    assert begin(alice, new(alice)).fresh
    assert open_turns(alice) == 3


def test_r02_neither_a_repeated_send_nor_a_waiting_one_is_refused(
    alice: User, settings: Settings
) -> None:
    """What waits is sent when there is room, and nothing of a refused edit remains.

    Breaks when: the room is looked at before the ``client_msg_id``, or what waits is dropped.
    """
    code, other, identity = new(alice), new(alice), uuid.uuid4()
    first = begin(alice, code, "Hello", client_msg_id=identity)
    assert isinstance(send(alice, code, "Then this"), sending.Queued)
    settings.REPLIES_PER_USER = 1
    assert begin(alice, code, "Hello", client_msg_id=identity).turn == first.turn
    settings.REPLIES_PER_USER = 2
    second = begin(alice, other)
    end(first)
    settings.REPLIES_PER_USER = 1
    conversation = row_of(code).pk

    def waiting() -> sending.Accepted | None:
        return sending.accept_queued(conversation, count=len, model="model", process_id=PROCESS_ID)

    assert waiting() is None
    assert sending.orphaned_queues() == [conversation]
    with pytest.raises(TooManyReplies):
        replacing.regenerate(alice.pk, code, model="m", process_id=PROCESS_ID)
    with pytest.raises(TooManyReplies):
        replacing.edit(alice.pk, code, 1, text="x", tokens=1, model="m", process_id=PROCESS_ID)
    assert live_texts(code) == ["Hello", "Hello yourself"]
    end(second)
    assert waiting() is not None
    assert live_texts(code) == ["Hello", "Hello yourself", "Then this", ""]
