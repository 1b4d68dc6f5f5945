"""JSON files larger than memory: lists and objects, read value by value from a stream of bytes."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, NoReturn

from chatapp.errors import ImportInvalid

#: Bytes of the file that are read at once.
CHUNK_BYTES = 256 * 1024
#: Characters decoded at once; that takes about 5 ms, during which no other thread runs.
WHOLE = 1024 * 1024
#: Most characters of one object. Decoded it may take ten times as much memory, and the process has
#: 300 MB in all; also, no other thread runs while the garbage collector looks through it.
LARGEST = 12 * 1024 * 1024
#: Most characters of a number or a word.
_SCALAR = 5000
#: Most nested lists and objects in a value so large that it is decoded in pieces.
DEEPEST = 50
_CONTAINERS = frozenset("[{")
_SCALAR_SIGNS = re.compile(r"[-+.\w]+")
_BLANKS = re.compile(r"[ \t\n\r]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A position in a file."""

    number: int
    """Number of the object in its list, from 1; 0 before the first."""
    line: int
    """Number of the line, from 1."""
    what: str = "Message"
    """The word for the list's objects."""

    def refuse(self, sentence: str) -> NoReturn:
        """Raise ImportInvalid with this place before the sentence, and as fields."""
        where = (
            f"{self.what} {self.number} (line {self.line})" if self.number else f"Line {self.line}"
        )
        raise ImportInvalid(
            f"{where}: {sentence} Nothing was imported.",
            fields={"position": {"message": self.number, "line": self.line}},
        )


class TooLarge(Exception):
    """A value has more than ``LARGEST`` characters; what follows it can still be read."""


def objects(
    stream: BinaryIO, *, max_bytes: int, what: str = "Message", strict: bool = True
) -> Iterator[tuple[Place, dict[str, Any]]]:
    """The objects of the list in ``stream`` (UTF-8), each with its place.

    Only one object and one chunk are in memory. ``what`` names the objects in errors. Unless
    ``strict``, NaN and the infinities, which are not JSON, are read as null. Raises ImportInvalid
    for anything but such a list, and for more than ``max_bytes`` bytes.
    """
    reader = JsonReader(stream, max_bytes=max_bytes, what=what, strict=strict)
    yield from reader.objects()
    reader.end()


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _null(name: str) -> None:
    return None


