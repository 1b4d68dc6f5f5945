"""A person's own calls: the list, its search, and one call.

Filters by project, kind and model, and words found in these, are answered by one short look into an
index for each combination of the three that occurs, which the daily sums know. So no list has to
walk through a million rows for the few that fit.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from django.db.models import Q, QuerySet
from django.utils import timezone

from chatapp.conversations.ownership import owned
from chatapp.errors import NotFound
from chatapp.live.view_models import View
from chatapp.models import Conversation, DailyCalls, ModelCall
from compression.database import in_database_thread, snapshot

PAGE = 50
# Combinations of project, kind and model, and conversations found by title, that are looked up one
# by one.
MOST_COMBINATIONS = 60
MOST_TITLES = 60
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_COLUMNS = (
    "turn",
    "project",
    "kind",
    "model",
    "at",
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "duration",
    "first_token",
    "error",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFilter:
    """The calls that are asked for. Empty values leave everything in."""

    words: str = ""
    """Part of a title, of the name of a model, project or kind, or of an error's code; or a whole
    id of a call."""
    project: str = ""
    kind: str = ""
    model: str = ""
    conversation: str = ""
    """Its code."""
    failed: bool = False
    first: date | None = None
    last: date | None = None

    @property
    def by_facets(self) -> bool:
        """Whether the daily sums can answer it."""
        return not (self.words or self.conversation or self.failed)

    def facets(self) -> Q:
        """The condition on project, kind and model."""
        names = {"project": self.project, "kind": self.kind, "model": self.model}
        return Q(**{name: value for name, value in names.items() if value})


@dataclass(frozen=True, kw_only=True)
class CallView(View):
    """A call as the index has it."""

    call: str
    at: datetime
    kind: str
    model: str
    project: str
    conversation: str
    """Its code; empty for a call that belongs to none."""
    title: str
    turn: int | None
    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    cost: float | None
    duration: float
    first_token: float | None
    error: str


@dataclass(frozen=True, kw_only=True)
class CallPage:
    """Some calls, newest first."""

    calls: list[CallView]
    older: str
    """The place from which on there are older ones, for ``before``; empty at the end."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """Where the line of a call is."""

    view: CallView
    place: str
    file: str
    offset: int
    length: int


@dataclass(frozen=True, kw_only=True)
class OneCall:
    """A call, and the former one of its kind in its conversation."""

    line: Line
    former: Line | None


@snapshot()
def calls(user_id: int, wanted: CallFilter, before: str = "") -> CallPage:
    """A page of the person's calls, older than ``before``. Raises NotFound for the conversation."""
    rows, older = _page(user_id, wanted, before, PAGE)
    return CallPage(calls=[_view(row) for row in rows], older=older)


@snapshot()
def lines(user_id: int, wanted: CallFilter, before: str, most: int) -> tuple[list[Line], str]:
    """As :func:`calls`, with the places of the lines, for an export."""
    rows, older = _page(user_id, wanted, before, most)
    return [line_of(row) for row in rows], older


@snapshot()
def call(user_id: int, call_id: str) -> OneCall:
    """One of the person's calls. Raises NotFound."""
    try:
        parsed = uuid.UUID(call_id)
    except ValueError:
        raise NotFound from None
    row = _own(user_id).filter(call=parsed).first()
    if row is None or str(parsed) != call_id:
        raise NotFound
    return OneCall(line=line_of(row), former=_former(row))


def _former(row: ModelCall) -> Line | None:
    if row.conversation_id is None:
        return None
    rows = ModelCall.objects.select_related("conversation").filter(
        conversation=row.conversation_id, kind=row.kind
    )
    found = _earlier(rows, row.at, row.pk).order_by("-at", "-pk").first()
    return line_of(found) if found else None


def _own(user_id: int) -> QuerySet[ModelCall]:
    """The person's calls, those of deleted conversations left out."""
    rows = ModelCall.objects.select_related("conversation").filter(owner_id=user_id)
    return rows.filter(conversation__deleted_at__isnull=True)


