"""The subject of a model call: the conversation, its owner and its project at that time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db.models import BigIntegerField, QuerySet

from chatapp.conversations.ownership import parse_code
from chatapp.errors import NotFound
from chatapp.models import Conversation
from compression.database import in_database_thread
from compression.store.worded import worded

_NAMES = ("pk", "code", "owner_id", "project__slug")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A conversation as a line of the log names it."""

    conversation_id: int
    code: str
    owner_id: int
    project: str
    """The slug of its project; empty for none."""


def subject(conversation_id: int) -> Subject | None:
    """The subject of calls for a conversation; None if it is gone."""
    return next(map(_subject, _named(conversation=conversation_id)), None)


def subjects_of(codes: Iterable[str]) -> dict[str, Subject]:
    """The subjects of the conversations with these codes; those that are gone are missing.

    Deleted ones are not: while that can be undone, their lines stay.
    """
    known = []
    for code in codes:
        try:
            known.append(parse_code(code))
        except NotFound:
            continue
    found = map(_subject, Conversation.objects.filter(code__in=known).values_list(*_NAMES))
    return {one.code: one for one in found}


@worded(conversation=BigIntegerField)
def _named(conversation: int) -> QuerySet[Conversation, tuple[Any, ...]]:
    return Conversation.objects.filter(pk=conversation).values_list(*_NAMES)


def _subject(row: tuple[Any, ...]) -> Subject:
    pk, code, owner, slug = row
    return Subject(conversation_id=pk, code=str(code), owner_id=owner, project=slug or "")


asubject = in_database_thread(subject, lane="background")
asubjects_of = in_database_thread(subjects_of, lane="slow")
