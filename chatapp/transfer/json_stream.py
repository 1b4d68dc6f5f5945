"""A JSON list of objects, read one object at a time from bytes."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, NoReturn

from chatapp.errors import ImportInvalid

CHUNK_BYTES = 256 * 1024
_BLANKS = re.compile(r"[ \t\n\r]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where in a file something stands."""

    number: int
    #: Of the object in its list, 1 and up; 0 before the first.
    line: int
    #: 1 and up.
    what: str = "Message"
    #: What the objects of the list are.

    def refuse(self, sentence: str) -> NoReturn:
        """Raise ImportInvalid with the sentence behind this place, which is a field of it too."""
        where = (
            f"{self.what} {self.number} (line {self.line})" if self.number else f"Line {self.line}"
        )
        raise ImportInvalid(
            f"{where}: {sentence} Nothing was imported.",
            fields={"position": {"message": self.number, "line": self.line}},
        )


def objects(
    stream: BinaryIO, *, max_bytes: int, what: str = "Message", strict: bool = True
) -> Iterator[tuple[Place, dict[str, Any]]]:
    """The objects of the list in ``stream`` (UTF-8), each with its place.

    Holds one object and one chunk in memory. ``what`` names the objects in errors. Unless
    ``strict``, NaN and the infinities, which are not JSON, are read as null. Raises
    ImportInvalid for what is not such a list and for more than ``max_bytes`` bytes.
    """
    return _Reader(stream, max_bytes, what, strict).objects()


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _null(name: str) -> None:
    return None


class _Reader:
    """A buffer of text before a stream of bytes, and where its beginning lies."""

    def __init__(self, stream: BinaryIO, max_bytes: int, what: str, strict: bool) -> None:
        self._stream = stream
        self._max_bytes = max_bytes
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._what = what
        self._json = json.JSONDecoder(parse_constant=_no_constant if strict else _null)
        self._buffer = ""
        self._at = 0
        self._bytes = 0
        self._ended = False
        self._line = 1
        self._number = 0

    def objects(self) -> Iterator[tuple[Place, dict[str, Any]]]:
        """See :func:`objects`."""
        if self._next() != "[":
            self._refuse("a list of messages must begin here, with [.")
        self._skip(1)
        if self._next() == "]":
            self._skip(1)
            self._end()
            return
        while True:
            yield self._object()
            mark = self._next()
            if mark == "]":
                self._skip(1)
                self._end()
                return
            if mark != ",":
                self._refuse("a comma or the end of the list was expected after this message.")
            self._skip(1)

    def _object(self) -> tuple[Place, dict[str, Any]]:
        first = self._next()
        self._number += 1
        if not first:
            self._refuse("the file is cut off here.")
        if first != "{":
            self._refuse("this is not an object with a role and a content.")
        place = Place(number=self._number, line=self._line, what=self._what)
        while True:
            try:
                value, end = self._json.raw_decode(self._buffer, self._at)
            except json.JSONDecodeError as error:
                # Possibly only cut; twice as much each time keeps the work linear.
                if self._more(max(CHUNK_BYTES, len(self._buffer))):
                    continue
                self._line += self._buffer.count("\n", self._at, error.pos)
                self._refuse("the file is cut off or is not JSON here.")
            except RecursionError:
                self._refuse("this message is nested too deeply.")
            except ValueError:
                self._refuse("a number in this message cannot be read.")
            self._skip(end - self._at)
            return place, value

    def _next(self) -> str:
        """The next character that is not blank, not taken; empty at the end of the file."""
        while True:
            blanks = _BLANKS.match(self._buffer, self._at)
            self._skip(blanks.end() - self._at if blanks else 0)
            if self._at < len(self._buffer):
                return self._buffer[self._at]
            if not self._more(CHUNK_BYTES):
                return ""

    def _skip(self, count: int) -> None:
        self._line += self._buffer.count("\n", self._at, self._at + count)
        self._at += count

    def _more(self, count: int) -> bool:
        """Read some more; False at the end of the file."""
        if self._ended:
            return False
        data = self._stream.read(count)
        self._ended = not data
        self._bytes += len(data)
        if self._bytes > self._max_bytes:
            raise ImportInvalid(
                f"The file is larger than {self._max_bytes:,} bytes, the limit. "
                "Nothing was imported.",
                fields={"position": {"byte": self._max_bytes}, "limit": self._max_bytes},
            )
        try:
            text = self._decoder.decode(data, final=self._ended)
        except UnicodeDecodeError as error:
            byte = self._bytes - len(error.object) + error.start
            raise ImportInvalid(
                f"Byte {byte:,} of the file is not UTF-8 text. Nothing was imported.",
                fields={"position": {"byte": byte}},
            ) from None
        self._buffer = self._buffer[self._at :] + text
        self._at = 0
        return True

    def _end(self) -> None:
        if self._next():
            self._refuse("there is something behind the end of the list.")

    def _refuse(self, sentence: str) -> NoReturn:
        Place(number=self._number, line=self._line, what=self._what).refuse(sentence)
