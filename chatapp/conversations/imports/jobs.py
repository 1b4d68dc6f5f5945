"""Imports as jobs: one per person, leased to the process that received the file.

As with turns, every write names the process that holds the job; a process that lost the job
changes nothing. Reports of ended jobs are kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F, Max, Min, Q, QuerySet
from django.db.models.functions import Now

from chatapp.conversations.ownership import parse_code
from chatapp.conversations.turns.statements import LEASE
from chatapp.errors import ImportBroken, ImportRunning, NotFound
from chatapp.live.view_models import View
from chatapp.models import Conversation, ImportJob, ImportState, Message, Turn
from compression.database import in_database_thread

#: The entry of a report that only its Undo reads: projects that it removed, to be made again.
REMOVED_PROJECTS = "removed_projects"
# Messages of an unfinished import that are deleted at once.
DISCARDED = 200
# Past imports that are listed, and past imports that are kept.
LISTED = 20
KEPT = 200


@dataclass(frozen=True, kw_only=True)
class ImportView(View):
    """An import as shown to its person."""

    job: str
    state: str
    file_name: str
    size: int
    done: int
    total: int | None
    stored: int
    """Messages in the database so far, including those of an unfinished conversation."""
    report: dict[str, Any] = field(default_factory=dict)
    error: dict[str, Any] | None = None
    created_at: datetime | None = None
    finished_at: datetime | None = None
    undone_at: datetime | None = None

    @property
    def open(self) -> bool:
        """Whether the job has not ended."""
        return self.state in {ImportState.WAITING, ImportState.RUNNING}

    @property
    def share(self) -> float | None:
        """The share of the file that is done; None when unknown."""
        return min(1.0, self.done / self.total) if self.total else None


def begin(owner_id: int, code: str, *, file_name: str, size: int, process_id: str) -> int:
    """Store a new job, leased to this process. Returns its id.

    Raises ImportRunning, which names the person's other job, if that has not ended.
    """
    try:
        with transaction.atomic():
            row = ImportJob.objects.create(
                code=parse_code(code),
                owner_id=owner_id,
                file_name=file_name,
                size=size,
                lease_token=process_id,
                lease_expires_at=Now() + LEASE,
            )
    except IntegrityError:
        other = _open().filter(owner_id=owner_id).first()
        if other is None:
            raise
        raise ImportRunning(fields={"job": str(other.code)}) from None
    old = ImportJob.objects.filter(owner_id=owner_id).values_list("pk", flat=True)[KEPT:]
    ImportJob.objects.filter(pk__in=list(old)).delete()
    return row.pk


def running(owner_id: int) -> str | None:
    """The code of the person's job that has not ended."""
    row = _open().filter(owner_id=owner_id).first()
    return str(row.code) if row else None


def open_codes() -> list[str]:
    """The codes of all jobs that have not ended, in any process."""
    return [str(code) for code in _open().values_list("code", flat=True)]


def _open() -> QuerySet[ImportJob]:
    return ImportJob.objects.filter(finished_at=None)


def _held(process_id: str) -> Any:
    return _open().filter(lease_token=process_id)


def renew(process_id: str, job_ids: Sequence[int]) -> dict[int, bool]:
    """Renew this process's leases. Returns the jobs it still holds → whether to cancel each."""
    mine = _held(process_id).filter(pk__in=job_ids, lease_expires_at__gt=Now())
    mine.update(lease_expires_at=Now() + LEASE)
    found = mine.values_list("pk", "cancel_requested_at")
    return {job_id: asked is not None for job_id, asked in found}


def note(
    process_id: str,
    job_id: int,
    *,
    done: int,
    total: int | None,
    messages: int,
    report: Mapping[str, Any],
) -> bool:
    """Store a job's progress. Returns whether this process still holds it."""
    changed = (
        _held(process_id)
        .filter(pk=job_id)
        .update(
            state=ImportState.RUNNING,
            done=done,
            total=total,
            messages=messages,
            report=dict(report),
            lease_expires_at=Now() + LEASE,
        )
    )
    return bool(changed)


def end(
    process_id: str,
    job_id: int,
    state: ImportState,
    *,
    done: int,
    total: int | None,
    messages: int,
    report: Mapping[str, Any],
    error: Mapping[str, Any] | None = None,
) -> bool:
    """Give a job its one end; False if it had one, or another process holds it."""
    changed = (
        _held(process_id)
        .filter(pk=job_id)
        .update(
            state=state,
            done=done,
            total=total,
            messages=messages,
            report=dict(report),
            error=None if error is None else dict(error),
            finished_at=Now(),
            lease_token="",
        )
    )
    return bool(changed)


def view(owner_id: int, code: str, *, whole: bool = False) -> ImportView:
    """A person's job as it is now. Raises NotFound.

    ``whole``: the report of an open job lists what it has stored, as at its end.
    """
    row = ImportJob.objects.filter(owner_id=owner_id, code=parse_code(code)).first()
    if row is None:
        raise NotFound
    if whole and row.finished_at is None:
        row.report = with_stored(row.pk, row.report)
    return _view(row)


