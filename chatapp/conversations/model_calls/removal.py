"""The rows of the index whose time is over, or whose conversation is gone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime

from django.db.models import Exists, OuterRef

from chatapp.models import Conversation, DailyCalls, ModelCall
from compression.database import in_database_thread

#: Rows of one statement, so that no other writer waits long.
PORTION = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftover:
    """A row to be removed together with its line."""

    pk: int
    file: str
    offset: int
    length: int


def of_deleted_conversations(place: str, before: datetime) -> list[Leftover]:
    """Rows of one folder whose conversations were deleted before a time; a portion of them."""
    calls = ModelCall.objects.filter(place=place, conversation=OuterRef("pk"))
    deleted = Conversation.objects.filter(Exists(calls), deleted_at__lt=before)
    ids = list(deleted.values_list("pk", flat=True)[:PORTION])
    return _leftovers(ModelCall.objects.filter(place=place, conversation__in=ids)) if ids else []


def of_vanished_conversations(place: str) -> list[Leftover]:
    """Rows of one folder whose conversations exist no more; a portion of them."""
    there = Conversation.objects.filter(pk=OuterRef("conversation_id"))
    rows = ModelCall.objects.filter(place=place, conversation_id__isnull=False)
    return _leftovers(rows.exclude(Exists(there)))


def _leftovers(rows: object) -> list[Leftover]:
    return [
        Leftover(pk=pk, file=file, offset=offset, length=length)
        for pk, file, offset, length in rows.values_list(  # type: ignore[attr-defined]
            "pk", "file", "offset", "length"
        )[:PORTION]
    ]


def remove(keys: Sequence[int]) -> None:
    """Remove rows of the index."""
    ModelCall.objects.filter(pk__in=keys).delete()


def expire(before: datetime) -> bool:
    """Remove a portion of the rows older than a time. Returns whether there may be more."""
    old = list(ModelCall.objects.filter(at__lt=before).values_list("pk", flat=True)[:PORTION])
    remove(old)
    return len(old) == PORTION


def expire_sums(before: date) -> None:
    """Remove the sums of days before this one."""
    DailyCalls.objects.filter(day__lt=before).delete()


aof_deleted_conversations = in_database_thread(of_deleted_conversations, lane="slow")
aof_vanished_conversations = in_database_thread(of_vanished_conversations, lane="slow")
aremove = in_database_thread(remove, lane="slow")
aexpire = in_database_thread(expire, lane="slow")
aexpire_sums = in_database_thread(expire_sums, lane="slow")
