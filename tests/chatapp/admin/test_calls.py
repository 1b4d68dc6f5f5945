"""The log of calls in the admin: who may see it, and that each look is recorded."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from chatapp import wiring
from chatapp.activity.lines import encoded
from chatapp.activity.log import ActivityLog
from chatapp.conversations.model_calls.storing import Indexed, index
from chatapp.conversations.model_calls.subjects import subject
from chatapp.models import AccessRecord, ModelCall
from tests.chatapp.talking import new, row_of
from tests.reviewing import browser_of, page, staff

pytestmark = pytest.mark.django_db

LIST = "/admin/chatapp/modelcall/"


@pytest.fixture
def call(alice: User, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModelCall:
    """A call of a conversation of alice's, with its line."""
    log = ActivityLog(str(tmp_path))
    monkeypatch.setattr(wiring, "activity_log", lambda: log)
    files = log.files
    assert files is not None
    line = {
        "call": str(uuid.uuid4()),
        "timestamp": "2026-03-01T10:00:00+00:00",
        "project": "default",
        "kind": "chat",
        "model": "fake\u202emodel",
        "duration": 1.5,
        "request": {"messages": [{"role": "user", "content": "the secret of <b>alice</b>"}]},
        "response": {"text": "the reply"},
    }
    at = files.append("default", encoded(line))
    row = row_of(new(alice))
    place: dict[str, Any] = {"file": at.file, "offset": at.offset, "length": at.length}
    index([Indexed(line=line, subject=subject(row.pk), place=files.place(), **place)])
    return ModelCall.objects.get()


def test_the_log_needs_its_permission_and_texts_that_of_messages(call: ModelCall) -> None:
    """A05, I19: and each look at another's is recorded.

    Breaks when: ``_texts`` does not ask ``may_read_messages``, or ``on_look`` records nothing.
    """
    one = f"{LIST}{call.pk}/change/"
    summaries = browser_of(staff("sue", "view_summary", "view_conversation"))
    assert {summaries.get(path).status_code for path in (LIST, one)} == {403}
    figures = browser_of(staff("fay", "view_modelcall"))
    assert "default" in page(figures, one)
    assert "secret of" not in page(figures, LIST) + page(figures, one)
    assert AccessRecord.objects.filter(viewer_name="fay", what="log").count() == 2
    reader = browser_of(staff("rob", "view_modelcall", "view_message"))
    shown = page(reader, one)
    assert "the secret of &lt;b&gt;alice" in shown
    assert "the reply" in shown
    assert "\u202e" not in shown + page(reader, LIST)
    assert reader.post(one, {"kind": "x"}).status_code == 403
    assert reader.get(f"{LIST}add/").status_code == 403


def test_a_deleted_conversations_calls_are_not_in_the_admin(call: ModelCall) -> None:
    """Breaks when: the rows stay listed until the upkeep has removed them."""
    root = browser_of(User.objects.create_superuser("root"))
    assert "reply" in page(root, LIST)
    assert call.conversation is not None
    call.conversation.delete()
    assert f"{LIST}{call.pk}/" not in page(root, LIST)
