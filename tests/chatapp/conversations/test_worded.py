"""A statement that is worded once is the ORM's own, and finds and stores what the ORM does."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import CharField
from django.test.utils import CaptureQueriesContext

from chatapp.conversations import own_instructions, viewer_checks
from chatapp.conversations.messages import measures, reading, stored, views
from chatapp.conversations.model_calls import subjects
from chatapp.conversations.summaries import compressions
from chatapp.conversations.turns import standing, statements
from chatapp.models import Conversation, Message, Turn, TurnStatus, UserSettings
from compression.database import in_database_thread
from compression.store import drafts, previews, rows
from compression.store.versions import _made
from compression.store.worded import Worded, WordedInsert, WordedUpdate, worded_insert
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
    (views._said, lambda row: {"turn": getattr(row.turns.first(), "pk", 0)}),
    (views._written, lambda row: {"turn": getattr(row.turns.first(), "pk", 0), "seq": 2}),
    (reading._there, lambda row: {"conversation": row.pk}),
    (reading._newest, lambda row: {"conversation": row.pk}),
    (reading._changed, lambda row: {"conversation": row.pk, "after": 1}),
    (reading._open, lambda row: {"conversation": row.pk}),
    (reading._ended, lambda row: {"conversation": row.pk, "after": 1}),
    (reading._ended_loudly, lambda row: {"conversation": row.pk}),
    (compressions._active, lambda row: {"conversation": row.pk, "version": 1}),
    (compressions._masks, lambda row: {"conversation": row.pk, "boundary": 0}),
    (subjects._named, lambda row: {"conversation": row.pk}),
    (rows._active, lambda row: {"conversation": row.pk}),
    (rows._numbered, lambda row: {"conversation": row.pk, "version": 1}),
    (previews._waiting, lambda row: {"conversation": row.pk}),
    (_made, lambda row: {"conversation": row.pk}),
    (drafts._ready, lambda row: {"conversation": row.pk}),
    (drafts._attempts, lambda row: {"conversation": row.pk}),
]


def _of_open_turn(row: Conversation) -> dict[str, Any]:
    return {"turn": row.turns.get(finished_at=None).pk, "event_no": row.event_no + 1}


def _nothing(row: Conversation) -> dict[str, Any]:
    """The end of a turn that failed: what is not known is None."""
    return {
        **_of_open_turn(row),
        **{
            "process": "a process",
            "status": TurnStatus.FAILED,
            "finish_reason": "",
            "manifest": {},
        },
        **{"error": {"code": "x", "fields": {"n": [1, "é"]}}, "error_code": "x"},
        **dict.fromkeys(("prompt_tokens", "completion_tokens", "cached_tokens", "cost")),
    }


def _all(row: Conversation) -> dict[str, Any]:
    """The end of a turn of which everything was told."""
    figures = {"prompt_tokens": 2**40, "completion_tokens": 1, "cached_tokens": 0, "cost": 0.0125}
    said = {"status": TurnStatus.COMPLETE, "finish_reason": "stop", "manifest": {"seqs": [1, 2]}}
    return {**_nothing(row), **figures, **said, "error": None, "error_code": ""}


def _written(row: Conversation) -> dict[str, Any]:
    return {
        **_of_open_turn(row),
        **{"message": row.messages.latest("seq").pk, "status": "complete", "text": "é%s 'x'"},
        **{"reasoning": "so", "reasoning_field": None, "reasoning_tokens": 3, "seconds": 0.5},
        "token_count": 7,
    }


UPDATES: list[tuple[WordedUpdate, Values]] = [
    (
        statements.allocate,
        lambda row: {"conversation": row.pk, "next_seq": 9, "event_no": row.event_no + 1},
    ),
    (statements.first_token, lambda row: {"turn": _of_open_turn(row)["turn"]}),
    (
        statements.number,
        lambda row: {"conversation": row.pk, "seen": row.event_no, "event_no": row.event_no + 1},
    ),
    (statements.number, lambda row: {"conversation": row.pk, "seen": 0, "event_no": 1}),
    (statements.end_turn, _nothing),
    (statements.end_turn, _all),
    (statements.end_message, _written),
]


def _new_turn(row: Conversation) -> dict[str, Any]:
    row.turns.update(finished_at=NOON)
    return {
        **{"conversation": row.pk, "model": "m", "lease_token": "another process", "event_no": 8},
        **{"started_at": NOON, "user_message": None},
    }


def _answering(row: Conversation) -> dict[str, Any]:
    return {**_new_turn(row), "user_message": row.messages.earliest("seq").pk}


def _next_reply(row: Conversation) -> dict[str, Any]:
    turn = _of_open_turn(row)["turn"]
    return {"conversation": row.pk, "turn": turn, "seq": 20, "event_no": 8, "created_at": NOON}


def _next_question(row: Conversation) -> dict[str, Any]:
    asked = {"text": "é%s 'x'", "client_msg_id": uuid.uuid4(), "token_count": 5, "reply_seq": 21}
    return {**_next_reply(row), **asked}


INSERTS: list[tuple[WordedInsert, Values]] = [
    (statements.open_turn, _new_turn),
    (statements.open_turn, _answering),
    (statements.reply, _next_reply),
    (statements.question_and_reply, _next_question),
    (statements.question_and_reply, lambda row: {**_next_question(row), "client_msg_id": None}),
]
NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


def _asked(work: Callable[[], list[Any]]) -> tuple[str, list[Any]]:
    with CaptureQueriesContext(connection) as queries:
        found = work()
    (query,) = [one["sql"] for one in queries if one["sql"].startswith(("SELECT", "UPDATE"))]
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
            own = _asked(lambda given=given: list(query.make(**given)))  # type: ignore[misc]
            once = _asked(lambda given=given: query(**given))  # type: ignore[misc]
        assert once == own


def _stored(row: Conversation) -> list[dict[str, Any]]:
    """All of a conversation, its turns and its messages, but what the time gave them."""
    found = [
        *Conversation.objects.filter(pk=row.pk).values(),
        *Turn.objects.filter(conversation=row).order_by("pk").values(),
        *Message.objects.filter(conversation=row).order_by("seq").values(),
    ]
    times = ("updated_at", "first_token_at", "finished_at", "lease_expires_at")
    return [
        {name: value is None if name in times else value for name, value in one.items()}
        for one in found
    ]


def _undone(row: Conversation, work: Callable[[], Any]) -> tuple[Any, list[dict[str, Any]]]:
    """What a piece of work returns, and what is stored after it; then it is undone."""
    with transaction.atomic():
        done = work(), _stored(row)
        transaction.set_rollback(True)
    return done


def _by_the_orm(update: WordedUpdate, given: dict[str, Any]) -> list[int]:
    rows, changes = update.make(**given)
    return [rows.update(**changes)]


def _once(update: WordedUpdate, given: dict[str, Any]) -> list[int]:
    return [update(**given)]


@pytest.fixture
def two_talks(bob: User) -> list[Conversation]:
    """Conversations of one person, each with an open turn after another."""
    found = []
    for text in ("one", "two"):
        code = new(bob)
        exchange(bob, code, text)
        begin(bob, code, text)
        Turn.objects.filter(conversation=row_of(code)).update(lease_token="a process")
        found.append(row_of(code))
    return found


@pytest.mark.parametrize(("update", "values"), UPDATES)
def test_an_update_is_the_orms_own(
    two_talks: list[Conversation], update: WordedUpdate, values: Values
) -> None:
    """Breaks when: None is stored as JSON's null, or a value of the first time a second time."""
    for row in (*two_talks, two_talks[0]):
        of_row = values(row)
        # The ORM sets them in the order that they are given in.
        given = {name: of_row[name] for name in update.fields}
        own = _undone(row, partial(_asked, partial(_by_the_orm, update, given)))
        once = _undone(row, partial(_asked, partial(_once, update, given)))
        assert once == own


