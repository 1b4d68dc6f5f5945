"""Server-sent events: bytes at any split in, the JSON objects of their events out. Pure, bounded.

The framing follows the WHATWG HTML standard, section 9.2.6 "Interpreting an event stream".
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jiter

from chatapp.llm.errors import MalformedReply
from chatapp.llm.openai_compatible.bounds import Bounds


def parsed(raw: bytes) -> object:
    """The value of a JSON text. Raises ValueError, or RecursionError where it is nested too deeply.

    Some servers split a character into surrogates over two pieces, which the faster parser refuses.
    """
    try:
        return jiter.from_json(raw)
    except ValueError:
        return json.loads(raw.decode("utf-8"))


class ServerSaid(Exception):
    """An error object of the server inside a stream; internal to the decoder's modules."""

    def __init__(self, error: object) -> None:
        self.error = error
        super().__init__("error event")


class EventReader:
    """The events of one stream, as far as they are JSON objects.

    ``done`` is true once ``[DONE]`` has come: what follows is ignored.
    """

    def __init__(self, bounds: Bounds) -> None:
        self.done = False
        self.count = 0
        """Events that have come."""
        self._bounds = bounds
        self._line = bytearray()
        self._after_return = False
        self._at_start = True
        self._name = ""
        self._data: list[bytes] = []
        self._data_bytes = 0

    def feed(self, data: bytes) -> Iterator[tuple[dict[str, Any], bool]]:
        """The objects that these bytes complete; with each, whether its event is an error.

        Raises MalformedReply for what cannot be a reply, and ServerSaid for an error in plain
        words. A line ends with LF, CR LF or CR, which may be split as well.
        """
        if self._after_return and data[:1] == b"\n":
            data = data[1:]
            self._after_return = False
        if not data or self.done:
            return
        self._bounds.add_bytes(len(data))
        self._after_return = data.endswith(b"\r")
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = data.split(b"\n")
        for line in lines:
            if self._line:
                line = self._completed(line)
            if self._take_line(line) and (event := self._dispatch()):
                yield event
            if self.done:
                return
        if rest:
            self._bounds.check_event(len(self._line) + len(rest) + self._data_bytes)
            self._line += rest

    @property
    def unfinished(self) -> bool:
        """Whether the stream broke off inside of a line or an event."""
        return bool(self._line or self._data)

    @property
    def inside_event(self) -> bool:
        """Whether the stream broke off inside of an event's data."""
        return bool(self._data) or self._line.startswith(b"data:")

    def _completed(self, rest: bytes) -> bytes:
        """The line whose beginning came with the bytes before."""
        self._bounds.check_event(len(self._line) + len(rest) + self._data_bytes)
        line = bytes(self._line) + rest
        self._line.clear()
        return line

    def _take_line(self, line: bytes) -> bool:
        """Take one line; True for the empty one that ends an event."""
        self._bounds.add_piece()
        if self._at_start:
            self._at_start = False
            line = line.removeprefix(b"\xef\xbb\xbf")
        if not line:
            return True
        if line.startswith(b"data:"):
            value = line[6:] if line.startswith(b"data: ") else line[5:]
            # Each with the line end that will join it to the next: empty ones take room as well.
            self._data_bytes += len(value) + 1
            self._bounds.check_event(self._data_bytes)
            self._data.append(value)
        elif line.startswith(b"event:"):
            self._name = line[6:].strip().decode("utf-8", "replace")
        elif self.count == 0 and line.lstrip()[:1] in (b"<", b"{"):
            raise MalformedReply
        return False

    def _dispatch(self) -> tuple[dict[str, Any], bool] | None:
        """One event is whole. Events of a foreign name count only when they look like ours."""
        data, name = self._data, self._name
        if not data and not name:
            return None
        self._data, self._name, self._data_bytes = [], "", 0
        raw = b"\n".join(data).strip()
        if not raw:
            return None
        if raw == b"[DONE]":
            self.done = True
            return None
        foreign = name not in {"", "message", "error"}
        try:
            payload = parsed(raw)
        except (ValueError, RecursionError):
            if foreign:
                return None
            if name == "error":
                raise ServerSaid(raw.decode("utf-8", "replace")) from None
            raise MalformedReply(fault="not JSON") from None
        if not isinstance(payload, dict):
            if foreign:
                return None
            raise MalformedReply(fault="not an object")
        self.count += 1
        return payload, name == "error"
