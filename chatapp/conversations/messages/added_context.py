"""What the program adds to a user's message, stored with it and sent unchanged from then on."""

from __future__ import annotations

from django.db import transaction
from django.db.models import F

from chatapp.conversations.messages.paging import for_screen
from chatapp.conversations.messages.stored import live
from chatapp.conversations.messages.views import message_view
from chatapp.live.view_models import MessageView
from chatapp.models import Conversation, MessageRole
from compression.database import in_database_thread


@transaction.atomic
def add_context(
    conversation_id: int, seq: int, text: str, *, tokens: int
) -> tuple[int, MessageView] | None:
    """Store ``text`` with a user's message whose turn is open, if nothing is stored with it yet.

    ``tokens``: ruler tokens of the message with it. Returns ``event_no`` and the changed message;
    None if nothing was changed.
    """
    row = Conversation.objects.select_for_update().filter(pk=conversation_id, deleted_at=None)
    found = live(conversation_id).filter(
        seq=seq, role=MessageRole.USER, added_context="", turn__finished_at=None
    )
    number = row.values_list("event_no", flat=True).first()
    if number is None or not found.exists():
        return None
    Conversation.objects.filter(pk=conversation_id).update(event_no=F("event_no") + 1)
    live(conversation_id).filter(seq=seq).update(
        added_context=text, token_count=tokens, event_no=number + 1
    )
    return number + 1, message_view(for_screen(live(conversation_id)).get(seq=seq))


aadd_context = in_database_thread(add_context)
