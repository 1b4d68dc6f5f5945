"""Stored messages as the values that requests are made of."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, cast

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from chatapp.context.request import StoredMessage
from chatapp.conversations.messages.stored import as_values
from chatapp.conversations.turns import progress
from chatapp.models import Conversation, Message, Turn
from compression.models import Change

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
    assert as_values(conversation.pk) == [expected]
    plain = StoredMessage(seq=7, role="assistant", text="Hello", token_count=5)
    names = [field.name for field in fields(plain)]
    same = [name for name in names if getattr(plain, name) == getattr(expected, name)]
    # What is masked is not unmasked; see below.
    assert same == ["seq", "role", "text", "token_count", "unmasked"], "a default hides a field"
    Message.objects.update(masked_at=None)
    assert as_values(conversation.pk) == [replace(expected, masked=False, unmasked=True)]


def test_a_turn_that_has_ended_is_not_open(conversation: Conversation) -> None:
    turn = Turn.objects.create(conversation=conversation, status="tools")
    message(conversation, 1, role="user", turn=turn)
    assert as_values(conversation.pk)[0].turn_open
    Turn.objects.update(status="failed", finished_at=timezone.now())
    (ended,) = as_values(conversation.pk)
    assert (ended.turn_status, ended.turn_open) == ("failed", False)


def test_a_message_without_a_turn_is_of_no_open_one(conversation: Conversation) -> None:
    message(conversation, 1, role="user", text="Imported")
    (found,) = as_values(conversation.pk)
    assert found == StoredMessage(seq=1, role="user", text="Imported", token_count=0)


def test_only_what_is_asked_for_is_read(conversation: Conversation) -> None:
    message(conversation, 2, role="user", text="second", tool_name="look", token_count=9)
    message(conversation, 1, role="user", text="first", tool_name="look", token_count=8)
    names = ("seq", "role", "text", "token_count", "tool_calls")
    found = as_values(conversation.pk, names=names, characters=3)
    assert [(one.seq, one.text, one.token_count, one.tool_name) for one in found] == [
        (1, "fir", 8, ""),
        (2, "sec", 9, ""),
    ]


def test_reasoning_that_may_not_go_back_is_not_read(conversation: Conversation) -> None:
    """What came under no name; and what was dropped, in an open turn as in one that has ended.

    Breaks when: reasoning is sent although what it was about is summarised, or a time decides.
    """
    ended = Turn.objects.create(conversation=conversation, finished_at=timezone.now())
    opened = Turn.objects.create(conversation=conversation)
    thought: dict[str, Any] = {"role": "assistant", "text": "So.", "reasoning": "Hm, well."}
    message(conversation, 1, turn=ended, **thought)
    message(conversation, 2, turn=ended, reasoning_field="reasoning", **thought)
    message(conversation, 3, turn=opened, reasoning_field="reasoning", **thought)

    def read(**how: Any) -> list[str]:
        return [one.reasoning for one in as_values(conversation.pk, **how)]

    Conversation.objects.update(compressed_at=timezone.now())
    assert read() == ["", "Hm, well.", "Hm, well."]
    assert read(characters=2) == ["", "Hm", "Hm"]
    Conversation.objects.update(reasoning_dropped_through=2)
    assert read() == ["", "", "Hm, well."]
    Turn.objects.update(finished_at=timezone.now())
    assert read() == ["", "", "Hm, well."]
    Conversation.objects.update(reasoning_dropped_through=3)
    assert read() == ["", "", ""]


def test_a_new_boundary_drops_the_reasoning_of_what_is_written(conversation: Conversation) -> None:
    """Not that of the reply which is still to come.

    Breaks when: a summary is put in place, taken back or cleared, and older reasoning still goes
    out; or the reply of the open turn loses what it is about to think.
    """
    for seq, status in ((1, "complete"), (2, "partial"), (3, "streaming")):
        message(conversation, seq, role="assistant", status=status)
    rows = Conversation.objects.filter(pk=conversation.pk)
    for kind, dropped in {"claim": None, "release": None, "edit": None, "apply": 2}.items():
        rows.update(**Conversation.compression_changes(cast(Change, kind)))
        assert rows.get().reasoning_dropped_through == dropped, kind
    for kind in ("restore", "clear"):
        rows.update(reasoning_dropped_through=None)
        rows.update(**Conversation.compression_changes(cast(Change, kind)))
        assert rows.get().reasoning_dropped_through == 2, kind
    other = Conversation.objects.create(owner=conversation.owner)
    progress.drop_reasoning(other.pk)
    other.refresh_from_db()
    assert (other.reasoning_dropped_through, other.event_no) == (None, 1)
