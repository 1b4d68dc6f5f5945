"""The messages that a page shows: always a limited number."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import OuterRef, Q, QuerySet, Subquery

from chatapp.models import Conversation, Message

FIRST_MESSAGES = 30
OLDER_MESSAGES = 50
# Messages above the one that a page is opened at.
ABOVE = 10
# Excludes replies that failed before their first word: a retry replaces them without any loss.
_SAID = ~Q(text="", tool_calls=[])


@dataclass(frozen=True, kw_only=True)
class MessagePage:
    """Consecutive messages, oldest first."""

    messages: list[Message]
    has_older: bool = False
    has_newer: bool = False


def with_turns(rows: QuerySet[Message]) -> QuerySet[Message]:
    """Messages joined with their turns, without the turns' long fields."""
    return rows.select_related("turn").defer("turn__manifest", "turn__error")


def for_screen(rows: QuerySet[Message]) -> QuerySet[Message]:
    """Messages with their turns; ``replaced_at`` is set if superseded ones stand right before.

    One step back in the index tells that, however many messages were superseded together.
    """
    before = Message.objects.filter(
        Q(superseded_at=None) | _SAID,
        conversation=OuterRef("conversation"),
        seq__lt=OuterRef("seq"),
    )
    nearest = before.order_by("-seq").values("superseded_at")[:1]
    return with_turns(rows).annotate(replaced_at=Subquery(nearest))


def message_page(
    row: Conversation,
    *,
    before: int | None = None,
    after: int | None = None,
    around: int | None = None,
) -> MessagePage:
    """The newest messages, or those before a seq, after a seq, or around one.

    ``around`` may be a message that no longer exists; the page then shows where it would be.
    """
    rows = for_screen(row.messages.all())
    if around is not None:
        older = list(rows.filter(seq__lt=around).order_by("-seq")[: ABOVE + 1])
        newer = _forward(rows.filter(seq__gte=around), FIRST_MESSAGES)
        return MessagePage(
            messages=older[:ABOVE][::-1] + newer.messages,
            has_older=len(older) > ABOVE,
            has_newer=newer.has_newer,
        )
    if after is not None:
        return _forward(rows.filter(seq__gt=after), OLDER_MESSAGES)
    if before is not None:
        rows = rows.filter(seq__lt=before)
    count = FIRST_MESSAGES if before is None else OLDER_MESSAGES
    newest = list(rows.order_by("-seq")[: count + 1])
    return MessagePage(
        messages=newest[:count][::-1],
        has_older=len(newest) > count,
        has_newer=before is not None and before < row.next_seq,
    )


def replaced(row: Conversation, seq: int, *, after: int = 0) -> MessagePage:
    """The superseded messages between the live message ``seq`` and the live one before it."""
    earlier = row.messages.filter(seq__lt=seq)
    live = earlier.filter(superseded_at=None).order_by("-seq")
    last = live.values_list("seq", flat=True).first() or 0
    between = earlier.filter(_SAID, seq__gt=max(last, after))
    return _forward(with_turns(between), OLDER_MESSAGES)


def _forward(rows: QuerySet[Message], count: int) -> MessagePage:
    found = list(rows.order_by("seq")[: count + 1])
    return MessagePage(messages=found[:count], has_newer=len(found) > count)
