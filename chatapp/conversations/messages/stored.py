"""Stored messages as values: the one list of what is read of a message for a request."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields
from functools import cache
from typing import Any

from django.db.models import BigIntegerField, Case, F, Q, QuerySet, TextField, Value, When
from django.db.models.functions import Coalesce, Substr

from chatapp.context.request import StoredMessage
from chatapp.models import Message, MessageRole
from compression.store.worded import worded

# What no column says as it is. The database works it out: 44 ms for 5,000 messages, where this
# process took 50.
_WORKED_OUT: dict[str, Any] = {
    "masked": Q(masked_at__isnull=False),
    "unmasked": Q(masked_at__isnull=True, mask_batch__isnull=False),
    "pinned": Q(pinned_at__isnull=False),
    "turn_status": Coalesce("turn__status", Value("complete")),
    "turn_open": Q(turn__isnull=False, turn__finished_at__isnull=True),
    "model": Coalesce("turn__model", Value("")),
    # Under another name, because an annotation must not have the name of a column.
    "reasoning": Case(
        When(reasoning_field=None, then=Value("")),
        # The provider saw it with what is now summarised, or there was no room left for it.
        When(seq__lte=F("conversation__reasoning_dropped_through"), then=Value("")),
        default=F("reasoning"),
        output_field=TextField(),
    ),
}
_OTHER_NAMES = {"reasoning": "reasoning_back"}
_FIELDS = tuple(field.name for field in fields(StoredMessage))
# Characters read from a message to see whether it has text.
_A_LOOK = 64
# The fields of a StoredMessage by which its tokens are counted.
_COUNTED = (
    "seq",
    "role",
    "text",
    "token_count",
    "tool_calls",
    "tool_call_id",
    "turn",
    "turn_open",
    "model",
    "masked",
    "reasoning",
    "reasoning_field",
    "reasoning_tokens",
)
#: Messages of which a mask hides something.
MASKABLE = Q(role=MessageRole.TOOL) | (Q(role=MessageRole.ASSISTANT) & ~Q(tool_calls=[]))


def live(conversation_id: int) -> QuerySet[Message]:
    """The messages that are not superseded."""
    return Message.objects.filter(conversation_id=conversation_id, superseded_at__isnull=True)


def as_values(
    conversation_id: int,
    where: Q | None = None,
    *,
    names: Collection[str] = _FIELDS,
    characters: int | None = None,
) -> list[StoredMessage]:
    """Live messages as values, in order of seq; model instances would take three times as long.

    Fields beside ``names`` have their defaults. Of text and reasoning no more than ``characters``
    are read.
    """
    rows = _selection(tuple(names), characters)
    found = rows.filter(where or Q(), conversation_id=conversation_id)
    return [_as_value(row) for row in found]


def counted_tail(conversation_id: int, *, after_seq: int) -> list[StoredMessage]:
    """The live messages after ``after_seq``, with what their tokens are counted by.

    Read at the end of every turn. Of text and reasoning, it is only seen whether there is any.
    """
    return [_as_value(row) for row in _counted_tail(conversation=conversation_id, after=after_seq)]


@worded(conversation=BigIntegerField, after=BigIntegerField)
def _counted_tail(conversation: int, after: int) -> QuerySet[Message, dict[str, Any]]:
    rows = _selection(_COUNTED, _A_LOOK)
    return rows.filter(seq__gt=after, conversation_id=conversation)


def tail(conversation_id: int, *, after_seq: int) -> list[StoredMessage]:
    """The live messages after ``after_seq``, as :func:`as_values` has them; read at every turn."""
    return [_as_value(row) for row in _tail(conversation=conversation_id, after=after_seq)]


@worded(conversation=BigIntegerField, after=BigIntegerField)
def _tail(conversation: int, after: int) -> QuerySet[Message, dict[str, Any]]:
    return _selection(_FIELDS, None).filter(seq__gt=after, conversation_id=conversation)


@cache
def _selection(names: tuple[str, ...], characters: int | None) -> QuerySet[Message, dict[str, Any]]:
    """Live messages in order, with these columns; it is only filtered, which makes a copy.

    Made once, because working the columns out took half the time of reading a short tail.
    """
    asked = {
        _OTHER_NAMES.get(name, name): _WORKED_OUT[name] for name in names if name in _WORKED_OUT
    }
    columns = [name for name in names if name not in _WORKED_OUT]
    if characters is not None:
        columns.remove("text")
        asked["beginning"] = Substr("text", 1, characters)
        if "reasoning_back" in asked:
            asked["reasoning_back"] = Substr(asked["reasoning_back"], 1, characters)
    rows = Message.objects.filter(superseded_at__isnull=True).order_by("seq")
    selected: QuerySet[Message, dict[str, Any]] = rows.annotate(**asked).values(*columns, *asked)
    return selected


def _as_value(row: dict[str, Any]) -> StoredMessage:
    row["tool_calls"] = tuple(row["tool_calls"])
    for name, other in _OTHER_NAMES.items():
        if other in row:
            row[name] = row.pop(other)
    if "beginning" in row:
        row["text"] = row.pop("beginning")
    return StoredMessage(**row)
