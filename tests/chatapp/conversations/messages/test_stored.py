"""Stored messages as the values that requests are made of."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from chatapp.context.request import StoredMessage
from chatapp.conversations.messages.stored import as_values, live
from chatapp.models import Conversation, Message, Turn

pytestmark = [pytest.mark.django_db, pytest.mark.storage]

CALLS = [{"id": "call_1", "function": {"name": "look", "arguments": "{}"}}]


@pytest.fixture
def conversation(alice: User) -> Conversation:
    return Conversation.objects.create(owner=alice)


def message(conversation: Conversation, seq: int, **values: Any) -> Message:
    return Message.objects.create(
        conversation=conversation, seq=seq, created_at=timezone.now(), **values
    )


def test_every_field_is_read_of_the_row(conversation: Conversation) -> None:
    """Breaks when: a field of ``StoredMessage`` is neither a column nor worked out of columns."""
    turn = Turn.objects.create(conversation=conversation, status="tools", model="m")
    message(
        conversation,
        7,
        role="assistant",
        text="Hello",
        token_count=5,
        status="partial",
        added_context="recalled",
        tool_calls=CALLS,
        tool_call_id="call_1",
        tool_name="look",
        masked_at=timezone.now(),
        mask_batch=1,
        pinned_at=timezone.now(),
        turn=turn,
        reasoning="Hm.",
        reasoning_field="reasoning",
        reasoning_tokens=2,
    )
    expected = StoredMessage(
        seq=7,
        role="assistant",
        text="Hello",
        token_count=5,
        status="partial",
        added_context="recalled",
        tool_calls=tuple(CALLS),
        tool_call_id="call_1",
        tool_name="look",
        masked=True,
        pinned=True,
        turn=turn.pk,
        turn_status="tools",
        turn_open=True,
        model="m",
        reasoning="Hm.",
        reasoning_field="reasoning",
        reasoning_tokens=2,
    )
    assert as_values(live(conversation.pk)) == [expected]
    plain = StoredMessage(seq=7, role="assistant", text="Hello", token_count=5)
    names = [field.name for field in fields(plain)]
    same = [name for name in names if getattr(plain, name) == getattr(expected, name)]
    # What is masked is not unmasked; see below.
    assert same == ["seq", "role", "text", "token_count", "unmasked"], "a default hides a field"
    Message.objects.update(masked_at=None)
    assert as_values(live(conversation.pk)) == [replace(expected, masked=False, unmasked=True)]
    Turn.objects.update(status="failed", finished_at=timezone.now())
    (ended,) = as_values(live(conversation.pk))
    assert (ended.turn_status, ended.turn_open) == ("failed", False)


def test_a_message_without_a_turn_is_of_no_open_one(conversation: Conversation) -> None:
    message(conversation, 1, role="user", text="Imported")
    (found,) = as_values(live(conversation.pk))
    assert found == StoredMessage(seq=1, role="user", text="Imported", token_count=0)


def test_only_what_is_asked_for_is_read(conversation: Conversation) -> None:
    message(conversation, 2, role="user", text="second", tool_name="look", token_count=9)
    message(conversation, 1, role="user", text="first", tool_name="look", token_count=8)
    names = ("seq", "role", "text", "token_count", "tool_calls")
    found = as_values(live(conversation.pk), names=names, characters=3)
    assert [(one.seq, one.text, one.token_count, one.tool_name) for one in found] == [
        (1, "fir", 8, ""),
        (2, "sec", 9, ""),
    ]


def test_reasoning_that_may_not_go_back_is_not_read(conversation: Conversation) -> None:
    """What came under no name; and once the boundary has moved, what ended before that.

    Breaks when: reasoning is sent although what it was about is summarised.
    """
    ended = Turn.objects.create(conversation=conversation, finished_at=timezone.now())
    opened = Turn.objects.create(conversation=conversation)
    thought: dict[str, Any] = {"role": "assistant", "text": "So.", "reasoning": "Hm."}
    message(conversation, 1, turn=ended, **thought)
    message(conversation, 2, turn=ended, reasoning_field="reasoning", **thought)
    message(conversation, 3, turn=opened, reasoning_field="reasoning", **thought)
    assert [one.reasoning for one in as_values(live(conversation.pk))] == ["", "Hm.", "Hm."]
    Conversation.objects.update(compressed_at=timezone.now())
    assert [one.reasoning for one in as_values(live(conversation.pk))] == ["", "", "Hm."]
