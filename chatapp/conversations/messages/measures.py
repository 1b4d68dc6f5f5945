"""The size of a conversation's next request: the tokens of the tail, and what providers counted
for its last requests.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db.models import BigIntegerField, Max, QuerySet, Sum

from chatapp.context.request import visible_messages
from chatapp.context.sent_back import NOTHING, SentBack
from chatapp.context.wire import wire_of
from chatapp.conversations.messages.stored import counted_tail, live
from chatapp.models import Conversation, Message, Turn
from compression.planning.projection import Report
from compression.store.worded import worded

# Messages up to which the tail is counted exactly, with the notices for turns without a reply. A
# longer tail is added up by the database, which does not know these notices.
MOST_COUNTED = 500
# Latest turns searched for a provider's count; some of them may have failed.
LOOKED_AT = 10


def tail_tokens(row: Conversation, back: SentBack = NOTHING) -> int:
    """Ruler tokens of the part of the tail that is sent; ``back``: what goes back with it."""
    after = max(row.compressed_through, row.truncated_through)
    if row.next_seq - 1 - after > MOST_COUNTED:
        found = live(row.pk).filter(seq__gt=after)
        total: int | None = found.aggregate(total=Sum("token_count"))["total"]
        return (total or 0) + _reasoning_tokens(row, found, back)
    tail = counted_tail(row.pk, after_seq=after)
    return sum(one.tokens for one in wire_of(visible_messages(tail), back))


def _reasoning_tokens(row: Conversation, found: QuerySet[Message], back: SentBack) -> int:
    """Ruler tokens of the reasoning that is sent back with these messages."""
    if back.reasoning == "never":
        return 0
    thought = found.filter(reasoning_field__isnull=False, turn__model=back.model)
    if back.reasoning == "tool_turns":
        thought = thought.filter(turn__in=found.exclude(tool_calls=[]).values("turn"))
    masked: int | None = found.filter(masked_at__isnull=False).aggregate(last=Max("seq"))["last"]
    thought = thought.filter(seq__gte=masked or 0, seq__gt=row.reasoning_dropped_through or 0)
    total: int | None = thought.aggregate(total=Sum("reasoning_tokens"))["total"]
    return total or 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LastRequests:
    """The latest requests of a conversation, as far as the next one is judged by them."""

    reports: tuple[tuple[str, Report], ...]
    """The providers' counts, newest first, each with its model."""
    tools: int
    """Ruler tokens of the definitions of the tools that the latest one offered."""


def last_requests(row: Conversation) -> LastRequests:
    """What is known of the latest requests from the turns that made them."""
    found = []
    tools: int | None = None
    for model, whole, counted, reported, offered in _ended_turns(conversation=row.pk):
        if tools is None and counted:
            tools = offered or 0
        # A turn's tokens are those of all its requests; the manifest is that of the last one.
        last = whole if reported is None else reported
        if last and counted:
            found.append((model, Report(counted=counted, reported=last)))
    return LastRequests(reports=tuple(found), tools=tools or 0)


@worded(conversation=BigIntegerField)
def _ended_turns(conversation: int) -> QuerySet[Turn, tuple[Any, ...]]:
    """What the turns that have ended say of their requests, latest first."""
    rows = Turn.objects.filter(conversation_id=conversation, finished_at__isnull=False)
    return rows.order_by("-event_no").values_list(
        "model",
        "prompt_tokens",
        "manifest__counted",
        "manifest__reported",
        "manifest__tokens__tools",
    )[:LOOKED_AT]
