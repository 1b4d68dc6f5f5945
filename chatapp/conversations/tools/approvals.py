"""The approval of calls: asked, decided once, expired or withdrawn."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from chatapp.conversations.messages.paging import for_screen
from chatapp.conversations.messages.views import message_view
from chatapp.conversations.ownership import owned
from chatapp.errors import ApprovalChanged, ApprovalOver, NotFound
from chatapp.live.view_models import MessageView
from chatapp.models import (
    ApprovalState,
    Conversation,
    Message,
    MessageRole,
    ToolApproval,
    ToolPermission,
)
from compression.database import in_database_thread

#: How long a question waits for its answer.
LIFETIME = timedelta(minutes=10)

Decision = Literal["once", "always", "refuse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A call that may run only if somebody says so."""

    conversation_id: int
    turn: int
    call_id: str
    tool: str
    definition_sha256: str
    arguments: str
    arguments_sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A question that was asked or answered, as announced to viewers."""

    approval: int
    conversation_id: int
    event_no: int
    message: MessageView | None
    """The message that shows it; None if the call is in no stored message."""


@transaction.atomic
def ask(question: Question) -> Change | None:
    """Store a question; None if its tool is always allowed there.

    A question about the same call that still waits is withdrawn: its arguments were others.
    """
    always = ToolPermission.objects.filter(
        conversation_id=question.conversation_id,
        tool=question.tool,
        definition_sha256=question.definition_sha256,
    )
    if always.exists():
        return None
    event_no = _number(question.conversation_id)
    ToolApproval.objects.filter(
        turn_id=question.turn, call_id=question.call_id, state=ApprovalState.WAITING
    ).update(state=ApprovalState.WITHDRAWN, decided_at=Now())
    message = _message_with(question.turn, question.call_id)
    row = ToolApproval.objects.create(
        conversation_id=question.conversation_id,
        turn_id=question.turn,
        message_id=message,
        call_id=question.call_id,
        tool=question.tool,
        definition_sha256=question.definition_sha256,
        arguments=question.arguments,
        arguments_sha256=question.arguments_sha256,
        expires_at=Now() + LIFETIME,
    )
    return _change(row.pk, question.conversation_id, event_no, message)


@transaction.atomic
def decide(
    user_id: int, code: str, call_id: str, arguments_sha256: str, decision: Decision
) -> Change:
    """Answer the question about a call whose arguments have this hash.

    Raises NotFound, ApprovalChanged for other arguments, and ApprovalOver if the question no longer
    waits: decided on another page, expired, or its turn has ended.
    """
    conversation = owned(user_id, code)
    event_no = _number(conversation.pk)
    row = conversation.tool_approvals.filter(call_id=call_id).order_by("-pk").first()
    if row is None:
        raise ApprovalOver
    if row.arguments_sha256 != arguments_sha256:
        raise ApprovalChanged
    state = ApprovalState.REFUSED if decision == "refuse" else ApprovalState.ALLOWED
    waiting = ToolApproval.objects.filter(
        pk=row.pk,
        state=ApprovalState.WAITING,
        expires_at__gt=Now(),
        turn__finished_at=None,
        turn__stop_requested_at=None,
    )
    if not waiting.update(state=state, decided_at=Now()):
        raise ApprovalOver
    if decision == "always":
        ToolPermission.objects.get_or_create(
            conversation=conversation, tool=row.tool, definition_sha256=row.definition_sha256
        )
    return _change(row.pk, conversation.pk, event_no, row.message_id)


def state_of(approval: int) -> ApprovalState:
    """The state of a question; one that is gone with its conversation is withdrawn."""
    found = ToolApproval.objects.filter(pk=approval)
    overdue = found.filter(state=ApprovalState.WAITING, expires_at__lte=Now())
    if overdue.exists():
        return ApprovalState.EXPIRED
    state = found.values_list("state", flat=True).first()
    return ApprovalState(state) if state else ApprovalState.WITHDRAWN


@transaction.atomic
def close(approval: int, state: ApprovalState) -> Change | None:
    """End a question that nobody answered; None if somebody has."""
    row = ToolApproval.objects.filter(pk=approval).first()
    if row is None:
        return None
    event_no = _number(row.conversation_id)
    waiting = ToolApproval.objects.filter(pk=approval, state=ApprovalState.WAITING)
    if not waiting.update(state=state, decided_at=Now()):
        transaction.set_rollback(True)
        return None
    return _change(approval, row.conversation_id, event_no, row.message_id)


def _number(conversation_id: int) -> int:
    """Count one more stored change of the conversation, whose row stays locked."""
    Conversation.objects.filter(pk=conversation_id).update(event_no=F("event_no") + 1)
    found = Conversation.objects.filter(pk=conversation_id).values_list("event_no", flat=True)
    event_no = found.first()
    if event_no is None:
        raise NotFound
    return event_no


def _message_with(turn: int, call_id: str) -> int | None:
    """The id of the message of a turn that holds a call."""
    replies = Message.objects.filter(turn_id=turn, role=MessageRole.ASSISTANT)
    for key, calls in replies.order_by("-seq").values_list("pk", "tool_calls"):
        if any(isinstance(call, dict) and call.get("id") == call_id for call in calls):
            return key
    return None


def _change(approval: int, conversation_id: int, event_no: int, message: int | None) -> Change:
    """The change, with the number of the message that shows it stamped."""
    shown = None
    if message is not None:
        Message.objects.filter(pk=message).update(event_no=event_no)
        shown = for_screen(Message.objects.filter(pk=message)).first()
    return Change(
        approval=approval,
        conversation_id=conversation_id,
        event_no=event_no,
        message=message_view(shown) if shown else None,
    )


aask = in_database_thread(ask)
adecide = in_database_thread(decide)
astate_of = in_database_thread(state_of, lane="background")
aclose = in_database_thread(close)