def past(owner_id: int) -> list[ImportView]:
    """The person's latest imports, newest first."""
    return [_view(row) for row in ImportJob.objects.filter(owner_id=owner_id)[:LISTED]]


def _view(row: ImportJob) -> ImportView:
    return ImportView(
        job=str(row.code),
        state=row.state,
        file_name=row.file_name,
        size=row.size,
        done=row.done,
        total=row.total,
        stored=row.messages,
        report={name: one for name, one in row.report.items() if name != REMOVED_PROJECTS},
        error=row.error,
        created_at=row.created_at,
        finished_at=row.finished_at,
        undone_at=row.undone_at,
    )


def request_cancel(owner_id: int, code: str) -> int:
    """Request a job's end. Returns its id. An ended job stays as it is. Raises NotFound."""
    row = ImportJob.objects.filter(owner_id=owner_id, code=parse_code(code)).first()
    if row is None:
        raise NotFound
    ImportJob.objects.filter(pk=row.pk, finished_at=None, cancel_requested_at=None).update(
        cancel_requested_at=Now()
    )
    return row.pk


def sweep() -> list[str]:
    """End the jobs whose process died, each with a correct report. Returns their codes."""
    expired = _open().filter(lease_expires_at__lt=Now())
    return [code for row in expired if (code := _break_off(row))]


def expire_open_jobs() -> None:
    """Make the next sweep end every open job, when no process lives that could run one."""
    _open().update(lease_expires_at=Now() - LEASE)


@transaction.atomic
def _break_off(row: ImportJob) -> str | None:
    report = with_stored(row.pk, row.report)
    done = len(report["conversations"]) + len(report["refused"])
    changed = ImportJob.objects.filter(
        pk=row.pk, finished_at=None, lease_expires_at__lt=Now()
    ).update(
        state=ImportState.FAILED,
        done=F("total") if row.total is not None and done > row.total else done,
        report=report,
        error=ImportBroken.after(report["imported"], row.total).as_dict(),
        finished_at=Now(),
        lease_token="",
    )
    return str(row.code) if changed else None


def with_stored(job_id: int, report: Mapping[str, Any]) -> dict[str, Any]:
    """The last stored report of a job, brought up to date with the conversations it has stored."""
    listed = [dict(one) for one in report.get("conversations", [])]
    known = {one["code"] for one in listed}
    stored = Conversation.objects.filter(import_job=job_id, importing=False).order_by("pk")
    for code, title, next_seq in stored.values_list("code", "title", "next_seq"):
        if str(code) not in known:
            listed.append(
                {
                    "code": str(code),
                    "title": title,
                    "messages": next_seq - 1,
                    "created": True,
                    "deleted": False,
                }
            )
    made = [one for one in listed if one["created"]]
    dates = stored.aggregate(first=Min("created_at"), last=Max("updated_at"))
    return {
        "left_out": {},
        "refused": [],
        **report,
        "imported": len(made),
        "first_at": dates["first"] and dates["first"].isoformat(),
        "last_at": dates["last"] and dates["last"].isoformat(),
        # Of very many, only some are listed.
        "already": max(report.get("already", 0), len(listed) - len(made)),
        "messages": sum(one["messages"] for one in made),
        "conversations": listed,
    }


def discard(conversation_id: int) -> bool:
    """Delete a portion of an unfinished conversation. Returns whether any of it is left.

    A finished conversation is not touched.
    """
    row = Conversation.objects.filter(pk=conversation_id, importing=True).first()
    if row is None:
        return False
    with transaction.atomic():
        newest = row.messages.order_by("-seq").values_list("pk", flat=True)[:DISCARDED]
        keys = list(newest)
        if keys:
            Turn.objects.filter(user_message__in=keys).update(user_message=None)
            # Skip Django's search for related rows, of which there are none.
            messages = Message.objects.filter(pk__in=keys)
            messages._raw_delete(messages.db)
            return True
        turns = list(row.turns.values_list("pk", flat=True)[:DISCARDED])
        if turns:
            ended = Turn.objects.filter(pk__in=turns)
            ended._raw_delete(ended.db)
            return True
        row.delete()
    return False


def leftovers() -> list[int]:
    """Conversations left unfinished by imports that have ended."""
    # An import by the command has no job, and takes less than a day.
    forgotten = Q(import_job=None, deleted_at__lt=Now() - timedelta(days=1))
    rows = Conversation.objects.filter(forgotten | Q(import_job__finished_at__isnull=False))
    return list(rows.filter(importing=True).values_list("pk", flat=True))


abegin = in_database_thread(begin)
arunning = in_database_thread(running)
arenew = in_database_thread(renew, lane="background")
anote = in_database_thread(note, lane="bulk")
aend = in_database_thread(end)
aview = in_database_thread(view)
apast = in_database_thread(past)
# In the lane of the job's own writes, and so after those that it had begun when it was cancelled.
awith_stored = in_database_thread(with_stored, lane="bulk")
aopen_codes = in_database_thread(open_codes, lane="background")
arequest_cancel = in_database_thread(request_cancel)
asweep = in_database_thread(sweep, lane="background")
adiscard = in_database_thread(discard, lane="bulk")
aleftovers = in_database_thread(leftovers, lane="background")
