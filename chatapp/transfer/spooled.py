"""The messages of a conversation that is too long for memory: most of them in a file."""

from __future__ import annotations

import pickle
import tempfile
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import IO, overload

from chatapp.transfer.values import ForeignMessage

#: Messages that are written and read together, or fewer with this many characters.
BATCH = 500
BATCH_CHARACTERS = 512 * 1024
#: Batches kept in memory, enough for an ordinary conversation.
IN_MEMORY = 4

Batch = list[ForeignMessage]


class SpooledMessages(Sequence[ForeignMessage]):
    """A list that is first appended to, then read any number of times, by one reader at a time.

    Its file has no name and is deleted with the object.
    """

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        # Batches in memory, or their positions in the file.
        self._batches: list[Batch | int] = []
        # The index of each batch's first message.
        self._firsts: list[int] = []
        self._length = 0
        self._newest: Batch = []
        self._characters = 0

    def __del__(self) -> None:
        if self._file is not None:
            self._file.close()

    def append(self, message: ForeignMessage) -> None:
        """Append a message."""
        if not self._newest:
            self._firsts.append(self._length)
        self._newest.append(message)
        self._length += 1
        self._characters += len(message.text) + len(message.reasoning)
        if len(self._newest) >= BATCH or self._characters >= BATCH_CHARACTERS:
            self._batches.append(self._put_away(self._newest))
            self._newest, self._characters = [], 0

    def _put_away(self, batch: Batch) -> Batch | int:
        if len(self._batches) < IN_MEMORY:
            return batch
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="palimpsest-import-")  # noqa: SIM115
        place = self._file.seek(0, 2)
        pickle.dump(batch, self._file, pickle.HIGHEST_PROTOCOL)
        return place

    def _batch(self, number: int) -> Batch:
        if number == len(self._batches):
            return self._newest
        found = self._batches[number]
        if not isinstance(found, int):
            return found
        assert self._file is not None
        self._file.seek(found)
        batch: Batch = pickle.load(self._file)
        return batch

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[ForeignMessage]:
        for number in range(len(self._firsts)):
            yield from self._batch(number)

    @overload
    def __getitem__(self, index: int) -> ForeignMessage: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[ForeignMessage]: ...
    def __getitem__(self, index: int | slice) -> ForeignMessage | Sequence[ForeignMessage]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(self._length))]
        at = index + self._length if index < 0 else index
        if not 0 <= at < self._length:
            raise IndexError(index)
        number = bisect_right(self._firsts, at) - 1
        return self._batch(number)[at - self._firsts[number]]
