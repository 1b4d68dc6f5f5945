from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from chatapp.conversations.messages import kept, pins
from chatapp.conversations.messages.masks import StoredMasks
from chatapp.conversations.messages.reading import snapshot_with_tail
from chatapp.conversations.turns import progress, replacing
from chatapp.models import Conversation, Message
from tests.chatapp.talking import PROCESS_ID, begin, end, exchange, expire, new, row_of

pytestmark = [pytest.mark.storage, pytest.mark.django_db(transaction=True)]


def regenerated(alice: User, code: str) -> None:
    end(replacing.regenerate(alice.pk, code, model="m", process_id=PROCESS_ID), "Another")


def edited(alice: User, code: str) -> None:
    again: dict[str, Any] = {"text": "x", "tokens": 1, "model": "m", "process_id": PROCESS_ID}
    end(replacing.edit(alice.pk, code, 3, **again), "Another")


def pinned(alice: User, code: str) -> None:
    pins.pin(alice.pk, code, 1, on=True, most_tokens=100)


def masked(alice: User, code: str) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    Message.objects.filter(conversation__code=code, seq=2).update(tool_calls=[call])
    Conversation.objects.filter(code=code).update(event_no=F("event_no") + 1)
    snapshot_with_tail(row_of(code).pk)
    assert StoredMasks().put_on(row_of(code).pk, {2: 3}) is not None


def interrupted(alice: User, code: str) -> None:
    expire(begin(alice, code).turn)
    assert progress.sweep(len)


def without_reasoning(alice: User, code: str) -> None:
    progress.drop_reasoning(row_of(code).pk)


CHANGES = [exchange, regenerated, edited, pinned, masked, interrupted, without_reasoning]


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_the_model_sees_changes_the_number(
    alice: User, change: Callable[[User, str], object]
) -> None:
    """What was kept before a change is not taken for what there is after it.

    Breaks when: a change leaves ``event_no`` as it was.
    """
    code = new(alice)
    exchange(alice, code, "one")
    exchange(alice, code, "two")
    snapshot_with_tail(row_of(code).pk)
    change(alice, code)
    row = row_of(code)
    known = kept.messages_of(row)
    kept.forget()
    assert known == kept.messages_of(row)


def test_nothing_is_read_twice(alice: User) -> None:
    """Breaks when: what was read is not kept, or not found under its number."""
    code = new(alice)
    exchange(alice, code)
    snapshot_with_tail(row_of(code).pk)
    row = row_of(code)
    with CaptureQueriesContext(connection) as queries:
        assert [one.seq for one in kept.messages_of(row).tail] == [1, 2]
    assert not queries.captured_queries


def test_nothing_is_kept_of_an_open_turn(alice: User) -> None:
    """Its text and its status change without a number.

    Breaks when: ``keep`` does not look for open turns.
    """
    code = new(alice)
    accepted = begin(alice, code)
    snapshot_with_tail(row_of(code).pk)
    progress.first_tokens([accepted.turn])
    assert kept.messages_of(row_of(code)).tail[-1].turn_status == "streaming"


def test_the_oldest_go_when_there_is_too_much(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """Breaks when: nothing bounds what is kept."""
    kept.forget()
    monkeypatch.setattr(kept, "MOST_CHARACTERS", 25)
    codes = [new(alice) for _ in range(3)]
    for code in codes:
        exchange(alice, code, "0123456", "789")
        snapshot_with_tail(row_of(code).pk)
    held = [key[1] for key in kept._kept]
    assert held == [row_of(code).code for code in codes[1:]]
