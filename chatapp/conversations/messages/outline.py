"""The outline of a conversation: its questions, its pins, and the strata of its summary.

However long the conversation, one page of entries is read, by the index on (conversation, seq), and
of each message only its beginning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from django.db.models import Q, QuerySet
from django.db.models.functions import Substr

from chatapp.conversations.messages.stored import live
from chatapp.conversations.ownership import owned
from chatapp.live.outline import Entry, Outline, Stratum
from chatapp.models import Conversation, Message, MessageRole, Summary
from chatapp.text.first_line import READ, first_line
from compression.database import in_database_thread, snapshot
from compression.types import Trigger

#: Entries of a page.
ENTRIES: Final = 100
#: Entries of a page that stand before the message that it is opened at.
ABOVE: Final = 40
#: Changed messages that are told one by one.
MOST_CHANGES: Final = 200
MOST_PINS: Final = 500
#: Versions of the summary that are looked at, the newest.
MOST_VERSIONS: Final = 1_000

_ENTRIES = Q(role=MessageRole.USER) | Q(pinned_at__isnull=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionMade:
    """How one version of a summary came about."""

    version: int
    parent: int
    restored_from: int | None
    trigger: str
    through_seq: int
    created_at: datetime


def strata_of(versions: Mapping[int, VersionMade], active: int) -> list[Stratum]:
    """The strata under the active version, the oldest first. Pure.

    Each ends where a version moved the boundary that is still in force. An edit, a restored version
    and what was undone move nothing; a new start leaves all behind that is older. Versions may be
    imported, so their parents may be anything.
    """
    found: list[Stratum] = []
    seen: set[int] = set()
    number, cleared = active, False
    while number in versions and number not in seen:
        seen.add(number)
        made = versions[number]
        if made.restored_from is not None and made.restored_from != number:
            number = made.restored_from
            continue
        cleared = cleared or made.trigger == Trigger.CLEAR
        while found and made.through_seq >= found[-1].through_seq:
            # The later version kept the boundary: this one is what moved it.
            found.pop()
        if made.through_seq:
            stratum = Stratum(
                first_seq=1,
                through_seq=made.through_seq,
                version=made.version,
                cleared=cleared,
                created_at=made.created_at,
            )
            found.append(stratum)
        number = made.parent
    found.reverse()
    return [
        replace(one, first_seq=found[place - 1].through_seq + 1 if place else 1)
        for place, one in enumerate(found)
    ]


@snapshot()
def outline(user_id: int, code: str, **place: int | None) -> Outline:
    """The newest page of the outline, or another one. The number of queries is constant.

    ``place`` is ``before``, ``after`` or ``around`` a seq, or ``since``, an ``event_no``, for what
    has changed after it. Raises NotFound.
    """
    row = owned(user_id, code)
    found = _page(row, **place)
    return Outline(
        entries=found.entries,
        strata=_strata(row),
        pins=_pins(row),
        gone=list(found.gone),
        begins_after=found.begins_after,
        has_newer=found.has_newer,
        last_seq=row.next_seq - 1,
        event_no=row.event_no,
        complete=found.complete,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Page:
    """The part of an outline that depends on the place in the conversation."""

    entries: list[Entry]
    begins_after: int = 0
    has_newer: bool = False
    gone: Sequence[int] = ()
    complete: bool = True


def _page(
    row: Conversation,
    *,
    before: int | None = None,
    after: int | None = None,
    around: int | None = None,
    since: int | None = None,
) -> _Page:
    rows = live(row.pk).filter(_ENTRIES)
    if since is not None:
        return _changes(row, since) or replace(_page(row), complete=False)
    if around is not None:
        older = _older(rows.filter(seq__lt=around), ABOVE)
        newer = _newer(rows.filter(seq__gte=around), ENTRIES - ABOVE)
        return replace(
            newer, entries=older.entries + newer.entries, begins_after=older.begins_after
        )
    if after is not None:
        return replace(_newer(rows.filter(seq__gt=after), ENTRIES), begins_after=after)
    if before is not None:
        return replace(_older(rows.filter(seq__lt=before), ENTRIES), has_newer=True)
    return _older(rows, ENTRIES)


def _older(rows: QuerySet[Message], count: int) -> _Page:
    found = [_entry(one) for one in _narrow(rows).order_by("-seq")[: count + 1]]
    begins_after = found[count].seq if len(found) > count else 0
    return _Page(entries=found[:count][::-1], begins_after=begins_after)


def _newer(rows: QuerySet[Message], count: int) -> _Page:
    found = [_entry(one) for one in _narrow(rows).order_by("seq")[: count + 1]]
    return _Page(entries=found[:count], has_newer=len(found) > count)


def _changes(row: Conversation, since: int) -> _Page | None:
    """What has changed after ``since``; None if that is too much to be told."""
    changed = row.messages.filter(event_no__gt=since).order_by("seq")
    found = list(_narrow(changed)[: MOST_CHANGES + 1])
    if len(found) > MOST_CHANGES:
        return None
    return _Page(
        entries=[_entry(one) for one in found if _is_entry(one)],
        gone=[one["seq"] for one in found if not _is_entry(one)],
    )


def _narrow(rows: QuerySet[Message]) -> QuerySet[Any, Any]:
    """The rows as dictionaries, with the beginnings of their texts only."""
    return rows.annotate(beginning=Substr("text", 1, READ)).values(
        "seq", "role", "beginning", "created_at", "pinned_at", "superseded_at"
    )


def _entry(row: dict[str, Any]) -> Entry:
    return Entry(
        seq=row["seq"],
        role=row["role"],
        line=first_line(row["beginning"]),
        created_at=row["created_at"],
        pinned=row["pinned_at"] is not None,
    )


def _is_entry(row: dict[str, Any]) -> bool:
    """Whether a changed message is live and one that the outline shows."""
    shown = row["role"] == MessageRole.USER or row["pinned_at"] is not None
    return shown and row["superseded_at"] is None


def _strata(row: Conversation) -> list[Stratum]:
    if not row.compressed_through:
        return []
    names = ("version", "parent", "restored_from", "trigger", "through_seq", "created_at")
    rows = Summary.objects.filter(conversation=row, version__gt=0).order_by("-version")
    made = [VersionMade(**one) for one in rows.values(*names)[:MOST_VERSIONS]]
    return strata_of({one.version: one for one in made}, row.compression_version)


def _pins(row: Conversation) -> list[int]:
    pinned = live(row.pk).filter(pinned_at__isnull=False).order_by("-seq")
    return sorted(pinned.values_list("seq", flat=True)[:MOST_PINS])


aoutline = in_database_thread(outline)
