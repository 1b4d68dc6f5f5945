"""The size of a conversation's next request: tokens of the tail that is sent, and what providers
counted for its last requests.
"""

from __future__ import annotations

from django.db.models import Sum

from chatapp.context.request import visible_messages, wire_of
from chatapp.conversations.messages.stored import as_values, live
from chatapp.models import Conversation
from compression.planning.projection import Report

# A tail of so many messages is counted as it is sent, with what the program puts in for turns that
# got no reply. A longer one is summed up by the database, which knows nothing of these.
MOST_COUNTED = 500
# Characters of a message that show whether there is a text.
A_LOOK = 64
# What a message is counted by, of the fields of a StoredMessage.
COUNTED = ("seq", "role", "text", "token_count", "tool_calls", "tool_call_id", "turn_open")
# So many of the last turns are looked at for what a provider counted: some may have failed.
LOOKED_AT = 10


def tail_tokens(row: Conversation) -> int:
    """Ruler tokens of what is sent verbatim."""
    after = max(row.compressed_through, row.truncated_through)
    found = live(row.pk).filter(seq__gt=after)
    if row.next_seq - 1 - after > MOST_COUNTED:
        total: int | None = found.aggregate(total=Sum("token_count"))["total"]
        return total or 0
    tail = as_values(found, names=COUNTED, characters=A_LOOK)
    return sum(one.tokens for one in wire_of(visible_messages(tail)))


def reports(row: Conversation) -> tuple[tuple[str, Report], ...]:
    """The providers' counts of the last requests, newest first, each with its model."""
    turns = row.turns.filter(finished_at__isnull=False).order_by("-event_no")[:LOOKED_AT]
    return tuple(
        (model, Report(counted=counted, reported=reported))
        for model, reported, counted in turns.values_list(
            "model", "prompt_tokens", "manifest__counted"
        )
        if reported and counted
    )