class JsonReader:
    """JSON read value by value from a stream of bytes.

    The standard library decodes; this class decides how much at once. A value of more than
    ``WHOLE`` characters is decoded element by element, so that other threads can run in between. A
    value of more than ``LARGEST`` is read to its end and refused.
    """

    def __init__(
        self, stream: BinaryIO, *, max_bytes: int, what: str = "Message", strict: bool = True
    ) -> None:
        self._stream = stream
        self._max_bytes = max_bytes
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._what = what
        self._json = json.JSONDecoder(parse_constant=_no_constant if strict else _null)
        self._buffer = ""
        self._at = 0
        self._bytes = 0
        # Characters skipped so far, in all.
        self._taken = 0
        self._ended = False
        self._line = 1
        self._number = 0

    def objects(self) -> Iterator[tuple[Place, dict[str, Any]]]:
        """The objects of a list, whose first character is the next one."""
        if self.peek() != "[":
            self._refuse("a list of messages must begin here, with [.")
        for place in self.items():
            try:
                value = self.value()
            except TooLarge:
                place.refuse(
                    f"it has more than {LARGEST // 1024**2} million characters, which is more "
                    "than can be read at once."
                )
            yield place, value

    def items(self) -> Iterator[Place]:
        """The places of a list's objects; the caller takes or skips the value at each."""
        self._skip(1)
        if self.peek() == "]":
            self._skip(1)
            return
        while True:
            first = self.peek()
            self._number += 1
            if not first:
                self._refuse("the file is cut off here.")
            if first != "{":
                self._refuse("this is not an object with a role and a content.")
            yield Place(number=self._number, line=self._line, what=self._what)
            if self._separated("]", "the list was expected after this message."):
                return

    def members(self) -> Iterator[str]:
        """The names in an object; the caller takes or skips the value of each."""
        self._skip(1)
        if self.peek() == "}":
            self._skip(1)
            return
        while True:
            yield self._name()
            if self._separated("}", "the object was expected here."):
                return

    def value(self) -> Any:
        """The next value. Raises ImportInvalid, and TooLarge after a value above ``LARGEST``."""
        limit = self._taken + LARGEST
        value = self._value(0, limit)
        if self._taken > limit:
            raise TooLarge
        return value

    def skip(self) -> None:
        """Skip the next value."""
        self._value(0, 0)

    def peek(self) -> str:
        """The next character that is not blank, without taking it; empty at the end of the file."""
        while True:
            blanks = _BLANKS.match(self._buffer, self._at)
            self._skip(blanks.end() - self._at if blanks else 0)
            if self._at < len(self._buffer):
                return self._buffer[self._at]
            if not self._more(CHUNK_BYTES):
                return ""

    def end(self) -> None:
        """Raise ImportInvalid unless this is the end of the file."""
        if self.peek():
            self._refuse("there is something behind the end of the list.")

    def _value(self, depth: int, limit: int) -> Any:
        """The next value; after ``limit`` characters, only its end is searched."""
        first = self.peek()
        while True:
            waiting = len(self._buffer) - self._at
            scalar = _SCALAR_SIGNS.match(self._buffer, self._at)
            cut = scalar is not None and scalar.end() == len(self._buffer) and waiting < _SCALAR
            # A number may continue in the next chunk.
            if cut and self._more(CHUNK_BYTES):
                continue
            try:
                value, end = self._json.raw_decode(self._buffer, self._at)
            except json.JSONDecodeError as error:
                if first in _CONTAINERS and waiting >= WHOLE:
                    return self._decoded_in_parts(first, depth, limit)
                if first == '"' and waiting > LARGEST:
                    self._refuse("a text in it is too long.")
                # Perhaps only cut off; reading twice as much each time keeps the work linear.
                if (first in _CONTAINERS or first == '"' or waiting < _SCALAR) and self._more(
                    max(CHUNK_BYTES, waiting)
                ):
                    continue
                self._line += self._buffer.count("\n", self._at, error.pos)
                self._refuse("the file is cut off or is not JSON here.")
            except RecursionError:
                self._refuse("this message is nested too deeply.")
            except ValueError:
                self._refuse("a number in this message cannot be read.")
            self._skip(end - self._at)
            return value if self._taken <= limit else None

    def _decoded_in_parts(self, first: str, depth: int, limit: int) -> Any:
        """A large list or object, decoded one element after another."""
        if depth >= DEEPEST:
            self._refuse("this message is nested too deeply.")
        self._skip(1)
        if first == "[":
            listed: list[Any] = []
            if self.peek() == "]":
                self._skip(1)
                return listed
            while True:
                value = self._value(depth + 1, limit)
                if self._taken <= limit:
                    listed.append(value)
                if self._separated("]", "the list was expected here."):
                    return listed
        named: dict[str, Any] = {}
        if self.peek() == "}":
            self._skip(1)
            return named
        while True:
            name = self._name()
            value = self._value(depth + 1, limit)
            if self._taken <= limit:
                named[name] = value
            if self._separated("}", "the object was expected here."):
                return named

    def _name(self) -> str:
        if self.peek() != '"':
            self._refuse("the file is cut off or is not JSON here.")
        name: str = self._value(0, self._taken + LARGEST)
        if self.peek() != ":":
            self._refuse("the file is cut off or is not JSON here.")
        self._skip(1)
        return name

    def _separated(self, closing: str, expected: str) -> bool:
        """Skip a comma (returns False) or the closing bracket (returns True)."""
        mark = self.peek()
        if mark not in {",", closing} or not mark:
            self._refuse(f"a comma or the end of {expected}")
        self._skip(1)
        return mark == closing

    def _skip(self, count: int) -> None:
        self._line += self._buffer.count("\n", self._at, self._at + count)
        self._at += count
        self._taken += count

    def _more(self, count: int) -> bool:
        """Read at least ``count`` more bytes; False at the end of the file."""
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

    def _refuse(self, sentence: str) -> NoReturn:
        Place(number=self._number, line=self._line, what=self._what).refuse(sentence)
