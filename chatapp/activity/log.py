"""The activity log of a process: takes calls, writes their lines in a thread, and indexes them.

Nothing here raises into the chat, and a slow disk or a lost database holds up nobody.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Final

from chatapp.activity.files import LogFiles, Position
from chatapp.activity.lines import NO_PROJECT, encoded, line_of
from chatapp.activity.redaction import CleanTexts, Redaction
from chatapp.conversations.model_calls.storing import Indexed, aindex
from chatapp.conversations.model_calls.subjects import Subject, asubject
from chatapp.llm.activity_log import Call
from compression.database import AWAY

logger = logging.getLogger(__name__)

MOST_BYTES: Final = 10_000_000
#: Calls that wait for the disk or the database; when there are more, the oldest are given up. The
#: upkeep indexes later what could not be indexed now.
MOST_WAITING: Final = 2_000
#: Rows that are stored in one transaction.
BATCH: Final = 200
#: Subjects that are kept for when the database is away.
MOST_SUBJECTS: Final = 2_000
#: Keys of servers that are remembered.
MOST_HIDDEN: Final = 1_000
#: Seconds before the index is tried again, and for which the end of a process waits for it.
RETRY: Final = 5.0
PATIENCE: Final = 5.0

SubjectOf = Callable[[int], Awaitable[Subject | None]]
Index = Callable[[Sequence[Indexed]], Awaitable[int]]


class ActivityLog:
    """A :class:`chatapp.llm.activity_log.Log`. With an empty ``directory`` it writes nothing.

    Without ``content`` it writes nothing that a person or a model wrote. ``secrets`` gives texts
    that are in no line. ``subject_of`` and ``index`` are the database's.
    """

    def __init__(
        self,
        directory: str,
        *,
        most_bytes: int = MOST_BYTES,
        content: bool = True,
        secrets: Callable[[], Iterable[str]] = tuple,
        subject_of: SubjectOf = asubject,
        index: Index = aindex,
    ) -> None:
        self.files = LogFiles(directory, most_bytes) if directory else None
        self._content = content
        self._secrets = secrets
        # Replaced, never changed: lines are written in a thread.
        self._hidden: tuple[str, ...] = ()
        self._clean = CleanTexts()
        self._subject_of = subject_of
        self._index = index
        self._subjects: OrderedDict[int, Subject | None] = OrderedDict()
        self._writing: set[asyncio.Task[None]] = set()
        self._unindexed: deque[Indexed] = deque(maxlen=MOST_WAITING)
        self._indexing: asyncio.Task[None] | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._failing: set[str] = set()

    def hide(self, secrets: Iterable[str]) -> None:
        """Keep more texts out of all later lines: keys of servers that are asked from now on."""
        new = [one for one in secrets if one not in self._hidden]
        self._hidden = (*self._hidden, *new)[-MOST_HIDDEN:]

    def put(self, call: Call) -> asyncio.Future[None] | None:
        """See :meth:`chatapp.llm.activity_log.Log.put`."""
        if self.files is None:
            return None
        if len(self._writing) >= MOST_WAITING:
            self._tell("written", "The activity log is too slow: calls are left out.")
            return None
        task = asyncio.create_task(self._store(self.files, call), name="activity log")
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)
        return task

    async def settled(self, seconds: float = PATIENCE) -> None:
        """Wait until what was put so far is written and indexed, for at most so many seconds."""
        if self._writing:
            await asyncio.wait(set(self._writing), timeout=seconds)
        if self._indexing is not None and not (self._indexing.done() or "indexed" in self._failing):
            await asyncio.wait({self._indexing}, timeout=seconds)

    async def aclose(self) -> None:
        """See :meth:`chatapp.llm.activity_log.Log.aclose`."""
        await self.settled()
        if self._indexing is not None:
            self._indexing.cancel()
        if self._thread is not None:
            self._thread.shutdown(wait=False)
            self._thread = None

    async def _store(self, files: LogFiles, call: Call) -> None:
        try:
            subject = await self._subject(call.conversation_id)
            if self._thread is None:
                self._thread = ThreadPoolExecutor(1, thread_name_prefix="activity-log")
            loop = asyncio.get_running_loop()
            row = await loop.run_in_executor(self._thread, self._write, files, call, subject)
            self._failing.discard("written")
        except OSError as error:
            self._tell("written", f"The activity log cannot be written: {error.strerror or error}.")
            return
        except Exception:
            # Whatever it is, the chat goes on; the log of the program has the reason.
            logger.exception("A call could not be written to the activity log.")
            return
        self._unindexed.append(row)
        if self._indexing is None or self._indexing.done():
            self._indexing = asyncio.create_task(self._fill_index(), name="index of the log")

    def _write(self, files: LogFiles, call: Call, subject: Subject | None) -> Indexed:
        project = subject.project if subject else ""
        # A conversation that is gone must not leave behind what was written in it.
        orphan = call.conversation_id is not None and subject is None
        line = line_of(
            call,
            conversation=subject.code if subject else None,
            project=project,
            content=self._content and not orphan,
            redaction=Redaction((*self._secrets(), *self._hidden), self._clean),
        )
        place = files.place()
        at: Position = files.append(project or NO_PROJECT, encoded(line))
        # The index needs none of the texts.
        kept = {name: part for name, part in line.items() if name not in {"request", "response"}}
        return Indexed(
            line=kept,
            subject=subject,
            place=place,
            file=at.file,
            offset=at.offset,
            length=at.length,
        )

    async def _subject(self, conversation_id: int | None) -> Subject | None:
        """The subject as the database has it now, or as it was when that last answered."""
        if conversation_id is None:
            return None
        try:
            found = await self._subject_of(conversation_id)
        except Exception as error:
            self._tell("read", f"The activity log does without the database: {error}")
            return self._subjects.get(conversation_id)
        self._failing.discard("read")
        self._subjects[conversation_id] = found
        self._subjects.move_to_end(conversation_id)
        if len(self._subjects) > MOST_SUBJECTS:
            self._subjects.popitem(last=False)
        return found

    async def _fill_index(self) -> None:
        while self._unindexed:
            batch = list(islice(self._unindexed, BATCH))
            try:
                await self._index(batch)
                self._failing.discard("indexed")
            except AWAY as error:
                self._tell("indexed", f"The index of the activity log waits: {error}")
                await asyncio.sleep(RETRY)
                continue
            except Exception:
                # Trying the same again would keep all later ones out.
                logger.exception("Lines of the activity log could not be indexed.")
            for one in batch:
                # The oldest may have been given up meanwhile.
                if self._unindexed and self._unindexed[0] is one:
                    self._unindexed.popleft()

    def _tell(self, what: str, words: str) -> None:
        """Log a failure once, until it has worked again."""
        if what not in self._failing:
            self._failing.add(what)
            logger.warning(words)
