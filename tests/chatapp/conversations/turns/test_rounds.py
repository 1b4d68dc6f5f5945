"""The writes between two rounds of a turn."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User

from chatapp.context.wire import NO_RESULT, wire_of
from chatapp.conversations.messages.reading import last_reply_has_text, stored_messages
from chatapp.conversations.turns import progress, replacing, rounds, sending
from chatapp.models import Message, Turn, TurnStatus
from tests.chatapp.talking import PROCESS_ID, at_once, begin, end, expire, new, row_of

pytestmark = [pytest.mark.storage, pytest.mark.django_db(transaction=True)]

OTHER = "another process"


def calls(*ids: str, text: str = "I will look.") -> rounds.Calls:
    function = {"name": "weather", "arguments": '{"city": "Malmö"}'}
    return rounds.Calls(
        text=text,
        reasoning="Hm.",
        reasoning_field="reasoning_content",
        reasoning_tokens=2,
        tool_calls=[{"id": one, "type": "function", "function": function} for one in ids],
        tokens=20,
    )


def result(call_id: str, text: str = "Sunny.") -> rounds.Result:
    return rounds.Result(call_id=call_id, name="weather", text=text, tokens=6, seconds=0.25)


def called(owner: User, code: str, *ids: str) -> sending.Accepted:
    """A turn whose first reply has ended with calls."""
    accepted = begin(owner, code)
    stored = rounds.store_calls(
        PROCESS_ID, accepted.turn, accepted.reply_id, calls(*(ids or ("a",)))
    )
    assert stored is not None
    return accepted


def rows(code: str) -> list[tuple[int, str, str, str]]:
    found = Message.objects.filter(conversation__code=code).order_by("seq")
    return list(found.values_list("seq", "role", "status", "text"))


def sent(code: str) -> list[dict[str, Any]]:
    return [one.message for one in wire_of(stored_messages(row_of(code).pk, after_seq=0))]


def test_it_works(alice: User) -> None:
    """I3: the messages of a round are numbered without gaps, and each change is counted."""
    code = new(alice)
    accepted = called(alice, code, "a", "b")
    before = row_of(code).event_no
    assert Turn.objects.get(pk=accepted.turn).status == TurnStatus.TOOLS
    stored = [
        rounds.store_result(PROCESS_ID, accepted.turn, result("b")),
        rounds.store_result(PROCESS_ID, accepted.turn, result("a", "Rainy.")),
        rounds.begin_reply(PROCESS_ID, accepted.turn),
    ]
    assert [one.event_no for one in stored if one] == [before + 1, before + 2, before + 3]
    reply = stored[-1]
    assert reply is not None
    ending = progress.Ending(status=TurnStatus.COMPLETE, text="So.", tokens=5)
    ended = progress.finish(PROCESS_ID, accepted.turn, reply.message_id, ending)
    assert ended is not None
    assert ended.message is not None
    assert (ended.message.seq, ended.turn.reply_seq, ended.turn.seq) == (5, 2, 5)
    assert rows(code) == [
        (1, "user", "complete", "Hello"),
        (2, "assistant", "complete", "I will look."),
        (3, "tool", "complete", "Sunny."),
        (4, "tool", "complete", "Rainy."),
        (5, "assistant", "complete", "So."),
    ]
    assert row_of(code).next_seq == 6
    assert [one.get("tool_call_id") for one in sent(code)] == [None, None, "a", "b", None]
    message = Message.objects.get(conversation__code=code, seq=3)
    assert (message.tool_name, message.seconds, message.token_count) == ("weather", 0.25, 6)


def test_a_process_that_lost_the_turn_changes_nothing(alice: User) -> None:
    """Breaks when: a write of a round does not ask who holds the turn."""
    code = new(alice)
    accepted = called(alice, code)
    before, event_no = rows(code), row_of(code).event_no
    assert rounds.store_calls(OTHER, accepted.turn, accepted.reply_id, calls("x")) is None
    assert rounds.store_result(OTHER, accepted.turn, result("a")) is None
    assert rounds.begin_reply(OTHER, accepted.turn) is None
    assert rounds.add_notice(OTHER, accepted.turn, 2, "notice", 9) is None
    assert (rows(code), row_of(code).event_no) == (before, event_no)


def test_a_result_after_the_end_is_not_stored(alice: User) -> None:
    """Nor begins a reply. Breaks when: an ended turn still takes writes."""
    code = new(alice)
    accepted = called(alice, code)
    assert end(accepted, "", TurnStatus.STOPPED) is not None
    before = rows(code)
    assert rounds.store_result(PROCESS_ID, accepted.turn, result("a")) is None
    assert rounds.begin_reply(PROCESS_ID, accepted.turn) is None
    assert rows(code) == before


def test_an_end_in_mid_tool_leaves_the_calls_as_they_are(alice: User) -> None:
    """Breaks when: the end writes its text into a message that was complete."""
    code = new(alice)
    accepted = called(alice, code)
    assert end(accepted, "", TurnStatus.STOPPED) is not None
    assert rows(code)[-1] == (2, "assistant", "complete", "I will look.")
    assert Message.objects.get(pk=accepted.reply_id).token_count == 20
    assert sent(code)[-1] == {"role": "tool", "tool_call_id": "a", "content": NO_RESULT}
    assert last_reply_has_text(row_of(code).pk), "and may be continued"
    begin(alice, code, "And now?")
    roles = [one["role"] for one in sent(code)]
    assert roles == ["user", "assistant", "tool", "assistant", "user"]
    assert sent(code)[3]["content"] == "[no reply: stopped]"


def test_i5_a_turn_that_died_in_mid_tool_is_ended_by_any_process(alice: User) -> None:
    """Its calls stay, nothing is left streaming, and what came is said to be kept.

    Breaks when: the sweep looks at messages that are streaming only.
    """
    code = new(alice)
    accepted = called(alice, code, "a", "b")
    assert rounds.store_result(PROCESS_ID, accepted.turn, result("a")) is not None
    expire(accepted.turn)
    (ended,) = progress.sweep(len)
    assert (ended.turn.status, ended.turn.seq) == ("interrupted", 2)
    assert ended.turn.error is not None
    assert ended.turn.error["partial_kept"] is True
    assert rounds.store_result(PROCESS_ID, accepted.turn, result("b")) is None
    contents = [one["content"] for one in sent(code) if one["role"] == "tool"]
    assert contents == ["Sunny.", NO_RESULT]


def test_a_reply_begun_while_the_turn_was_stopped_does_not_stream_for_ever(alice: User) -> None:
    """Breaks when: the end changes only the message that its process knew of."""
    code = new(alice)
    accepted = called(alice, code)
    assert rounds.store_result(PROCESS_ID, accepted.turn, result("a")) is not None
    assert rounds.begin_reply(PROCESS_ID, accepted.turn) is not None
    assert end(accepted, "", TurnStatus.STOPPED) is not None
    assert rows(code)[-1] == (4, "assistant", "partial", "")


def test_i3_results_at_once_have_numbers_of_their_own(alice: User) -> None:
    """Breaks when: the next number is read before the conversation is locked."""
    code = new(alice)
    ids = [f"call{number}" for number in range(6)]
    accepted = called(alice, code, *ids)
    stored = at_once(
        *(
            lambda one=one: rounds.store_result(PROCESS_ID, accepted.turn, result(one))
            for one in ids
        )
    )
    assert all(isinstance(one, rounds.Stored) for one in stored), stored
    assert [seq for seq, *_ in rows(code)] == list(range(1, 9))
    assert len({one.event_no for one in stored if isinstance(one, rounds.Stored)}) == 6


def test_a_notice_is_sent_with_its_message(alice: User) -> None:
    code = new(alice)
    accepted = called(alice, code)
    assert rounds.store_result(PROCESS_ID, accepted.turn, result("a")) is not None
    noted = rounds.add_notice(PROCESS_ID, accepted.turn, 3, "[Wrap up.]", 11)
    assert noted is not None
    assert noted.message.token_count == 11
    assert sent(code)[-1]["content"] == "Sunny.\n\n[Wrap up.]"


def test_a_turn_of_many_messages_is_answered_again_and_edited_as_a_whole(alice: User) -> None:
    """I14. Breaks when: only the last message of a turn is superseded."""
    code = new(alice)
    accepted = called(alice, code)
    rounds.store_result(PROCESS_ID, accepted.turn, result("a"))
    reply = rounds.begin_reply(PROCESS_ID, accepted.turn)
    assert reply is not None
    ending = progress.Ending(status=TurnStatus.COMPLETE, text="So.", tokens=5)
    assert progress.finish(PROCESS_ID, accepted.turn, reply.message_id, ending) is not None
    again = replacing.regenerate(alice.pk, code, model="model", process_id=PROCESS_ID)
    assert [one.seq for one in again.changed] == [2, 3, 4, 1]
    assert [one["role"] for one in sent(code)] == ["user"]
    assert end(again, "Now then.") is not None
    replacing.edit(alice.pk, code, 1, text="Other", tokens=5, model="model", process_id=PROCESS_ID)
    assert [one["content"] for one in sent(code)] == ["Other"]
