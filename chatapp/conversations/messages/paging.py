"""The messages of a conversation that a page shows: never all of a long one."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import OuterRef, Q, QuerySet, Subquery

from chatapp.models import Conversation, Message

FIRST_MESSAGES = 30
OLDER_MESSAGES = 50
# Of a page that is opened at a message, so many stand above it.
ABOVE = 10
# A reply that failed before its first word is replaced by a retry, and nothing is lost with it.
_SAID = ~Q(text="", tool_calls=[])


@dataclass(frozen=True, kw_only=True)
class MessagePage:
    """Some messages in a row, oldest first."""

    messages: list[Message]
    has_older: bool = False
    has_newer: bool = False


def with_turns(rows: QuerySet[Message]) -> QuerySet[Message]:
    """Messages with their turns in the same query, without the turns' long fields."""
    return rows.select_related("turn").defer("turn__manifest", "turn__error")


def for_screen(rows: QuerySet[Message]) -> QuerySet[Message]:
    """Messages with their turns; ``replaced_at`` is set where superseded ones stand right before.

    One step back along the index tells, however many messages were superseded together.
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
    """The newest messages; or those before a seq, after one, or with one of them in their midst.

    A message that is not there any more (``around``) is where it would be.
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
