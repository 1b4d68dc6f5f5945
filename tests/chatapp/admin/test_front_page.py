"""The front page of the admin: what it says, to whom, and at what cost."""

from __future__ import annotations

import html
import re
import uuid
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from chatapp.models import AccessRecord, Conversation, DailyCalls, ModelCall
from tests.reviewing import BASE, browser_of, conversation_of, page, review_path, staff, summarise

pytestmark = pytest.mark.django_db

FRONT = "/admin/"


def called(conversation: Conversation, *, hours: int = 0, **values: Any) -> ModelCall:
    """A row of the log's index, so many hours old."""
    fields: dict[str, Any] = {
        "call": uuid.uuid4(),
        "place": "here",
        "file": "a.jsonl",
        "offset": 0,
        "length": 1,
        "project": "default",
        "kind": "chat",
        "model": "small",
        "duration": 1.0,
    }
    at = timezone.now() - timedelta(hours=hours)
    return ModelCall.objects.create(
        **{**fields, **values}, at=at, owner=conversation.owner, conversation=conversation
    )


def failed(conversation: Conversation, **values: Any) -> ModelCall:
    return called(conversation, **{"failed": True, "error": "llm_server_error", **values})


def used(person: User, days: int, *, tokens: int, cost: str) -> None:
    DailyCalls.objects.create(
        owner=person,
        day=timezone.localdate() - timedelta(days=days),
        project="default",
        kind="chat",
        model="small",
        calls=1,
        input_tokens=tokens,
        output_tokens=tokens // 10,
        cost=Decimal(cost),
    )


def words_of(person: User) -> str:
    """What the cards say, as one line of words."""
    text = page(browser_of(person), FRONT).partition('id="content-main"')[2]
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text.partition("lists")[0])).split())


def test_it_works(alice: User, bob: User) -> None:
    """What waits with the way in, the errors of a day, and everybody's tokens and money."""
    talk = conversation_of(alice, "one", "two", "three", "four")
    summary = summarise(talk, "x")
    called(talk)
    failed(talk)
    failed(talk, hours=20, model="\u202elarge", error="llm_rate_limited")
    failed(talk, hours=25)
    used(alice, 0, tokens=1000, cost="0.5")
    used(bob, 0, tokens=2000, cost="1")
    used(bob, 6, tokens=4000, cost="2")
    used(bob, 7, tokens=8000, cost="4")
    root = User.objects.create_superuser("root")
    said = words_of(root)
    assert "Waiting for review 1" in said
    assert "1 not yet seen" in said
    assert "Errors in the last 24 hours 2" in said
    assert "1 server error small" in said
    assert "1 rate limited" in said
    assert "\u202e" not in said
    for row in (
        "Money $1.50 $3.50",
        "Tokens read 3,000 7,000",
        "Tokens written 300 700",
        "Calls 2 3",
    ):
        assert row in said
    client = browser_of(root)
    assert f'href="{review_path(summary)}?' in page(client, FRONT)
    listed = page(client, f"{BASE}modelcall/?failed__exact=1&when=day")
    assert listed.count("field-owner_name") == 2, "the link leads to those that were counted"
    assert not AccessRecord.objects.exists(), "nobody's words are in it"


def test_a05_each_card_needs_its_permission(alice: User) -> None:
    """A05: Breaks when: ``index`` asks a model's admin for its part without asking who looks."""
    talk = conversation_of(alice, "one", "two", "three", "four")
    summarise(talk, "x")
    failed(talk)
    cards = ("Waiting for review", "Errors in the last", "Tokens and money")
    for permissions, shown in (
        (("view_summary",), (True, False, False)),
        (("view_modelcall",), (False, True, True)),
        (("view_conversation",), (False, False, False)),
    ):
        said = words_of(staff("-".join(permissions), *permissions))
        assert tuple(card in said for card in cards) == shown, permissions


def test_errors_of_deleted_conversations_are_not_counted(alice: User) -> None:
    """Breaks when: the count and the list that it leads to go by different rows."""
    talk = conversation_of(alice, "one", "two")
    failed(talk)
    Conversation.objects.filter(pk=talk.pk).update(deleted_at=timezone.now())
    said = words_of(staff("fay", "view_modelcall"))
    assert "Every model call was answered." in said


def test_what_one_did_last_is_said_in_words(alice: User) -> None:
    """Breaks when: an act on a summary is named by the version alone."""
    root = User.objects.create_superuser("root")
    summary = summarise(conversation_of(alice, "one", "two", "three", "four"), "x")
    client = browser_of(root)
    assert client.post(review_path(summary), {"action": "approve"}).status_code == 302
    acts = page(client, FRONT).partition("What you did last")[2]
    assert "Said “approved” of version 1" in acts


def test_it_takes_the_same_queries_however_much_there_is(alice: User) -> None:
    """Breaks when: a card asks once for each row, reason, error or day."""
    client = browser_of(User.objects.create_superuser("root"))

    def queries() -> int:
        with CaptureQueriesContext(connection) as found:
            page(client, FRONT)
        return len(found)

    def more(number: int) -> None:
        talk = conversation_of(alice, f"{number}", "two", "three", "four")
        summary = summarise(talk, "x", degraded=number % 2 == 0)
        failed(talk, model=f"model-{number}")
        used(alice, number, tokens=1, cost="1")
        client.post(review_path(summary), {"action": "approve"})

    more(0)
    page(client, FRONT)
    few = queries()
    for number in range(1, 6):
        more(number)
    assert queries() == few