@pytest.mark.parametrize(("insert", "values"), INSERTS)
def test_an_insert_stores_what_the_orm_stores(
    two_talks: list[Conversation], insert: WordedInsert, values: Values
) -> None:
    """Breaks when: a default is left out, or the ids come in another order than the rows."""

    def by_the_orm(given: dict[str, Any]) -> list[str]:
        made: Any = insert.make(**given)
        type(made[0])._default_manager.bulk_create(made)
        if isinstance(made[0], Turn):
            # Of a new row the ORM takes its own time.
            Turn.objects.filter(pk=made[0].pk).update(started_at=given["started_at"])
        return [str(one) for one in made]

    def once(given: dict[str, Any]) -> list[str]:
        model = type(insert.make(**given)[0])
        ids = insert(**given)
        by_id = model._default_manager.in_bulk(ids)
        return [str(by_id[one]) for one in ids]

    for row in (*two_talks, two_talks[0]):
        with transaction.atomic():
            given = values(row)
            results = [_undone(row, partial(work, given)) for work in (by_the_orm, once)]
            transaction.set_rollback(True)
        (own_names, own), (names, found) = results
        assert len(found) > len(_stored(row))
        assert names == own_names or isinstance(insert.make(**given)[0], Turn)
        for one in (*own, *found):
            # Only ids may differ, of rows that were rolled back between.
            one.pop("id")
        assert found == own


def test_a_time_that_the_orm_gives_each_row_must_be_given(alice: User) -> None:
    """Breaks when: all turns of a process have begun when its first one did."""
    with pytest.raises(AssertionError, match="started_at"):
        worded_insert(model=CharField)(lambda model: [Turn(model=model)])(model="m")


async def test_each_thread_has_its_own(alice: User) -> None:
    """Breaks when: threads share a compiler, whose values and connection are one thread's."""

    def locked(code: str) -> int:
        with transaction.atomic():
            return standing.locked(alice.pk, code).pk

    codes = await in_database_thread(lambda: [new(alice) for _ in range(6)])()
    there, elsewhere = in_database_thread(locked), in_database_thread(locked, lane="background")
    for code in codes:
        assert await there(code) == await elsewhere(code)
