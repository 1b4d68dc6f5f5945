"""A query that is worded once is the ORM's own, and finds what the ORM finds."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from chatapp.conversations import own_instructions, viewer_checks
from chatapp.conversations.messages import measures, reading, stored, views
from chatapp.conversations.turns import standing
from chatapp.conversations.worded import Worded
from chatapp.models import Conversation, Message, UserSettings
from compression.database import in_database_thread
from tests.chatapp.talking import begin, exchange, new, row_of

pytestmark = [pytest.mark.storage, pytest.mark.django_db(transaction=True)]

Values = Callable[[Conversation], dict[str, Any]]


def _owned(row: Conversation) -> dict[str, Any]:
    return {"owner": row.owner_id, "code": row.code}


def _sent(row: Conversation) -> dict[str, Any]:
    sent = Message.objects.filter(conversation=row, client_msg_id__isnull=False).first()
    identity = sent.client_msg_id if sent else uuid.uuid4()
    return {"conversation": row.pk, "owner": row.owner_id, "client_msg_id": identity}


WORDED: list[tuple[Worded[Any], Values]] = [
    (standing._locked, _owned),
    (standing._locked_with_owner, _owned),
    (standing._standing, _sent),
    (stored._tail, lambda row: {"conversation": row.pk, "after": 1}),
    (measures._ended_turns, lambda row: {"conversation": row.pk}),
    (stored._counted_tail, lambda row: {"conversation": row.pk, "after": 1}),
    (reading._conversation, lambda row: {"conversation": row.pk}),
    (own_instructions._instructions, lambda row: {"owner": row.owner_id}),
    (viewer_checks._marker, lambda row: {"conversation": row.pk}),
    (views._ended_with, lambda row: {"turn": getattr(row.turns.first(), "pk", 0)}),
]


def _asked(work: Callable[[], list[Any]]) -> tuple[str, list[Any]]:
    with CaptureQueriesContext(connection) as queries:
        found = work()
    (query,) = [one["sql"] for one in queries if one["sql"].startswith("SELECT")]
    # A value stands in brackets where an expression does.
    return re.sub(r"\((%s|'[^']*'(?:::uuid)?|\d+)\)", r"\1", query), found


@pytest.mark.parametrize(("query", "values"), WORDED)
def test_it_is_the_orms_own(alice: User, bob: User, query: Worded[Any], values: Values) -> None:
    """Twice, for different conversations: with much in them, and with nothing.

    Breaks when: a value of the first time is asked for the second time, or stands elsewhere.
    """
    UserSettings.objects.create(user=bob, instructions="Be kind.")
    talked, empty = new(bob), new(alice)
    exchange(bob, talked, "one")
    begin(bob, talked, "two")
    for code in (talked, empty, talked):
        given = values(row_of(code))
        with transaction.atomic():
            own = _asked(lambda given=given: list(query.query(**given)))  # type: ignore[misc]
            once = _asked(lambda given=given: query(**given))  # type: ignore[misc]
        assert once == own


async def test_each_thread_has_its_own(alice: User) -> None:
    """Breaks when: threads share a compiler, whose values and connection are one thread's."""

    def locked(code: str) -> int:
        with transaction.atomic():
            return standing.locked(alice.pk, code).pk

    codes = await in_database_thread(lambda: [new(alice) for _ in range(6)])()
    there, elsewhere = in_database_thread(locked), in_database_thread(locked, lane="background")
    for code in codes:
        assert await there(code) == await elsewhere(code)
