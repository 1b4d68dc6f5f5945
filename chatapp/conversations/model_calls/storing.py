"""The index of the log is filled here: one row for each line, and the sums of its day."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import F, Max
from django.utils import timezone

from chatapp.conversations.model_calls.subjects import Subject
from chatapp.llm.activity_log import STOPPED
from chatapp.models import DailyCalls, ModelCall
from chatapp.text.lengths import NAME_LENGTH
from compression.database import in_database_thread

_KEY = ("owner_id", "day", "project", "kind", "model")
# Columns of the sums besides the count of calls.
_SUMS = ("errors", "input_tokens", "output_tokens", "cached_tokens", "cost", "seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexed:
    """A line of the log, and where it is."""

    line: Mapping[str, Any]
    subject: Subject | None
    place: str
    file: str
    offset: int
    length: int


@transaction.atomic
def index(lines: Sequence[Indexed]) -> int:
    """Store rows for these lines, each once. Returns how many were new."""
    rows = {str(row.call): row for row in map(_row, lines)}
    known = ModelCall.objects.filter(call__in=list(rows)).values_list("call", flat=True)
    for call in known:
        rows.pop(str(call), None)
    ModelCall.objects.bulk_create(rows.values())
    sums: dict[tuple[Any, ...], dict[str, Any]] = defaultdict(lambda: dict.fromkeys(_SUMS, 0))
    counts: dict[tuple[Any, ...], int] = defaultdict(int)
    for row in rows.values():
        if row.owner_id is None:
            continue
        key = (row.owner_id, timezone.localdate(row.at), row.project, row.kind, row.model)
        counts[key] += 1
        for name, value in _sums_of(row).items():
            sums[key][name] += value
    # In one order everywhere, so that two processes never wait for each other.
    for key in sorted(counts):
        found: dict[str, Any] = dict(zip(_KEY, key, strict=True))
        DailyCalls.objects.get_or_create(**found)
        more = {name: F(name) + value for name, value in sums[key].items()}
        DailyCalls.objects.filter(**found).update(calls=F("calls") + counts[key], **more)
    return len(rows)


def _row(one: Indexed) -> ModelCall:
    line, usage, error = one.line, one.line.get("usage") or {}, one.line.get("error") or {}
    cost = line.get("cost")
    return ModelCall(
        call=line["call"],
        place=one.place,
        file=one.file,
        offset=one.offset,
        length=one.length,
        owner_id=one.subject.owner_id if one.subject else None,
        conversation_id=one.subject.conversation_id if one.subject else None,
        turn=line.get("turn"),
        project=str(line.get("project") or "")[:NAME_LENGTH],
        kind=str(line.get("kind") or "")[:16],
        model=str(line.get("model") or "").replace("\x00", "")[:NAME_LENGTH],
        at=datetime.fromisoformat(line["timestamp"]),
        input_tokens=usage.get("input_tokens"),
        output_tokens=usage.get("output_tokens"),
        cached_tokens=usage.get("cached_tokens"),
        cost=None if cost is None else Decimal(str(round(cost, 6))),
        duration=line.get("duration") or 0.0,
        first_token=line.get("first_token"),
        error=str(error.get("code") or "")[:64],
        failed=(error.get("code") or STOPPED) != STOPPED,
    )


def _sums_of(row: ModelCall) -> dict[str, Any]:
    return {
        "errors": int(row.failed),
        "input_tokens": row.input_tokens or 0,
        "output_tokens": row.output_tokens or 0,
        "cached_tokens": row.cached_tokens or 0,
        "cost": row.cost or Decimal(0),
        "seconds": row.duration,
    }


def indexed_up_to(place: str, files: Sequence[str]) -> dict[str, int]:
    """For each file with rows, the end of the last line that has one."""
    rows = ModelCall.objects.filter(place=place, file__in=files).values("file")
    return {one["file"]: one["end"] for one in rows.annotate(end=Max(F("offset") + F("length")))}


aindex = in_database_thread(index, lane="background")
aindexed_up_to = in_database_thread(indexed_up_to, lane="slow")
