"""Pinned messages, which every request quotes once they lie before the boundary."""

from __future__ import annotations

from collections.abc import Collection

from django.db import transaction
from django.db.models import F, QuerySet, Sum
from django.utils import timezone

from chatapp.conversations.messages.paging import for_screen
from chatapp.conversations.messages.stored import live
from chatapp.conversations.messages.views import message_view
from chatapp.conversations.ownership import owned
from chatapp.errors import InvalidInput, NotFound
from chatapp.live.view_models import MessageView
from chatapp.models import Conversation, Message, MessageRole
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


@transaction.atomic
def pin_between(
    user_id: int, code: str, *, after_seq: int, before_seq: int, most_tokens: int, try_only: bool
) -> tuple[int, int, list[MessageView]]:
    """Pin the messages between two others, results of tools apart.

    Returns conversation id, ``event_no``, and the messages that were not pinned before. With
    ``try_only`` nothing is changed. Raises NotFound, and InvalidInput when all pins together would
    have more than ``most_tokens`` ruler tokens.
    """
    row = owned(user_id, code)
    between = live(row.pk).filter(
        seq__gt=after_seq, seq__lt=before_seq, role__in=(MessageRole.USER, MessageRole.ASSISTANT)
    )
    new = between.filter(pinned_at__isnull=True)
    total = _tokens(live(row.pk).filter(pinned_at__isnull=False)) + _tokens(new)
    if total > most_tokens:
        raise InvalidInput(
            f"The messages before message {before_seq} would stay word for word, with about "
            f"{total:,} tokens; at most {most_tokens:,} can. Begin the range earlier.",
            fields={"from_seq": "Too much stands before it.", "tokens": total, "most": most_tokens},
        )
    if try_only:
        return row.pk, row.event_no, []
    Conversation.objects.filter(pk=row.pk).update(event_no=F("event_no") + 1)
    row.refresh_from_db(fields=["event_no"])
    seqs = list(new.values_list("seq", flat=True))
    new.update(pinned_at=timezone.now(), event_no=row.event_no)
    changed = for_screen(live(row.pk)).filter(seq__in=seqs).order_by("seq")
    return row.pk, row.event_no, [message_view(one) for one in changed]


@transaction.atomic
def unpin_all(conversation_id: int, seqs: Collection[int]) -> None:
    """Take these pins off again, because what they were for did not come about."""
    found = Conversation.objects.filter(pk=conversation_id)
    found.update(event_no=F("event_no") + 1)
    event_no = found.values_list("event_no", flat=True).first() or 0
    live(conversation_id).filter(seq__in=seqs).update(pinned_at=None, event_no=event_no)


def _tokens(messages: QuerySet[Message]) -> int:
    return int(messages.aggregate(total=Sum("token_count"))["total"] or 0)


apin = in_database_thread(pin)
apin_between = in_database_thread(pin_between)
aunpin_all = in_database_thread(unpin_all)
