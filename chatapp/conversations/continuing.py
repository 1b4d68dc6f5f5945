"""New conversations that continue another as its next part.

They begin with the summary, the rules, the pinned messages and the last turns of the other one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.db import transaction
from django.db.models import Sum

from chatapp.conversations.branching import copy, like
from chatapp.conversations.messages.stored import live
from chatapp.conversations.messages.transcript import StoredTranscript
from chatapp.conversations.ownership import owned
from chatapp.conversations.tools.servers import copy_choices
from chatapp.models import Conversation, Message, MessageRole
from compression import store
from compression.database import in_database_thread, snapshot
from compression.exceptions import StaleVersion
from compression.types import Item, Ledger


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftBehind:
    """The messages that neither the summary nor the last turns hold, and the summary itself."""

    version: int
    text: str
    ledger: Ledger
    first_kept: int
    """The first message of the last turns; the number after the last message if there are none."""
    items: Sequence[Item]


@snapshot()
def left_behind(user_id: int, code: str, keep_turns: int, most_tokens: int) -> LeftBehind:
    """What a continuation with so many turns would lack. Raises NotFound.

    The turns may have ``most_tokens`` ruler tokens together, so that the next part has room for
    more: what has no room in this one would have none there either.
    """
    row = owned(user_id, code)
    base = store.read_base(row.pk)
    first = _first_kept(row, keep_turns, most_tokens)
    between = StoredTranscript().items(
        row.pk, after_seq=row.compressed_through, through_seq=first - 1
    )
    return LeftBehind(
        version=base.version,
        text=base.text,
        ledger=base.ledger,
        first_kept=first,
        items=[one for one in between if not one.open],
    )


def _first_kept(row: Conversation, keep_turns: int, most_tokens: int) -> int:
    ended = live(row.pk).filter(seq__gt=row.compressed_through, turn__finished_at__isnull=False)
    questions = ended.filter(role=MessageRole.USER).order_by("-seq")
    first = row.next_seq
    for start in questions.values_list("seq", flat=True)[:keep_turns]:
        tokens = ended.filter(seq__gte=start).aggregate(total=Sum("token_count"))["total"]
        if tokens > most_tokens:
            break
        first = start
    return first


@transaction.atomic
def continue_in_new(
    user_id: int, code: str, left: LeftBehind, *, text: str, ledger: Ledger, summary_tokens: int
) -> str:
    """The next part, with this summary as version 1, pinned messages, and the last turns.

    The messages get the numbers 1, 2, 3 …; pinned ones that are not of the last turns come first,
    before the boundary, so that each request quotes them. Returns the code. Raises NotFound, and
    StaleVersion when the summary has changed since ``left`` was read.
    """
    row = owned(user_id, code)
    if row.compression_version != left.version:
        raise StaleVersion("The summary has just changed. Try once more; nothing was done.")
    pinned = _pinned_before(row, left.first_kept)
    kept = live(row.pk).filter(seq__gte=left.first_kept, turn__finished_at__isnull=False)
    source = [*pinned, *kept.order_by("seq")]
    target = like(row, title=row.title)
    target.continued_from = row
    target.part = (row.part or 1) + 1
    target.first_part_id = row.first_part_id or row.pk
    target.next_seq = len(source) + 1
    target.save()
    copy(source, target, renumber=True)
    copy_choices(row, target)
    if text or pinned:
        _begin_with(target, len(pinned), text, ledger, summary_tokens, user_id)
    return str(target.code)


def _pinned_before(row: Conversation, seq: int) -> list[Message]:
    pinned = list(live(row.pk).filter(pinned_at__isnull=False, seq__lt=seq).order_by("seq"))
    for one in pinned:
        # Only the words are quoted; the results of these calls do not come along.
        one.tool_calls = []
    return pinned


def _begin_with(
    target: Conversation, pinned: int, text: str, ledger: Ledger, tokens: int, user_id: int
) -> None:
    transcript = StoredTranscript()
    quoted = transcript.items(target.pk, after_seq=0, through_seq=pinned) if pinned else ()
    base = replace(store.read_base(target.pk), text=text, ledger=ledger)
    store.carry_over(target.pk, base, summary_tokens=tokens, author_id=user_id, quoted=quoted)


aleft_behind = in_database_thread(left_behind)
acontinue_in_new = in_database_thread(continue_in_new)
