from __future__ import annotations

from functools import partial

import pytest
from django.contrib.auth.models import User
from django.db.models import F

from chatapp.conversations.messages.reading import message
from chatapp.conversations.messages.views import turn_views, with_questions
from chatapp.conversations.turns import progress, sending
from chatapp.conversations.turns.progress import Checkpoint, Ending, Seen
from chatapp.models import Conversation, Message, Turn, TurnStatus
from tests.chatapp.talking import PROCESS_ID, at_once, begin, end, exchange, expire, new, row_of

pytestmark = [pytest.mark.storage, pytest.mark.django_db(transaction=True)]


def count(text: str) -> int:
    return len(text)


def checkpoint(accepted: sending.Accepted, text: str, reasoning: str = "") -> None:
    progress.checkpoint(
        [
            Checkpoint(
                message_id=accepted.reply_id, turn=accepted.turn, text=text, reasoning=reasoning
            )
        ]
    )


def test_it_works(alice: User) -> None:
    code = new(alice)
    accepted = begin(alice, code)
    progress.first_tokens([accepted.turn])
    assert Turn.objects.get().status == "streaming"
    checkpoint(accepted, "Hello you")
    assert Message.objects.get(pk=accepted.reply_id).status == "streaming"
    ended = end(accepted, "Hello yourself", prompt_tokens=3, manifest={"boundary": 0})
    assert ended is not None
    turn, reply = Turn.objects.get(), Message.objects.get(pk=accepted.reply_id)
    assert (turn.status, turn.prompt_tokens, turn.manifest) == ("complete", 3, {"boundary": 0})
    assert turn.finished_at is not None
    assert (reply.text, reply.status, reply.token_count) == ("Hello yourself", "complete", 7)
    assert ended.event_no == row_of(code).event_no == turn.event_no == reply.event_no
    assert ended.message is not None
    assert ended.message.text == "Hello yourself"
    assert ended.turn.status == "complete"


def test_i5_a_turn_ends_once(alice: User) -> None:
    """Breaks when: ``finish`` updates turns that have a ``finished_at``."""
    accepted = begin(alice, new(alice))
    assert end(accepted, "first") is not None
    number = row_of(accepted_code(accepted)).event_no
    assert end(accepted, "second", TurnStatus.STOPPED) is None
    assert Turn.objects.get().status == "complete"
    assert Message.objects.get(pk=accepted.reply_id).text == "first"
    assert row_of(accepted_code(accepted)).event_no == number


def test_an_end_is_announced_as_it_is_stored(alice: User) -> None:
    """With what its process saw of the conversation, and with what it did not see any more.

    Breaks when: ``ended_turn`` leaves something out, or ``seen`` is believed unseen.
    """
    code = new(alice)
    for later in (0, 1):
        accepted = begin(alice, code, "Why?")
        progress.first_tokens([accepted.turn])
        seen = Seen(conversation_id=accepted.conversation_id, event_no=accepted.event_no)
        Conversation.objects.filter(code=code).update(event_no=F("event_no") + later)
        ending = Ending(status=TurnStatus.FAILED, text="So", error={"code": "x", "message": "y"})
        ended = progress.finish(PROCESS_ID, accepted.turn, accepted.reply_id, ending, seen=seen)
        assert ended is not None
        assert ended.turn == turn_views(with_questions(Turn.objects.filter(pk=accepted.turn)))[0]
        assert ended.turn.message_seq == accepted.message_seq
        assert ended.message == message(alice.pk, code, accepted.reply_seq)
        assert ended.event_no == row_of(code).event_no == accepted.event_no + 1 + later


def accepted_code(accepted: sending.Accepted) -> str:
    return str(Turn.objects.get(pk=accepted.turn).conversation.code)


def test_i5_of_finish_and_sweep_at_once_one_wins(alice: User) -> None:
    """Breaks when: the UPDATE of ``finish`` or of ``_interrupt`` does not ask for an open turn."""
    for number in range(4):
        accepted = begin(alice, new(alice))
        checkpoint(accepted, "so far")
        expire(accepted.turn)
        ending = Ending(status=TurnStatus.COMPLETE, text="so far and the rest")
        results = at_once(
            partial(progress.sweep, count),
            partial(progress.finish, PROCESS_ID, accepted.turn, accepted.reply_id, ending),
            partial(progress.sweep, count),
            partial(progress.finish, PROCESS_ID, accepted.turn, accepted.reply_id, ending),
        )
        assert not [one for one in results if isinstance(one, BaseException)], number
        turn = Turn.objects.get(pk=accepted.turn)
        reply = Message.objects.get(pk=accepted.reply_id)
        assert (turn.status, reply.status, reply.text) in {
            ("complete", "complete", "so far and the rest"),
            ("interrupted", "partial", "so far"),
        }
        assert sum(bool(one) for one in results) == 1


def test_only_the_holder_ends_a_turn(alice: User) -> None:
    accepted = begin(alice, new(alice))
    ending = Ending(status=TurnStatus.COMPLETE, text="not mine")
    assert progress.finish("another", accepted.turn, accepted.reply_id, ending) is None
    assert progress.finish(PROCESS_ID, 999_999, accepted.reply_id, ending) is None
    assert Turn.objects.get().finished_at is None
    assert Message.objects.get(pk=accepted.reply_id).text == ""


