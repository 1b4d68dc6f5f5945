"""What the tests of the admin look at: conversations with versions, and staff of every kind."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import Permission, User
from django.test import Client

from chatapp.conversations.imports.storing import store_import
from chatapp.conversations.messages.transcript import StoredTranscript
from chatapp.models import Conversation, Message, Summary, TitleSource
from chatapp.transfer.values import ForeignConversation, ForeignMessage
from compression import store
from compression.ledger.markdown import render
from compression.types import Entry, Ledger, Section, Trigger

TRANSCRIPT = StoredTranscript()
BASE = "/admin/chatapp/"
SECRET = "what was said in secret 4711"


def conversation_of(owner: User, *texts: str, title: str = "A talk") -> Conversation:
    """User and assistant by turns."""
    messages = tuple(
        ForeignMessage(role="assistant" if number % 2 else "user", text=text)
        for number, text in enumerate(texts)
    )
    stored = store_import(
        owner.pk,
        ForeignConversation(messages=messages),
        tokens=[10] * len(messages),
        title=title,
        title_source=TitleSource.PERSON,
    )
    return Conversation.objects.get(code=stored.code)


def draft_of(
    conversation: Conversation, base: store.Base, *lines: str, through_seq: int = 2, **values: Any
) -> store.FitDraft:
    """A machine's draft on ``base`` whose decisions are ``lines``."""
    entries = tuple(
        Entry(id=number, section=Section.DECISIONS, text=line, sources=(1,))
        for number, line in enumerate(lines, start=1)
    )
    items = TRANSCRIPT.items(conversation.pk, after_seq=base.boundary, through_seq=through_seq)
    fields: dict[str, Any] = {
        "trigger": Trigger.THRESHOLD,
        "ledger": Ledger(entries=entries),
        "text": render(Ledger(entries=entries)),
        "first_seq": base.boundary + 1,
        "through_seq": through_seq,
        "message_count": len(items),
        "fingerprint": store.fingerprint(items),
        "source_tokens": sum(item.tokens for item in items),
        "summary_tokens": 20,
        "usage_before": 0.8,
        "usage_after": 0.3,
        "model": "small",
        "audit": AUDIT,
    }
    return store.FitDraft(**fields | values)


def summarise(
    conversation: Conversation, *lines: str, through_seq: int = 2, **values: Any
) -> Summary:
    """Claim, draft and apply, as a run of compression does."""
    base = store.read_base(conversation.pk)
    draft = draft_of(conversation, base, *lines, through_seq=through_seq, **values)
    token = store.claim(conversation.pk, trigger=draft.trigger, locks_input=True)
    assert token is not None
    version = store.apply(conversation.pk, token, base, draft, TRANSCRIPT)
    assert version is not None
    return Summary.objects.get(conversation=conversation, version=version)


AUDIT = {
    "salient": 4,
    "retained": 3,
    "missing": ["only-in-the-original-77"],
    "evicted": ["an evicted line"],
    "dropped": ["a refused line"],
    "notes": ["a note"],
    "floor": {"held": 5, "extract": 12, "filled": 3},
}


def staff(name: str, *permissions: str) -> User:
    """A member of the staff with the named permissions of the chat."""
    person = User.objects.create_user(name, is_staff=True)
    for codename in permissions:
        person.user_permissions.add(
            Permission.objects.get(codename=codename, content_type__app_label="chatapp")
        )
    return person


def browser_of(person: User | None) -> Client:
    """A signed-in client, or an anonymous one."""
    client = Client()
    if person is not None:
        client.force_login(person)
    return client


def summary_path(summary: Summary) -> str:
    """Its page in the admin."""
    return f"/admin/chatapp/summary/{summary.pk}/change/"


def review_path(summary: Summary) -> str:
    """Its review."""
    return f"{BASE}summary/{summary.pk}/review/"


def page(client: Client, path: str) -> str:
    response = client.get(path)
    assert response.status_code == 200, path
    return str(response.content.decode())


def conversation_path(conversation: Conversation) -> str:
    return f"{BASE}conversation/{conversation.pk}/change/"


def messages_path(conversation: Conversation) -> str:
    return f"{BASE}message/?conversation__id__exact={conversation.pk}"


def message_path(conversation: Conversation) -> str:
    first = Message.objects.get(conversation=conversation, seq=1)
    return f"{BASE}message/{first.pk}/change/"


def every_path(summary: Summary) -> dict[str, str]:
    """Every page that shows something of one conversation -> the permission that it needs."""
    conversation = summary.conversation
    first = Message.objects.get(conversation=conversation, seq=1).pk
    return {
        f"{BASE}conversation/": "view_conversation",
        conversation_path(conversation): "view_conversation",
        f"{BASE}conversation/{conversation.pk}/history/": "view_conversation",
        f"{BASE}summary/": "view_summary",
        summary_path(summary): "view_summary",
        f"{BASE}summary/{summary.pk}/history/": "view_summary",
        f"{BASE}summary/?queue=waiting": "view_summary",
        review_path(summary): "view_summary",
        f"{BASE}summary/figures/": "view_summary",
        messages_path(conversation): "view_message",
        message_path(conversation): "view_message",
        f"{BASE}message/{first}/history/": "view_message",
        f"{BASE}accessrecord/": "view_accessrecord",
        f"{BASE}modelprofile/": "view_modelprofile",
    }