def _page(user_id: int, wanted: CallFilter, before: str, most: int) -> tuple[list[ModelCall], str]:
    found: dict[int, ModelCall] = {}
    for rows in _branches(user_id, wanted):
        if before:
            rows = _earlier(rows, *_place(before))
        for row in rows.order_by("-at", "-pk")[: most + 1]:
            found[row.pk] = row
    newest = sorted(found.values(), key=lambda row: (row.at, row.pk), reverse=True)
    page = newest[:most]
    more = f"{(page[-1].at - _EPOCH) // timedelta(microseconds=1)}.{page[-1].pk}" if page else ""
    return page, more if len(newest) > most else ""


def _earlier(rows: QuerySet[ModelCall], at: datetime, pk: int) -> QuerySet[ModelCall]:
    # One range, so that an index in the order of time serves; then those of the same moment.
    return rows.filter(at__lte=at).exclude(at=at, pk__gte=pk)


def _place(before: str) -> tuple[datetime, int]:
    """The moment and the row of ``CallPage.older``. Raises NotFound."""
    moment, _, pk = before.partition(".")
    if not (moment.isdecimal() and pk.isdecimal() and len(moment) < 17 and len(pk) < 19):
        raise NotFound
    return _EPOCH + timedelta(microseconds=int(moment)), int(pk)


def _branches(user_id: int, wanted: CallFilter) -> Iterator[QuerySet[ModelCall]]:
    """Queries that together find what is wanted; each has an index for its order."""
    rows = _own(user_id)
    if wanted.first:
        rows = rows.filter(at__gte=midnight(wanted.first))
    if wanted.last and wanted.last < date.max:
        rows = rows.filter(at__lt=midnight(wanted.last + timedelta(days=1)))
    if wanted.failed:
        rows = rows.filter(failed=True)
    if wanted.conversation:
        rows = rows.filter(conversation=owned(user_id, wanted.conversation).pk)
    narrow = bool(wanted.conversation or wanted.failed)
    words = wanted.words.strip()
    if not words:
        yield from _by_facets(user_id, rows, wanted, Q(), narrow=narrow)
        return
    with_facets = rows.filter(wanted.facets())
    if one := _as_uuid(words):
        yield with_facets.filter(call=one)
        return
    named = Q(model__icontains=words) | Q(kind__icontains=words) | Q(project__icontains=words)
    yield from _by_facets(user_id, rows, wanted, named, narrow=narrow)
    yield with_facets.filter(failed=True, error__icontains=words)
    if not wanted.conversation:
        titled = Conversation.objects.filter(
            owner_id=user_id, deleted_at__isnull=True, title__icontains=words
        )
        for pk in titled.order_by("-updated_at").values_list("pk", flat=True)[:MOST_TITLES]:
            yield with_facets.filter(conversation=pk)


def _by_facets(
    user_id: int, rows: QuerySet[ModelCall], wanted: CallFilter, named: Q, *, narrow: bool
) -> Iterator[QuerySet[ModelCall]]:
    condition = wanted.facets() & named
    if narrow or not condition:
        yield rows.filter(condition)
        return
    known = DailyCalls.objects.filter(condition, owner_id=user_id)
    combinations = list(
        known.values("project", "kind", "model").distinct()[: MOST_COMBINATIONS + 1]
    )
    if len(combinations) > MOST_COMBINATIONS:
        yield rows.filter(condition)
        return
    for one in combinations:
        yield rows.filter(**one)


def _as_uuid(words: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(words)
    except ValueError:
        return None


def midnight(day: date) -> datetime:
    """The beginning of a day in the server's time zone."""
    return timezone.make_aware(datetime.combine(day, time.min))


def _view(row: ModelCall) -> CallView:
    values: dict[str, Any] = {name: getattr(row, name) for name in _COLUMNS}
    conversation = row.conversation
    return CallView(
        **values,
        call=str(row.call),
        cost=None if row.cost is None else float(row.cost),
        conversation=str(conversation.code) if conversation else "",
        title=conversation.title if conversation else "",
    )


def line_of(row: ModelCall) -> Line:
    """A row as the place of its line."""
    return Line(
        view=_view(row), place=row.place, file=row.file, offset=row.offset, length=row.length
    )


acalls = in_database_thread(calls)
alines = in_database_thread(lines, lane="slow")
acall = in_database_thread(call)
