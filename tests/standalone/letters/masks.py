"""Which letters the model sees as a description only."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import transaction
from django.db.models import Max

from compression.ports import MaskChange

from .models import Letter, Thread

CHANGED = ["masked", "mask_batch", "unmasked_tokens", "tokens"]


class LetterMasks:
    """See :class:`compression.ports.Masks`."""

    @transaction.atomic
    def put_on(self, conversation_id: int, tokens: Mapping[int, int]) -> MaskChange | None:
        Thread.objects.select_for_update().get(pk=conversation_id)
        letters = Letter.objects.filter(thread=conversation_id)
        batch = (letters.aggregate(last=Max("mask_batch"))["last"] or 0) + 1
        rows = letters.filter(number__in=tokens, withdrawn=False, masked=False).order_by("number")
        changed = list(rows)
        for row in changed:
            row.masked, row.mask_batch = True, batch
            row.unmasked_tokens, row.tokens = row.tokens, tokens[row.number]
        Letter.objects.bulk_update(changed, CHANGED)
        return change_of(changed, batch)

    @transaction.atomic
    def take_off(self, conversation_id: int, batch: int) -> MaskChange | None:
        rows = Letter.objects.filter(thread=conversation_id, mask_batch=batch, masked=True)
        changed = list(rows.order_by("number"))
        change = change_of(changed, batch)
        for row in changed:
            row.masked, row.tokens = False, row.unmasked_tokens
        Letter.objects.bulk_update(changed, CHANGED)
        return change


def change_of(letters: list[Letter], batch: int) -> MaskChange | None:
    if not letters:
        return None
    return MaskChange(
        batch=batch,
        seqs=tuple(one.number for one in letters),
        tokens_freed=sum(one.unmasked_tokens - one.tokens for one in letters),
    )
