"""Imports as jobs: one a person, leased to the process that took the file; the report stays.

As with turns, every write names the process that holds the job; one that lost it changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from chatapp.conversations.ownership import parse_code
from chatapp.conversations.turns.sending import LEASE
from chatapp.errors import ImportBroken, ImportRunning, NotFound
from chatapp.live.view_models import View
from chatapp.models import Conversation, ImportJob, ImportState, Message, Turn
from compression.database import across

# Messages of an import that broke off which are taken away at once.
DISCARDED = 200
# Past imports that are listed, and that are kept.
LISTED = 20
KEPT = 200


@dataclass(frozen=True, kw_only=True)
class ImportView(View):
    """An import as its person sees it."""

    job: str
    state: str
    file_name: str
    size: int
    done: int
    total: int | None
    stored: int
    """Messages in the database so far, those of an unfinished conversation included."""
    report: dict[str, Any] = field(default_factory=dict)
    error: dict[str, Any] | None = None
    created_at: datetime | None = None
    finished_at: datetime | None = None

    @property
    def open(self) -> bool:
        """Whether it goes on."""
        return self.state in {ImportState.WAITING, ImportState.RUNNING}

    @property
    def share(self) -> float | None:
        """How much of it is done; None when that is not known."""
        return min(1.0, self.done / self.total) if self.total else None


def begin(owner_id: int, code: str, *, file_name: str, size: int, process_id: str) -> int:
    """Store a new job, leased to this process; its id.

    Raises ImportRunning, which names the person's other job, while that is not ended.
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
    """The codes of all jobs that have not ended, whoever runs them."""
    return [str(code) for code in _open().values_list("code", flat=True)]


def _open() -> QuerySet[ImportJob]:
    return ImportJob.objects.filter(finished_at=None)


def _held(process_id: str) -> Any:
    return _open().filter(lease_token=process_id)


def renew(process_id: str, job_ids: Sequence[int]) -> dict[int, bool]:
    """Renew the leases of this process: the jobs that are its own -> whether to be cancelled."""
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
    """Store how far a job is; whether it is still this process's."""
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
    """Give a job its one end; False when it had one, or another process has."""
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
    """A person's job as it stands. Raises NotFound.

    ``whole``: the report of one that goes on names what it has stored, as at its end.
    """
    row = ImportJob.objects.filter(owner_id=owner_id, code=parse_code(code)).first()
    if row is None:
        raise NotFound
    if whole and row.finished_at is None:
        row.report = with_stored(row.pk, row.report)
    return _view(row)


def past(owner_id: int) -> list[ImportView]:
    """The person's last imports, newest first."""
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
        report=row.report,
        error=row.error,
        created_at=row.created_at,
        finished_at=row.finished_at,
    )


def request_cancel(owner_id: int, code: str) -> int:
    """Ask for a job's end; its id. One that has ended stays as it is. Raises NotFound."""
    row = ImportJob.objects.filter(owner_id=owner_id, code=parse_code(code)).first()
    if row is None:
        raise NotFound
    ImportJob.objects.filter(pk=row.pk, finished_at=None, cancel_requested_at=None).update(
        cancel_requested_at=Now()
    )
    return row.pk


def sweep() -> list[str]:
    """End the jobs whose process died, each with a true report; their codes."""
    expired = _open().filter(lease_expires_at__lt=Now())
    return [code for row in expired if (code := _break_off(row))]


def expire_open_jobs() -> None:
    """Have the next sweep end every open job: no process lives that could run one."""
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
    """A report that was noted now and then, and what the job has stored since."""
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
    return {
        "left_out": {},
        "refused": [],
        **report,
        "imported": len(made),
        # Not all of many are named.
        "already": max(report.get("already", 0), len(listed) - len(made)),
        "messages": sum(one["messages"] for one in made),
        "conversations": listed,
    }


def discard(conversation_id: int) -> bool:
    """Take away a portion of an unfinished conversation; whether anything of it is left.

    One that was finished is left alone.
    """
    row = Conversation.objects.filter(pk=conversation_id, importing=True).first()
    if row is None:
        return False
    with transaction.atomic():
        newest = row.messages.order_by("-seq").values_list("pk", flat=True)[:DISCARDED]
        keys = list(newest)
        if keys:
            Turn.objects.filter(user_message__in=keys).update(user_message=None)
            # Without Django's look for what hangs on them: nothing does.
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
    """Conversations that imports which have ended left unfinished."""
    # A command has no job, and is done within the day.
    forgotten = Q(import_job=None, deleted_at__lt=Now() - timedelta(days=1))
    rows = Conversation.objects.filter(forgotten | Q(import_job__finished_at__isnull=False))
    return list(rows.filter(importing=True).values_list("pk", flat=True))


abegin = across(begin)
arunning = across(running)
arenew = across(renew, lane="background")
anote = across(note, lane="bulk")
aend = across(end)
aview = across(view)
apast = across(past)
# Behind what the job was storing when it was cancelled.
awith_stored = across(with_stored, lane="bulk")
aopen_codes = across(open_codes, lane="background")
arequest_cancel = across(request_cancel)
asweep = across(sweep, lane="background")
adiscard = across(discard, lane="bulk")
aleftovers = across(leftovers, lane="background")
