from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from chatapp.conversations import drafts
from chatapp.models import Conversation
from tests.chatapp.talking import new, row_of

pytestmark = [pytest.mark.storage, pytest.mark.django_db(transaction=True)]


def test_a_draft_that_waits_to_be_sent_is_left_alone(alice: User) -> None:
    code = new(alice)
    drafts.save_draft(alice.pk, code, "being written")
    assert row_of(code).draft == "being written"
    Conversation.objects.update(draft="waits", send_when_done=True)
    drafts.save_draft(alice.pk, code, "being written")
    assert row_of(code).draft == "waits"
