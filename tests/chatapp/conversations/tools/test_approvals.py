"""Questions about calls: bound to the call and its exact arguments, answered once, in time."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from chatapp.conversations.messages.reading import message
from chatapp.conversations.tools.approvals import (
    Decision,
    Question,
    ask,
    close,
    decide,
    state_of,
)
from chatapp.conversations.turns import sending
from chatapp.errors import ApprovalChanged, ApprovalOver, NotFound
from chatapp.models import ApprovalState, Message, ToolApproval, ToolPermission, Turn
from compression.tools.approval import exact, fingerprint
from tests.chatapp.talking import at_once, begin, end, new, row_of

pytestmark = [pytest.mark.storage, pytest.mark.django_db(transaction=True)]

CALL = "a1b2c3d4e"
ARGUMENTS = {"path": "notes.txt", "text": "Hello"}
HASH = fingerprint(ARGUMENTS)


def calling(alice: User) -> tuple[str, sending.Accepted]:
    """A conversation whose open turn has called a tool."""
    code = new(alice)
    accepted = begin(alice, code, "Write it down.")
    call = {
        "id": CALL,
        "type": "function",
        "function": {"name": "docs__write", "arguments": exact(ARGUMENTS)},
    }
    Message.objects.filter(turn=accepted.turn, role="assistant").update(tool_calls=[call])
    return code, accepted


def question(code: str, turn: sending.Accepted, **changes: Any) -> Question:
    values: dict[str, Any] = {
        "conversation_id": row_of(code).pk,
        "turn": turn.turn,
        "call_id": CALL,
        "tool": "docs__write",
        "definition_sha256": "d" * 64,
        "arguments": exact(ARGUMENTS),
        "arguments_sha256": HASH,
    }
    return Question(**{**values, **changes})


def test_it_works(alice: User) -> None:
    code, turn = calling(alice)
    before = row_of(code).event_no
    asked = ask(question(code, turn))
    assert asked is not None
    assert asked.event_no == row_of(code).event_no == before + 1
    assert asked.message is not None
    (shown,) = asked.message.approvals
    assert (shown.call_id, shown.tool, shown.state) == (CALL, "docs__write", "waiting")
    assert shown.arguments == exact(ARGUMENTS)
    left = shown.expires_at - timezone.now()
    assert timedelta(minutes=9) < left <= timedelta(minutes=10)
    assert state_of(asked.approval) is ApprovalState.WAITING
    decided = decide(alice.pk, code, CALL, HASH, "once")
    assert decided.event_no == before + 2
    assert state_of(asked.approval) is ApprovalState.ALLOWED
    # A page that is loaded now shows it too.
    assert message(alice.pk, code, 2).approvals[0].state == "allowed"
    assert not ToolPermission.objects.exists()


def test_t06_other_arguments_are_not_allowed(alice: User) -> None:
    """T06: the page shows one thing, and the call has become another.

    Breaks when: a decision names the call alone.
    """
    code, turn = calling(alice)
    asked = ask(question(code, turn))
    assert asked is not None
    with pytest.raises(ApprovalChanged):
        decide(alice.pk, code, CALL, fingerprint({**ARGUMENTS, "text": "hello"}), "once")
    assert state_of(asked.approval) is ApprovalState.WAITING


def test_t06_a_call_asked_again_with_other_arguments(alice: User) -> None:
    """T06: the answer to the first question is none to the second.

    Breaks when: ``ask`` finds the earlier row of the same call.
    """
    code, turn = calling(alice)
    first = ask(question(code, turn))
    other = {"path": "/etc/passwd"}
    second = ask(question(code, turn, arguments=exact(other), arguments_sha256=fingerprint(other)))
    assert first is not None
    assert second is not None
    assert state_of(first.approval) is ApprovalState.WITHDRAWN
    with pytest.raises(ApprovalChanged):
        decide(alice.pk, code, CALL, HASH, "once")
    assert state_of(second.approval) is ApprovalState.WAITING


def test_an_allowed_call_is_asked_about_again_when_it_comes_again(alice: User) -> None:
    """Breaks when: an answer holds for more than one run of a call."""
    code, turn = calling(alice)
    ask(question(code, turn))
    decide(alice.pk, code, CALL, HASH, "once")
    again = ask(question(code, turn))
    assert again is not None
    assert state_of(again.approval) is ApprovalState.WAITING


def test_refused(alice: User) -> None:
    code, turn = calling(alice)
    asked = ask(question(code, turn))
    decide(alice.pk, code, CALL, HASH, "refuse")
    assert asked is not None
    assert state_of(asked.approval) is ApprovalState.REFUSED
    assert ask(question(code, turn)) is not None


def test_always_is_for_this_tool_here_as_it_is_now(alice: User) -> None:
    """T01, T02.

    Breaks when: the permission forgets the conversation, the tool, or its definition.
    """
    code, turn = calling(alice)
    ask(question(code, turn))
    decide(alice.pk, code, CALL, HASH, "always")
    assert ask(question(code, turn, call_id="another00")) is None
    assert ask(question(code, turn, tool="docs__delete")) is not None
    assert ask(question(code, turn, definition_sha256="e" * 64)) is not None
    other, other_turn = calling(alice)
    assert ask(question(other, other_turn)) is not None


def test_one_answer_only(alice: User) -> None:
    """Breaks when: the state is read and then written, instead of by one conditional update."""
    code, turn = calling(alice)
    ask(question(code, turn))

    def answer(decision: Decision) -> str:
        try:
            decide(alice.pk, code, CALL, HASH, decision)
        except ApprovalOver:
            return "over"
        return "decided"

    decisions: tuple[Decision, ...] = ("once", "refuse", "always")
    results = at_once(*(partial(answer, one) for one in decisions * 2))
    assert sorted(map(str, results)) == ["decided"] + ["over"] * 5


def test_nobody_answers_in_time(alice: User) -> None:
    """Breaks when: ``expires_at`` is not looked at."""
    code, turn = calling(alice)
    asked = ask(question(code, turn))
    assert asked is not None
    ToolApproval.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert state_of(asked.approval) is ApprovalState.EXPIRED
    with pytest.raises(ApprovalOver):
        decide(alice.pk, code, CALL, HASH, "once")
    closed = close(asked.approval, ApprovalState.EXPIRED)
    assert closed is not None
    assert closed.message is not None
    assert closed.message.approvals[0].state == "expired"
    assert close(asked.approval, ApprovalState.EXPIRED) is None


@pytest.mark.parametrize("how", ["stopping", "ended"])
def test_the_turn_is_over(alice: User, how: str) -> None:
    """Breaks when: ``decide`` does not look at the turn."""
    code, turn = calling(alice)
    asked = ask(question(code, turn))
    if how == "stopping":
        sending.request_stop(alice.pk, code)
    else:
        end(turn)
        assert Turn.objects.get(pk=turn.turn).finished_at is not None
        assert message(alice.pk, code, 2).approvals[0].state == "withdrawn"
    with pytest.raises(ApprovalOver):
        decide(alice.pk, code, CALL, HASH, "always")
    assert not ToolPermission.objects.exists()
    assert asked is not None
    assert state_of(asked.approval) is ApprovalState.WAITING


def test_a_stranger_decides_nothing(alice: User, bob: User) -> None:
    """Breaks when: the conversation is looked up without its owner."""
    code, turn = calling(alice)
    asked = ask(question(code, turn))
    with pytest.raises(NotFound):
        decide(bob.pk, code, CALL, HASH, "once")
    assert asked is not None
    assert state_of(asked.approval) is ApprovalState.WAITING


def test_a_call_that_nobody_asked_about(alice: User) -> None:
    code, _ = calling(alice)
    with pytest.raises(ApprovalOver):
        decide(alice.pk, code, "nothing00", HASH, "once")
