"""The upkeep of the log: old lines, the lines of deleted conversations, and the index's gaps."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from django.utils import timezone

from chatapp.activity.files import LogFiles, Position
from chatapp.activity.lines import decoded
from chatapp.conversations.model_calls import removal, storing, subjects
from compression.database import AWAY

logger = logging.getLogger(__name__)

#: Seconds between two rounds. The first comes soon after the start.
INTERVAL: Final = 600.0
FIRST: Final = 20.0
#: Time in which a person may undo a deletion without losing the log of the conversation.
GRACE: Final = timedelta(minutes=10)
#: Seconds after its last change from which on a file is looked through for lines without a row.
AT_REST: Final = 60.0
#: Days for which the sums are kept, so that a year can be compared.
SUMS_DAYS: Final = 400
#: Lines that are indexed in one transaction, and files in one query.
BATCH: Final = 200


class LogUpkeep:
    """Keeps files and index of the log in order. ``days`` is the age at which lines are removed."""

    def __init__(self, files: LogFiles, days: int) -> None:
        self._files = files
        self._days = days
        self._whole: dict[str, int] = {}
        """Files without gaps, and their size then."""
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Start the rounds unless they have begun."""
        if self._task is None:
            self._task = asyncio.create_task(self._keep(), name="upkeep of the activity log")

    async def aclose(self) -> None:
        """End the rounds. What one has begun is taken up by the next process."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _keep(self) -> None:
        await asyncio.sleep(FIRST)
        while True:
            try:
                await self.round()
            except AWAY as error:
                logger.warning("The upkeep of the activity log waits: %s", error)
            except Exception:
                logger.exception("The upkeep of the activity log failed; it is tried again.")
            await asyncio.sleep(INTERVAL)

    async def round(self) -> None:
        """One round of everything."""
        now = timezone.now()
        place = await asyncio.to_thread(self._files.place)
        await self._remove(lambda: removal.aof_deleted_conversations(place, now - GRACE))
        await self._remove(lambda: removal.aof_vanished_conversations(place))
        await self._fill_gaps(place, now)
        before = now - timedelta(days=self._days)
        await asyncio.to_thread(self._files.delete_older, before)
        more = True
        while more:
            more = await removal.aexpire(before)
        await removal.aexpire_sums(timezone.localdate(now) - timedelta(days=SUMS_DAYS))

    async def _remove(self, find: Callable[[], Awaitable[Sequence[removal.Leftover]]]) -> None:
        """Take out the lines of leftover rows, then the rows: a crash between leaves the rows."""
        while found := await find():
            positions = [
                Position(file=one.file, offset=one.offset, length=one.length) for one in found
            ]
            await asyncio.to_thread(self._remove_lines, positions)
            await removal.aremove([one.pk for one in found])

    def _remove_lines(self, positions: Sequence[Position]) -> None:
        for position in positions:
            self._files.remove_line(position)

    async def _fill_gaps(self, place: str, now: datetime) -> None:
        """Index the lines that a crash or a lost database kept out of the index.

        Lines are indexed in their order, so what is missing is at the end of a file.
        """
        resting = await asyncio.to_thread(self._resting, now)
        names = list(resting)
        for start in range(0, len(names), BATCH):
            some = names[start : start + BATCH]
            ends = await storing.aindexed_up_to(place, some)
            for name in some:
                if resting[name] > ends.get(name, 0):
                    await self._index_rest(place, name, ends.get(name, 0))
                self._whole[name] = resting[name]

    def _resting(self, now: datetime) -> dict[str, int]:
        """Files that nobody writes just now and that were not seen whole, and their sizes."""
        found = {}
        for name in self._files.names():
            with suppress(OSError):
                size, age = self._files.size_and_age(name, now)
                if age > AT_REST and self._whole.get(name) != size:
                    found[name] = size
        return found

    async def _index_rest(self, place: str, name: str, offset: int) -> None:
        lines = self._files.lines(name, offset)
        while portion := await asyncio.to_thread(lambda: list(islice(lines, BATCH))):
            read = [(at, line) for at, raw in portion if (line := decoded(raw)) is not None]
            codes = {str(line["conversation"]) for _, line in read if line.get("conversation")}
            known = await subjects.asubjects_of(codes)
            rows, gone = [], []
            for at, line in read:
                subject = known.get(str(line.get("conversation")))
                if line.get("conversation") and subject is None:
                    gone.append(at)
                    continue
                rows.append(_indexed(place, at, line, subject))
            await asyncio.to_thread(self._remove_lines, gone)
            await storing.aindex(rows)


def _indexed(
    place: str, at: Position, line: dict[str, object], subject: subjects.Subject | None
) -> storing.Indexed:
    return storing.Indexed(
        line=line,
        subject=subject,
        place=place,
        file=at.file,
        offset=at.offset,
        length=at.length,
    )
