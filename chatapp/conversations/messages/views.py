"""Stored messages and turns in the form that is shown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from django.db.models import BigIntegerField, F, QuerySet

from chatapp.context.tokens import MESSAGE_OVERHEAD
from chatapp.conversations.messages.paging import for_screen
from chatapp.live.view_models import ApprovalView, MessageView, TurnView
from chatapp.models import ApprovalState, Message, MessageRole, Turn
from compression.store.worded import worded

_TALKING = (MessageRole.USER, MessageRole.ASSISTANT)


class _Said(NamedTuple):
    """One message of a turn."""

    role: str
    seq: int
    token_count: int


def message_view(row: Message) -> MessageView:
    """A stored message in the form that is shown; needs a row from ``paging.for_screen``."""
    turn = row.turn if row.role == MessageRole.ASSISTANT else None
    ended = turn is not None and turn.finished_at is not None and not row.tool_calls
    return MessageView(
        seq=row.seq,
        role=row.role,
        text=row.text,
        status=row.status,
        event_no=row.event_no,
        created_at=row.created_at,
        turn=row.turn_id,
        reasoning=row.reasoning,
        added_context=row.added_context,
        tool_calls=row.tool_calls,
        tool_call_id=row.tool_call_id,
        tool_name=row.tool_name,
        seconds=row.seconds,
        approvals=_approval_views(row) if row.tool_calls else [],
        token_count=row.token_count,
        pinned=row.pinned_at is not None,
        masked=row.masked_at is not None,
        superseded=row.superseded_at is not None,
        replaces=getattr(row, "replaced_at", None) is not None and row.superseded_at is None,
        client_msg_id=str(row.client_msg_id) if row.client_msg_id else None,
        model=turn.model if turn else "",
        usage=usage_view(turn) if turn and ended else {},
    )


def _approval_views(row: Message) -> list[ApprovalView]:
    """The questions about a message's calls. One that waits for nobody any more is over."""
    ended = row.turn is None or row.turn.finished_at is not None
    return [
        ApprovalView(
            call_id=one.call_id,
            tool=one.tool,
            state=ApprovalState.WITHDRAWN
            if ended and one.state == ApprovalState.WAITING
            else one.state,
            arguments=one.arguments,
            fingerprint=one.arguments_sha256,
            expires_at=one.expires_at,
        )
        for one in row.tool_approvals.order_by("pk")
    ]


def usage_view(turn: Turn) -> dict[str, Any]:
    """The tokens and the cost of a turn; None for figures that were not reported."""
    return {
        "prompt_tokens": turn.prompt_tokens,
        "completion_tokens": turn.completion_tokens,
        "cached_tokens": turn.cached_tokens,
        "cost": float(turn.cost) if turn.cost is not None else None,
    }


def turn_views(turns: Iterable[Turn]) -> list[TurnView]:
    """Turns ``with_questions``, with the question and the replies of each, in few queries."""
    rows = list(turns)
    if not rows:
        return []
    messages: dict[int | None, list[_Said]] = {row.pk: [] for row in rows}
    found: Iterable[tuple[Any, ...]]
    if len(rows) == 1:
        found = _said(turn=rows[0].pk)
    else:
        found = _talk(Message.objects.filter(turn__in=list(messages)))
    for turn, *said in found:
        messages[turn].append(_Said(*said))
    return [_turn_view(row, messages[row.pk]) for row in rows]


def ended_turn(turn_id: int) -> tuple[TurnView, MessageView | None]:
    """A turn that has ended, with its last reply, in one query."""
    messages = _ended_with(turn=turn_id)
    if not messages or messages[-1].turn is None:
        return turn_views(with_questions(Turn.objects.filter(pk=turn_id)))[0], None
    turn, last = messages[-1].turn, messages[-1]
    turn.asked = last.asked  # type: ignore[attr-defined]
    said = [_Said(one.role, one.seq, one.token_count) for one in messages]
    reply = last if last.role == MessageRole.ASSISTANT else None
    return _turn_view(turn, said), message_view(reply) if reply else None


@worded(turn=BigIntegerField)
def _ended_with(turn: int) -> QuerySet[Message]:
    """Its messages, with all of the turn but its manifest; ``asked`` as for other turns."""
    rows = for_screen(Message.objects.filter(turn_id=turn, role__in=_TALKING)).order_by("seq")
    rows = rows.defer(None).defer("turn__manifest")
    return rows.annotate(asked=F("turn__user_message__seq"))


def with_questions(turns: QuerySet[Turn]) -> QuerySet[Turn]:
    """Turns without what is long; ``asked``: the message that each answers, unless its own."""
    return turns.annotate(asked=F("user_message__seq")).defer("manifest")


def _talk(rows: QuerySet[Message]) -> QuerySet[Message, tuple[Any, ...]]:
    talking = rows.filter(role__in=_TALKING).order_by("seq")
    return talking.values_list("turn_id", "role", "seq", "token_count")


@worded(turn=BigIntegerField)
def _said(turn: int) -> QuerySet[Message, tuple[Any, ...]]:
    return _talk(Message.objects.filter(turn_id=turn))


@worded(turn=BigIntegerField, seq=BigIntegerField)
def _written(turn: int, seq: int) -> QuerySet[Message, tuple[str, str]]:
    return Message.objects.filter(turn_id=turn, seq=seq).values_list("text", "reasoning")


def _turn_view(row: Turn, messages: list[_Said]) -> TurnView:
    """``messages``: those of the turn's user and of the model, oldest first."""
    questions = [one.seq for one in messages if one.role == MessageRole.USER]
    replies = [one for one in messages if one.role == MessageRole.ASSISTANT]
    first, last = (replies[0].seq, replies[-1].seq) if replies else (None, None)
    asked: int | None = row.asked  # type: ignore[attr-defined]
    text, reasoning = "", ""
    if row.finished_at is None and last is not None:
        ((text, reasoning),) = _written(turn=row.pk, seq=last)
    return TurnView(
        turn=row.pk,
        status=row.status,
        event_no=row.event_no,
        model=row.model,
        message_seq=asked or next(iter(questions), None),
        reply_seq=first,
        seq=last,
        text=text,
        reasoning=reasoning,
        started_at=row.started_at,
        first_token_at=row.first_token_at,
        finished_at=row.finished_at,
        error=row.error,
        retry_notice=row.retry_notice,
        finish_reason=row.finish_reason,
        usage=usage_view(row),
        ruler_tokens=sum(
            one.token_count - MESSAGE_OVERHEAD for one in replies if one.token_count > 0
        ),
    )
