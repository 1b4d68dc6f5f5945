"""Masks: the model sees a description of old tool results and arguments, the reader every word."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import F, Max
from django.utils import timezone

from chatapp.conversations.messages.paging import for_screen
from chatapp.conversations.messages.stored import MASKABLE, live
from chatapp.conversations.messages.views import message_view
from chatapp.live.view_models import MessageView
from chatapp.models import Conversation, Message
from compression.database import in_database_thread, snapshot
from compression.ports import MaskChange

# The columns that a change of masks writes.
_COLUMNS = ("masked_at", "mask_batch", "unmasked_tokens", "token_count", "event_no")


class StoredMasks:
    """A :class:`compression.ports.Masks` of the stored messages."""

    @transaction.atomic
    def put_on(self, conversation_id: int, tokens: Mapping[int, int]) -> MaskChange | None:
        """Mask those live messages with these seqs that can be, as a new batch, each once.

        ``tokens``: seq → ruler tokens of the masked message, which count from now on wherever the
        conversation's tokens are added up. None if no message was left to mask.
        """
        if not tokens:
            return None
        event_no = _next_event(conversation_id)
        numbered = Message.objects.filter(conversation_id=conversation_id, mask_batch__isnull=False)
        batch = (numbered.aggregate(last=Max("mask_batch"))["last"] or 0) + 1
        between = live(conversation_id).filter(
            MASKABLE, masked_at=None, seq__gte=min(tokens), seq__lte=max(tokens)
        )
        found = between.order_by("seq").only("seq", *_COLUMNS)
        rows = [row for row in found if row.seq in tokens]
        now = timezone.now()
        for row in rows:
            row.masked_at, row.mask_batch = now, batch
            row.unmasked_tokens, row.token_count = row.token_count, tokens[row.seq]
        return _written(rows, batch, event_no)

    @transaction.atomic
    def take_off(self, conversation_id: int, batch: int) -> MaskChange | None:
        """Unmask what is left of a batch; None if there is nothing. Keeps its number."""
        event_no = _next_event(conversation_id)
        masked = Message.objects.filter(conversation_id=conversation_id, masked_at__isnull=False)
        rows = list(masked.filter(mask_batch=batch).order_by("seq").only("seq", *_COLUMNS))
        change = _change(rows, batch)
        for row in rows:
            row.masked_at = None
            row.token_count = row.unmasked_tokens or row.token_count
        return _written(rows, batch, event_no) and change


def _next_event(conversation_id: int) -> int:
    """The number of this change; the conversation's row stays locked until it is committed."""
    row = Conversation.objects.filter(pk=conversation_id)
    row.update(event_no=F("event_no") + 1)
    return row.values_list("event_no", flat=True).first() or 0


def _written(rows: Sequence[Message], batch: int, event_no: int) -> MaskChange | None:
    if not rows:
        # Nothing was changed, so the number of changes stays as it was.
        transaction.set_rollback(True)
        return None
    for row in rows:
        row.event_no = event_no
    Message.objects.bulk_update(rows, _COLUMNS, batch_size=100)
    return _change(rows, batch)


def _change(rows: Iterable[Message], batch: int) -> MaskChange:
    rows = list(rows)
    return MaskChange(
        batch=batch,
        seqs=tuple(row.seq for row in rows),
        tokens_freed=sum((row.unmasked_tokens or 0) - row.token_count for row in rows),
    )


@dataclass(frozen=True, kw_only=True)
class Changed:
    """Messages as they are now."""

    event_no: int
    """The last change among them; 0 if there is none."""
    messages: tuple[MessageView, ...]


@snapshot()
def changed(conversation_id: int, seqs: Sequence[int]) -> Changed:
    """The messages with these seqs, in their order."""
    rows = for_screen(Message.objects.filter(conversation_id=conversation_id, seq__in=seqs))
    messages = tuple(message_view(one) for one in rows.order_by("seq"))
    return Changed(event_no=max((one.event_no for one in messages), default=0), messages=messages)


achanged = in_database_thread(changed)
