"""The messages of an import, stored in portions: rows, turns, and which message answers which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from django.db import transaction
from django.db.models import OuterRef, Subquery

from chatapp.conversations.imports.bulk import BulkInsert
from chatapp.models import (
    Conversation,
    Message,
    MessageRole,
    MessageStatus,
    Turn,
    TurnStatus,
)
from chatapp.transfer.values import ForeignMessage, Identity
from compression.database import in_database_thread

# An import counts as one stored change, so every row has this number.
FIRST_EVENT = 1
# The fields in which the messages of one conversation differ, in the order of ``_insert_messages``.
_DIFFERING = (
    "seq",
    "turn",
    "role",
    "text",
    "reasoning",
    "added_context",
    "tool_calls",
    "tool_call_id",
    "tool_name",
    "seconds",
    "status",
    "superseded_at",
    "pinned_at",
    "masked_at",
    "token_count",
    "created_at",
)
_TERMINAL = frozenset(TurnStatus.values) - {
    TurnStatus.WAITING,
    TurnStatus.COMPRESSING,
    TurnStatus.STREAMING,
    TurnStatus.TOOLS,
}


class ConversationGone(Exception):
    """The conversation whose messages are being stored no longer exists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """A message to be stored, and its ruler tokens."""

    message: ForeignMessage
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfinished:
    """A partly stored conversation, and where to continue it."""

    conversation_id: int
    code: str
    owner_id: int
    identity: Identity
    moment: datetime
    """Time of the last message, also used for a next one without a time of its own."""
    created_at: datetime
    seq: int = 0
    turn_id: int | None = None
    turn: int | None = None
    """The last turn, and its number in the file if the file has turns."""
    question: int | None = None
    """The ``seq`` of the last user message."""


def add_portion(unfinished: Unfinished, portion: Sequence[Counted]) -> Unfinished:
    """Store the next messages in one transaction. Returns the conversation's new state.

    Each user message begins a complete turn, unless the file has turns of its own. Raises
    ConversationGone when the conversation was deleted meanwhile, for instance with its person.
    """
    placed = _placed(unfinished, portion)
    turns = list({id(one.turn): one.turn for one in placed if one.turn is not None}.values())
    new = [one for one in turns if not one.id]
    with transaction.atomic():
        # Lock it first: a deletion of the person holds this row, and must not wait for this one.
        rows = Conversation.objects.filter(pk=unfinished.conversation_id, importing=True)
        if not rows.select_for_update().values_list("pk").first():
            raise ConversationGone
        _insert_turns(unfinished.conversation_id, new)
        for old in turns[: len(turns) - len(new)]:
            Turn.objects.filter(pk=old.id).update(started_at=old.ended, finished_at=old.ended)
        _insert_messages(unfinished.conversation_id, placed)
        question = _link(unfinished, placed, new)
    last = placed[-1]
    return replace(
        unfinished,
        moment=last.moment,
        seq=last.seq,
        turn_id=last.turn.id if last.turn else unfinished.turn_id,
        turn=last.number,
        question=question,
    )


@dataclass(slots=True, kw_only=True)
class _Turn:
    """A turn to be stored, or the last one of the previous portion."""

    id: int = 0
    """0: not stored yet."""
    status: TurnStatus = TurnStatus.COMPLETE
    model: str = ""
    ended: datetime


@dataclass(slots=True, kw_only=True)
class _Placed:
    """A message with its time, its seq and its turn."""

    counted: Counted
    moment: datetime
    seq: int
    turn: _Turn | None
    number: int | None


def _placed(unfinished: Unfinished, portion: Sequence[Counted]) -> list[_Placed]:
    """The messages of a portion with their turns, of which the first may be stored already."""
    placed: list[_Placed] = []
    now = datetime.now(UTC)
    moment, number = unfinished.moment, unfinished.turn
    turn = _Turn(id=unfinished.turn_id, ended=moment) if unfinished.turn_id is not None else None
    for seq, counted in enumerate(portion, start=unfinished.seq + 1):
        one = counted.message
        moment = min(one.created_at or moment, now)
        if one.role == "user" if one.turn is None else one.turn != number:
            turn = _Turn(ended=moment)
        elif one.turn is None and number is not None:
            # The file has turns, and this message belongs to none.
            turn = None
        number = one.turn
        if turn is not None:
            turn.ended = moment
            turn.model = one.model or turn.model
            if one.turn_status:
                known = one.turn_status in _TERMINAL
                turn.status = TurnStatus(one.turn_status) if known else TurnStatus.INTERRUPTED
        placed.append(_Placed(counted=counted, moment=moment, seq=seq, turn=turn, number=number))
    return placed


def _insert_turns(conversation_id: int, new: Sequence[_Turn]) -> None:
    if not new:
        return
    same = Turn(conversation_id=conversation_id, event_no=FIRST_EVENT)
    rows = BulkInsert(same, "status", "model", "started_at", "finished_at")
    values = []
    for one in new:
        ended = rows.prepared("finished_at", one.ended)
        values.append((one.status.value, one.model, ended, ended))
    for one, key in zip(new, rows.insert_returning(values), strict=True):
        one.id = key


def _insert_messages(conversation_id: int, placed: Sequence[_Placed]) -> None:
    same = Message(
        conversation_id=conversation_id, event_no=FIRST_EVENT, created_at=datetime.now(UTC)
    )
    rows = BulkInsert(same, *_DIFFERING)
    no_calls = rows.prepared("tool_calls", [])
    values = []
    moment, at = None, None
    for each in placed:
        one = each.counted.message
        if each.moment != moment:
            moment, at = each.moment, rows.prepared("created_at", each.moment)
        values.append(
            (
                each.seq,
                each.turn.id if each.turn else None,
                one.role,
                one.text,
                one.reasoning,
                one.added_context,
                rows.prepared("tool_calls", list(one.tool_calls)) if one.tool_calls else no_calls,
                one.tool_call_id,
                one.tool_name,
                one.seconds,
                (MessageStatus.PARTIAL if one.partial else MessageStatus.COMPLETE).value,
                at if one.superseded else None,
                at if one.pinned else None,
                at if one.masked else None,
                each.counted.tokens,
                at,
            )
        )
    rows.insert(values)


def _link(unfinished: Unfinished, placed: Sequence[_Placed], new: Sequence[_Turn]) -> int | None:
    """Link each new turn to the message it answers. Returns the seq of the last user message."""
    question = unfinished.question
    asking: set[int | None] = set()
    before: dict[int | None, int | None] = {}
    for one in placed:
        key = one.turn.id if one.turn else None
        if one.counted.message.role == "user":
            question = one.seq
            asking.add(key)
        before.setdefault(key, question)
    conversation_id = unfinished.conversation_id
    if new:
        first = Message.objects.filter(turn=OuterRef("pk"), role=MessageRole.USER).order_by("seq")
        Turn.objects.filter(
            conversation_id=conversation_id, pk__gte=new[0].id, pk__lte=new[-1].id
        ).update(user_message=Subquery(first.values("pk")[:1]))
    for turn in new:
        if turn.id not in asking:
            # Another answer to a question of an earlier turn.
            asked = Message.objects.filter(conversation=conversation_id, seq=before[turn.id] or 0)
            Turn.objects.filter(pk=turn.id).update(user_message=asked.values("pk")[:1])
    return question


aadd_portion = in_database_thread(add_portion, lane="bulk")
