"""Titles given by the program, as long as no person has given one."""

from __future__ import annotations

from django.db.models import F, Q

from chatapp.models import Conversation, TitleSource
from compression.database import in_database_thread

_UNNAMED = Q(title="") & ~Q(title_source=TitleSource.PERSON)


def set_automatic_title(conversation_id: int, title: str) -> int | None:
    """Set a title unless a person has. Returns the new ``event_no``; None if nothing changed."""
    changed = Conversation.objects.filter(_UNNAMED, pk=conversation_id).update(
        title=title, title_source=TitleSource.FIRST_WORDS, event_no=F("event_no") + 1
    )
    if not changed:
        return None
    return Conversation.objects.values_list("event_no", flat=True).get(pk=conversation_id)


def may_be_named(conversation_id: int) -> bool:
    """Whether the conversation is untitled, and not because a person removed the title."""
    return Conversation.objects.filter(_UNNAMED, pk=conversation_id).exists()


def replace_automatic_title(conversation_id: int, title: str) -> int | None:
    """Replace the first words by the model's title; returns as :func:`set_automatic_title`."""
    changed = Conversation.objects.filter(
        pk=conversation_id, title_source=TitleSource.FIRST_WORDS, deleted_at__isnull=True
    ).update(title=title, title_source=TitleSource.MODEL, event_no=F("event_no") + 1)
    if not changed:
        return None
    return Conversation.objects.values_list("event_no", flat=True).get(pk=conversation_id)


aset_automatic_title = in_database_thread(set_automatic_title)
amay_be_named = in_database_thread(may_be_named)
areplace_automatic_title = in_database_thread(replace_automatic_title)