def test_i7_a_late_checkpoint_does_not_overwrite_the_final_text(alice: User) -> None:
    """Breaks when: ``checkpoint`` does not ask for a message that is still streaming."""
    accepted = begin(alice, new(alice))
    end(accepted, "the whole reply")
    checkpoint(accepted, "the who")
    assert Message.objects.get(pk=accepted.reply_id).text == "the whole reply"
    progress.first_tokens([accepted.turn])
    assert Turn.objects.get().status == "complete"


@pytest.mark.parametrize("status", [TurnStatus.COMPLETE, TurnStatus.TRUNCATED, TurnStatus.FILTERED])
@pytest.mark.parametrize("text", ["", "  \n"])
def test_i6_a_blank_reply_is_never_complete(alice: User, status: TurnStatus, text: str) -> None:
    """Breaks when: ``finish`` goes by the turn's status alone."""
    accepted = begin(alice, new(alice))
    end(accepted, text, status)
    assert Message.objects.get(pk=accepted.reply_id).status == "partial"


@pytest.mark.parametrize(
    "status", [TurnStatus.STOPPED, TurnStatus.FAILED, TurnStatus.INTERRUPTED, TurnStatus.BLOCKED]
)
def test_i6_a_reply_that_broke_off_is_partial(alice: User, status: TurnStatus) -> None:
    """Breaks when: any end counts as a good one."""
    accepted = begin(alice, new(alice))
    error = {"code": "llm_cut", "message": "It broke off."}
    ended = end(accepted, "as far as it came", status, error=error)
    assert ended is not None
    assert ended.turn.error == error
    assert Turn.objects.get().error_code == "llm_cut"
    reply = Message.objects.get(pk=accepted.reply_id)
    assert (reply.status, reply.text) == ("partial", "as far as it came")


def test_i5_the_sweep_ends_what_a_dead_process_left_with_its_text(alice: User) -> None:
    """Breaks when: the sweep leaves expired turns open, or writes over their text."""
    accepted, other = begin(alice, new(alice)), begin(alice, new(alice))
    checkpoint(accepted, "as far as it came", "thoughts")
    expire(accepted.turn)
    (ended,) = progress.sweep(count)
    assert ended.turn.turn == accepted.turn
    assert ended.turn.status == "interrupted"
    assert ended.turn.error is not None
    assert ended.turn.error["code"] == "interrupted"
    assert ended.turn.error["partial_kept"] is True
    assert "while this reply was written" in ended.turn.error["message"]
    reply = Message.objects.get(pk=accepted.reply_id)
    assert (reply.text, reply.reasoning, reply.status, reply.token_count) == (
        "as far as it came",
        "thoughts",
        "partial",
        len("as far as it came"),
    )
    assert Turn.objects.get(pk=other.turn).finished_at is None
    assert progress.sweep(count) == []


def test_i5_what_is_abandoned_is_ended_by_the_next_sweep(alice: User) -> None:
    """Breaks when: the lease of an abandoned turn has to expire, or ended turns are touched."""
    opened, ended = begin(alice, new(alice)), begin(alice, new(alice))
    end(ended)
    before = Turn.objects.get(pk=ended.turn).lease_expires_at
    progress.expire_open_turns()
    assert [one.turn.turn for one in progress.sweep(count)] == [opened.turn]
    assert Turn.objects.get(pk=ended.turn).lease_expires_at == before


def test_the_sweep_says_when_nothing_was_kept(alice: User) -> None:
    accepted = begin(alice, new(alice))
    expire(accepted.turn)
    (ended,) = progress.sweep(count)
    assert ended.turn.error is not None
    assert ended.turn.error["partial_kept"] is False
    assert "before the reply began" in ended.turn.error["message"]
    # The conversation goes on.
    begin(alice, accepted_code(accepted))


def test_a_lease_is_renewed_by_its_holder_only_and_only_while_it_holds(alice: User) -> None:
    mine, lost, ended = (begin(alice, new(alice)) for _ in range(3))
    theirs = begin(alice, new(alice), process_id="another")
    expire(lost.turn)
    end(ended)
    before = Turn.objects.get(pk=theirs.turn).lease_expires_at
    asked = [mine.turn, lost.turn, ended.turn, theirs.turn]
    old = Turn.objects.get(pk=mine.turn).lease_expires_at
    assert progress.renew(PROCESS_ID, asked) == {lost.turn, ended.turn, theirs.turn}
    assert Turn.objects.get(pk=theirs.turn).lease_expires_at == before
    renewed = Turn.objects.get(pk=mine.turn).lease_expires_at
    assert old is not None
    assert renewed is not None
    assert renewed > old


def test_stops_are_told_to_who_runs_the_turns(alice: User) -> None:
    accepted, other = begin(alice, new(alice)), begin(alice, new(alice))
    sending.request_stop(alice.pk, accepted_code(accepted))
    assert progress.stops_requested([accepted.turn, other.turn]) == [accepted.turn]


def test_the_first_piece_is_noted_once(alice: User) -> None:
    accepted = begin(alice, new(alice))
    progress.first_tokens([accepted.turn])
    first = Turn.objects.get().first_token_at
    progress.first_tokens([accepted.turn])
    assert Turn.objects.get().first_token_at == first


def test_truncation_is_a_stored_change(alice: User) -> None:
    code = new(alice)
    exchange(alice, code)
    before = row_of(code).event_no
    progress.set_truncated(row_of(code).pk, 2)
    assert row_of(code).event_no == before + 1
    assert row_of(code).truncated_through == 2
