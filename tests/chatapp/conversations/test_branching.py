"""New conversations out of old ones."""

from __future__ import annotations

import pytest

from chatapp.conversations.branching import branch
from chatapp.models import Conversation, Message
from tests.compression.hosting import new_conversation, supersede

pytestmark = pytest.mark.django_db


def test_a_branch_takes_every_message_under_its_own_seq() -> None:
    """Superseded ones too, as what they are: the numbers have no gaps, and nothing comes back.

    Breaks when: ``branch`` copies live messages only, or ``copy`` makes them live.
    """
    conversation = new_conversation(8)
    supersede(conversation, 3)
    code = branch(conversation.owner_id, str(conversation.code), 6)
    target = Conversation.objects.get(code=code)
    rows = Message.objects.filter(conversation=target).order_by("seq")
    assert [row.seq for row in rows] == [1, 2, 3, 4, 5, 6]
    assert [row.seq for row in rows if row.superseded_at] == [3]
    assert (target.next_seq, target.branched_from) == (7, conversation)
    assert Message.objects.filter(conversation=conversation).count() == 8
