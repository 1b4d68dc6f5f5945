"""Shared links in the admin: seen without being opened, and revoked."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from chatapp.conversations.sharing import links
from chatapp.models import AccessRecord, Share
from tests.reviewing import SECRET, browser_of, conversation_of, staff

pytestmark = pytest.mark.django_db

LIST = "/admin/chatapp/share/"


def test_links_are_seen_and_revoked_with_permission_only(alice: User) -> None:
    """No message, title or token is shown; who revokes is recorded.

    Breaks when: the action does not look at the permission, or leaves no record.
    """
    conversation = conversation_of(alice, SECRET)
    code = str(conversation.code)
    share, token = links.share(alice.pk, code, summaries=True, tools=True, days=None)
    seer = browser_of(staff("seer", "view_share"))
    ender = browser_of(staff("ender", "view_share", "change_share"))
    chosen = {"action": "revoke", "_selected_action": [share.share]}
    for path in (LIST, f"{LIST}{share.share}/change/"):
        shown = seer.get(path).content.decode()
        assert code in shown
        for hidden in (SECRET, token, Share.objects.get().token_sha256, "Revoke the selected"):
            assert hidden not in shown
    seer.post(LIST, chosen)
    assert Share.objects.get().revoked_at is None
    assert not AccessRecord.objects.exists()
    ender.post(LIST, chosen)
    assert Share.objects.get().revoked_at is not None
    record = AccessRecord.objects.get()
    assert (record.viewer_name, record.what) == ("ender", "revoked a shared link")
