"""Pinned messages, which every request quotes once they lie before the boundary."""

from __future__ import annotations

from django.db import transaction
from django.db.models import F, Sum
from django.utils import timezone

from chatapp.conversations.messages.paging import for_screen
from chatapp.conversations.messages.reading import message_view
from chatapp.conversations.messages.stored import live
from chatapp.conversations.ownership import owned
from chatapp.errors import InvalidInput, NotFound
from chatapp.live.view_models import MessageView
from chatapp.models import Conversation, MessageRole
from compression.database import in_database_thread


@transaction.atomic
def pin(
    user_id: int, code: str, seq: int, *, on: bool, most_tokens: int
) -> tuple[int, int, MessageView]:
    """Pin or unpin a message. Returns conversation id, ``event_no``, and the changed message.

    All pins together may have ``most_tokens`` ruler tokens. Raises NotFound, and InvalidInput
    when that is exceeded or the message is a tool's.
    """
    row = owned(user_id, code)
    Conversation.objects.filter(pk=row.pk).update(event_no=F("event_no") + 1)
    row.refresh_from_db(fields=["event_no"])
    message = for_screen(live(row.pk)).filter(seq=seq).first()
    if message is None:
        raise NotFound
    if on and message.role == MessageRole.TOOL:
        raise InvalidInput.of("seq", "Only messages of people and of the model can be pinned.")
    message.pinned_at = timezone.now() if on else None
    message.event_no = row.event_no
    message.save(update_fields=["pinned_at", "event_no"])
    pinned = live(row.pk).filter(pinned_at__isnull=False)
    total = pinned.aggregate(total=Sum("token_count"))["total"] or 0
    if on and total > most_tokens:
        alone = pinned.count() == 1
        raise InvalidInput(
            f"This message has about {total:,} tokens; at most {most_tokens:,} can be pinned."
            if alone
            else f"The pinned messages would have about {total:,} tokens together; at most "
            f"{most_tokens:,} are allowed. Unpin another one first.",
            fields={"seq": "Too large to be pinned.", "tokens": total, "most": most_tokens},
        )
    return row.pk, row.event_no, message_view(message)


apin = in_database_thread(pin)
