"""The imports of this process: jobs that outlive their requests, a few at a time."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from chatapp.actions.import_report import FileReport
from chatapp.actions.importing import Pace, Storing, discard_all
from chatapp.conversations.imports import jobs
from chatapp.errors import ImportBroken, ImportInvalid, InternalError, StorageUnavailable
from chatapp.models import ImportState
from chatapp.transfer import files
from compression.database import AWAY
from compression.exceptions import UserFacingError
from compression.ports import TokenCounter

logger = logging.getLogger(__name__)

# Imports that run at once in one process; the others wait.
AT_ONCE = 2
# Seconds between renewals of the leases (of 30 s), when cancellations are noticed too.
BEAT_INTERVAL = 2.0
SWEEP_INTERVAL = 5.0
# Seconds between two writes of an unfinished report.
NOTE_INTERVAL = 1.0
# The end of a reader's sentence about a whole file.
NOTHING = "Nothing was imported."
# Seconds after which a file without a job is deleted: until then its upload may be under way.
ORPHANED_AFTER = 3600.0


@dataclass(slots=True, kw_only=True)
class _Job:
    """An import of this process."""

    id: int
    owner_id: int
    code: str
    path: Path
    model: str = ""
    report: FileReport = field(default_factory=FileReport)
    total: int | None = None
    messages: int = 0
    running: bool = False
    cancelled: bool = False
    """Cancelled by its person; otherwise the process ends, or has lost the job."""
    error: UserFacingError | None = None
    task: asyncio.Task[None] | None = None
    noted_at: float = 0.0


class Importer:
    """Runs imports, renews their leases, and ends those of processes that died.

    ``folder`` holds the files until their jobs end. ``most_pinned`` gives the ruler tokens that the
    pins of a model's conversation may have.
    """

    def __init__(
        self, folder: Path, *, counter: TokenCounter, most_pinned: Callable[[str], int]
    ) -> None:
        self.process_id = secrets.token_hex(16)
        self._folder = folder
        self._counter = counter
        self._most_pinned = most_pinned
        self._jobs: dict[str, _Job] = {}
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._keeping: list[asyncio.Task[None]] = []

    def keep(self) -> None:
        """Begin to renew leases and sweep, unless that has begun."""
        if not self._keeping:
            self._keeping = [
                asyncio.create_task(_repeat(self._heartbeat, BEAT_INTERVAL), name="imports: renew"),
                asyncio.create_task(_repeat(self._sweep, SWEEP_INTERVAL), name="imports: sweep"),
            ]

    def path_of(self, code: str) -> Path:
        """Path of a job's file; creates the folder, readable for this account only."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return self._folder / f"{code}.import"

    async def take(
        self, owner_id: int, code: str, *, file_name: str, size: int, model: str = ""
    ) -> None:
        """Begin to import the file at ``path_of(code)``. Raises ImportRunning.

        ``model`` is the one of its conversations, unless the file names another.
        """
        self.keep()
        path = self.path_of(code)
        try:
            job_id = await jobs.abegin(
                owner_id, code, file_name=file_name, size=size, process_id=self.process_id
            )
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        job = _Job(id=job_id, owner_id=owner_id, code=code, path=path, model=model)
        self._jobs[code] = job
        job.task = asyncio.create_task(self._run(job), name=f"import {job_id}")

    async def wait(self, code: str, seconds: float) -> UserFacingError | None:
        """Wait until the job ends or the time is over. Returns the error if the job failed."""
        job = self._jobs.get(code)
        if job is None or job.task is None:
            return None
        await asyncio.wait([job.task], timeout=seconds)
        return job.error

    def cancel(self, job_id: int) -> None:
        """Cancel a job if it runs here; another process notices the stored request by itself."""
        for job in self._jobs.values():
            if job.id == job_id and job.task is not None and not job.cancelled:
                job.cancelled = True
                job.task.cancel()

    async def shutdown(self) -> None:
        """End the jobs of this process; each stores how far it came."""
        for task in self._keeping:
            task.cancel()
        tasks = [job.task for job in self._jobs.values() if job.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*self._keeping, *tasks, return_exceptions=True)
        self._keeping = []

    async def _run(self, job: _Job) -> None:
        state = ImportState.FAILED
        try:
            async with self._slots:
                await self._import(job)
            state = ImportState.FINISHED
        except asyncio.CancelledError:
            if job.cancelled:
                state = ImportState.CANCELLED
            else:
                job.error = ImportBroken()
        except UserFacingError as error:
            job.error = error
        except AWAY as error:
            logger.error("Import %s stopped by a database error: %s", job.id, error)
            job.error = StorageUnavailable()
        except Exception:
            # The job gets its end whatever the error, and the log gets the reason.
            if await self._is_gone(job):
                logger.info("Import %s ended: its account was deleted.", job.id)
            else:
                logger.exception("Import %s failed.", job.id)
            job.error = InternalError()
        # The end is stored even if this task is cancelled now.
        await asyncio.shield(self._end(job, state))

    async def _import(self, job: _Job) -> None:
        storing = Storing(
            owner_id=job.owner_id,
            counter=self._counter,
            most_pinned=self._most_pinned,
            model=job.model,
            job_id=job.id,
            on_portion=lambda messages: _add(job, messages),
        )
        with job.path.open("rb") as stream:
            try:
                job.running = await self._note(job)
                job.total = await storing.reading.do(files.count, stream)
                stream.seek(0)
                await self._import_all(job, storing, stream)
            finally:
                await storing.reading.settle()

    async def _import_all(self, job: _Job, storing: Storing, stream: BinaryIO) -> None:
        """Store every conversation of the file. Raises ImportInvalid if there is none at all."""
        report = job.report
        items = files.conversations(stream)
        while True:
            try:
                item = await storing.reading.do(next, items, None)
            except ImportInvalid as error:
                if report.done == report.unreadable:
                    raise
                before = error.message.removesuffix(NOTHING)
                report.refuse(None, f"{before}What stands before that was imported.")
                return
            if item is None:
                break
            if isinstance(item, files.Refused):
                report.refuse(item.number, item.sentence)
            else:
                report.take(item, await storing.store(item))
            # Free its messages before the next ones are read.
            del item
            if not await self._note(job):
                raise asyncio.CancelledError
        if report.done == report.unreadable:
            first = report.refused[0]["message"] if report.refused else "It holds no conversations."
            raise ImportInvalid(
                f"{NOTHING} {first.removesuffix(NOTHING)}".rstrip(),
                fields={"refused": report.refused[:100]},
            )

    async def _note(self, job: _Job) -> bool:
        """Store the job's progress from time to time. False: the process has lost the job.

        The stored conversations need not be listed, since their rows name the job.
        """
        now = time.monotonic()
        if now - job.noted_at < NOTE_INTERVAL:
            return True
        job.noted_at = now
        report = job.report.as_json()
        report["conversations"] = [one for one in report["conversations"] if not one["created"]]
        return await jobs.anote(
            self.process_id,
            job.id,
            done=job.report.done,
            total=job.total,
            messages=job.messages,
            report=report,
        )

    async def _is_gone(self, job: _Job) -> bool:
        """Whether the process has lost the job; False while that cannot be found out."""
        try:
            return job.id not in await jobs.arenew(self.process_id, [job.id])
        except AWAY:
            return False

    async def _end(self, job: _Job, state: ImportState) -> None:
        try:
            report = job.report.as_json()
            if state is not ImportState.FINISHED:
                # If storing was cancelled, only the row tells what was stored.
                report = await jobs.awith_stored(job.id, report)
            if isinstance(job.error, ImportBroken):
                job.error = ImportBroken.after(report["imported"], job.total)
            if job.error is not None and report["conversations"]:
                job.error.partial_kept = True
            await jobs.aend(
                self.process_id,
                job.id,
                state,
                done=report["imported"] + report["already"] + job.report.unreadable,
                total=job.total,
                messages=job.messages,
                report=report,
                error=job.error.as_dict() if job.error else None,
            )
        except AWAY as away:
            # Its lease expires, and a sweep then ends the job.
            logger.error("The end of import %s could not be stored: %s", job.id, away)
        finally:
            job.path.unlink(missing_ok=True)
            self._jobs.pop(job.code, None)

    async def _heartbeat(self) -> None:
        own = {job.id: job for job in self._jobs.values()}
        if not own:
            return
        held = await jobs.arenew(self.process_id, list(own))
        for job_id, job in own.items():
            if job.task is None or job.code not in self._jobs:
                continue
            if held.get(job_id):
                self.cancel(job_id)
            elif job_id not in held:
                job.task.cancel()
            elif job.running:
                # During one long conversation, nothing else stores the progress.
                await self._note(job)

    async def _sweep(self) -> None:
        for code in await jobs.asweep():
            self.path_of(code).unlink(missing_ok=True)
        pace = Pace()
        for conversation_id in await jobs.aleftovers():
            await discard_all(conversation_id, pace)
        # The files of all jobs, since other processes may share the folder.
        kept = {self.path_of(code) for code in await jobs.aopen_codes()}
        await asyncio.to_thread(_remove_orphans, self._folder, kept)


def _add(job: _Job, messages: int) -> None:
    job.messages += messages


def _remove_orphans(folder: Path, kept: set[Path]) -> None:
    """Delete files that ended jobs and broken uploads have left."""
    if not folder.is_dir():
        return
    before = time.time() - ORPHANED_AFTER
    for path in folder.iterdir():
        with suppress(OSError):
            if path not in kept and path.stat().st_mtime < before:
                os.unlink(path)


async def _repeat(work: Callable[[], Awaitable[Any]], interval: float) -> None:
    while True:
        try:
            await work()
        except Exception:
            # Go on whatever broke: leases and cancellations must be looked at again.
            logger.exception("Looking after imports failed; trying again.")
        await asyncio.sleep(interval)
