"""The activity log: one JSON line for each model call. It holds no text of anyone, and no key.

There is one file a day, ``activity-YYYY-MM-DD.jsonl``. Each line is written with one append, so
that several processes may share a file.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from chatapp.llm.client import (
    ChatRequest,
    Chunk,
    Finished,
    LLMClient,
    ModelInfo,
    OnTokens,
    WholeReply,
    collect,
)
from compression.exceptions import UserFacingError

logger = logging.getLogger(__name__)

#: Limits of what a page shows of one conversation: calls, bytes read (a megabyte holds about 3,000
#: calls), and files.
MOST_CALLS = 200
MOST_READ_BYTES = 8 * 1024 * 1024
MOST_FILES = 90

_subject: ContextVar[dict[str, Any] | None] = ContextVar("subject", default=None)


@contextmanager
def about(**subject: Any) -> Iterator[None]:
    """A context in which calls are logged with these fields (conversation, turn, purpose …)."""
    token = _subject.set({**(_subject.get() or {}), **subject})
    try:
        yield
    finally:
        _subject.reset(token)


def conversation() -> int | None:
    """The conversation that calls in this context are made for; None if there is none."""
    found = (_subject.get() or {}).get("conversation")
    return found if isinstance(found, int) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """The latest calls of one conversation."""

    calls: list[dict[str, Any]]
    """Records as written, newest first."""
    complete: bool
    """False: older calls may exist that were not read."""


def calls_of(directory: str, conversation_id: int) -> Calls:
    """A conversation's calls in the log, read backwards from the newest file, within limits.

    Synchronous. Skips lines that are no records. Empty if there is no log.
    """
    found: list[dict[str, Any]] = []
    left = MOST_READ_BYTES
    # Every line of this conversation contains these bytes, so that few lines must be decoded.
    mark = f'"conversation": {conversation_id}'.encode()
    folder = Path(directory) if directory else None
    files = sorted(folder.glob("activity-*.jsonl"), reverse=True) if folder else []
    for path in files[:MOST_FILES]:
        for line in _lines_backwards(path, left):
            left -= len(line) + 1
            if mark in line and (record := _record(line, conversation_id)) is not None:
                found.append(record)
                if len(found) == MOST_CALLS:
                    return Calls(calls=found, complete=False)
        if left <= 0:
            return Calls(calls=found, complete=False)
    return Calls(calls=found, complete=len(files) <= MOST_FILES)


def _lines_backwards(path: Path, most: int) -> Iterator[bytes]:
    """The lines in the last ``most`` bytes of a file, last first; none if the file is gone."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - most))
            lines = file.read(most).splitlines()
    except OSError as error:
        logger.warning("The activity log cannot be read: %s.", error.strerror)
        return
    yield from reversed(lines)


def _record(line: bytes, conversation_id: int) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except ValueError:
        # A line of another program, or the first line, cut by the limit of bytes.
        return None
    if not isinstance(record, dict) or record.get("conversation") != conversation_id:
        return None
    return record


class ActivityLog:
    """Appends records; with an empty ``directory``, writes nothing."""

    def __init__(self, directory: str) -> None:
        self._directory = Path(directory) if directory else None
        self._failing = False

    async def write(self, record: dict[str, Any]) -> None:
        """Append one line. A failure, such as a full disk, is logged once and raises nothing."""
        if self._directory is not None:
            await asyncio.to_thread(self._append, record)

    def _append(self, record: dict[str, Any]) -> None:
        assert self._directory is not None
        now = datetime.now(UTC)
        # ASCII only, so that a line separator or escape sequence in a name cannot break the line.
        line = json.dumps({"at": now.isoformat(), **record}, ensure_ascii=True, default=str)
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            path = self._directory / f"activity-{now:%Y-%m-%d}.jsonl"
            descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(descriptor, line.encode("ascii") + b"\n")
            finally:
                os.close(descriptor)
            self._failing = False
        except OSError as error:
            if not self._failing:
                logger.warning("The activity log cannot be written: %s.", error.strerror)
            self._failing = True


class RecordedClient:
    """An :class:`chatapp.llm.client.LLMClient` that logs every call."""

    def __init__(self, client: LLMClient, log: ActivityLog) -> None:
        self._client = client
        self._log = log

    @asynccontextmanager
    async def stream(self, request: ChatRequest) -> AsyncIterator[AsyncIterator[Chunk]]:
        """See :meth:`chatapp.llm.client.LLMClient.stream`."""
        record: dict[str, Any] = {
            "call": "chat",
            **(_subject.get() or {}),
            "model": request.model,
            "messages": len(request.messages),
            "status": "closed",
        }
        async with self._recorded(record), self._client.stream(request) as chunks:
            yield self._watched(chunks, record, time.monotonic())

    @asynccontextmanager
    async def _recorded(self, record: dict[str, Any]) -> AsyncIterator[None]:
        """Write the record when the call has ended, with its result and duration."""
        begun = time.monotonic()
        try:
            yield
        except UserFacingError as error:
            record |= {"status": "failed", "error": error.code}
            raise
        except asyncio.CancelledError:
            record["status"] = "cancelled"
            raise
        finally:
            record["seconds"] = round(time.monotonic() - begun, 3)
            await asyncio.shield(self._log.write(record))

    async def _watched(
        self, chunks: AsyncIterator[Chunk], record: dict[str, Any], begun: float
    ) -> AsyncIterator[Chunk]:
        async for chunk in chunks:
            if "first_token_seconds" not in record:
                record["first_token_seconds"] = round(time.monotonic() - begun, 3)
            if isinstance(chunk, Finished):
                record |= {"status": "finished", "finish_reason": chunk.finish_reason}
                if chunk.error is not None:
                    record["error"] = chunk.error.code
                if chunk.usage is not None:
                    record |= {
                        "prompt_tokens": chunk.usage.prompt_tokens,
                        "completion_tokens": chunk.usage.completion_tokens,
                        "cached_tokens": chunk.usage.cached_tokens,
                    }
            yield chunk

    async def complete(self, request: ChatRequest, on_tokens: OnTokens | None = None) -> WholeReply:
        """See :meth:`chatapp.llm.client.LLMClient.complete`."""
        return await collect(self.stream(request), on_tokens)

    async def models(self) -> tuple[ModelInfo, ...]:
        """See :meth:`chatapp.llm.client.LLMClient.models`."""
        record: dict[str, Any] = {"call": "models", **(_subject.get() or {}), "status": "closed"}
        async with self._recorded(record):
            listed = await self._client.models()
            record |= {"status": "finished", "models": len(listed)}
            return listed

    async def aclose(self) -> None:
        """Close the client."""
        await self._client.aclose()
