"""The recognition of a file's format, and its conversations one after another.

Formats are a JSON list of OpenAI-style messages (one conversation), our own export, and the exports
of ChatGPT and Claude: a list of conversations, a single one, or a ZIP with them. Nothing is
unpacked to disk, and no more is read than the limits allow, whatever a file says of its size.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO

from chatapp.errors import ImportInvalid
from chatapp.transfer import chatgpt, claude, native, openai_messages
from chatapp.transfer.json_stream import LARGEST, JsonReader, TooLarge
from chatapp.transfer.openai_messages import MAX_BYTES
from chatapp.transfer.values import ForeignConversation

#: Limits for a ZIP: its entries, and the bytes read of all of them together. A year of daily use
#: has a few dozen megabytes of text; the rest of such an archive is pictures, which are not read.
MAX_ENTRIES = 20_000
MAX_TOTAL_BYTES = 2 * MAX_BYTES
_CONVERSATIONS = re.compile(r"(^|/)conversations[-_ ]?\d*\.json$", re.IGNORECASE)
_UNKNOWN = (
    "This is not a file that can be imported: a JSON list of messages, an export of this program, "
    "or an export of ChatGPT or Claude is needed. Nothing was imported."
)

_TOO_LARGE = (
    f"This conversation alone has more than {LARGEST // 1024**2} million characters, which is "
    "more than can be read at once."
)
#: The errors that reading a broken archive raises.
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError)
#: The value in an outline for a list or an object.
_EMPTY: Mapping[str, Callable[[], Any]] = {"[": list, "{": dict}

Reader = Callable[[Mapping[str, Any]], ForeignConversation]


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A conversation that could not be read, with the reason."""

    number: int
    """Its place in the file, from 1."""
    sentence: str


Item = ForeignConversation | Refused


def conversations(stream: BinaryIO, *, max_bytes: int = MAX_BYTES) -> Iterator[Item]:
    """The conversations of a file, read one at a time from a stream that can be rewound.

    A conversation that cannot be read becomes a :class:`Refused`. Raises ImportInvalid for a file
    that is too large or has none of the formats.
    """
    if stream.read(2) == b"PK":
        stream.seek(0)
        yield from _of_zip(stream, max_bytes)
        return
    stream.seek(0)
    yield from _of_json(lambda: _rewound(stream), max_bytes)


def count(stream: BinaryIO, *, max_bytes: int = MAX_BYTES) -> int | None:
    """The number of conversations in a file; None if it cannot be read to its end."""
    try:
        if stream.read(2) != b"PK":
            return _counted(lambda: _rewound(stream), max_bytes)
        stream.seek(0)
        with _archive(stream) as archive:
            entries = _entries(archive)
            if sum(one.file_size for one in entries) > MAX_TOTAL_BYTES:
                return None
            return sum(_counted(partial(_opened, archive, entry), max_bytes) for entry in entries)
    except (ImportInvalid, *_BROKEN):
        return None


def _counted(reopen: Callable[[], BinaryIO], max_bytes: int) -> int:
    reader = _reader(reopen(), max_bytes)
    if reader.peek() == "{":
        if _outline(reader).get("conversations") != []:
            return 1
        reader = _member(reopen, max_bytes, "conversations")
    elif "role" in _head(reader):
        return 1
    else:
        # Opened again, since the two would share one position in the stream.
        reader = _reader(reopen(), max_bytes)
        reader.peek()
    number = 0
    for _ in reader.items():
        reader.skip()
        number += 1
    return number


def _rewound(stream: BinaryIO) -> BinaryIO:
    stream.seek(0)
    return stream


def _reader_of(value: Mapping[str, Any]) -> Reader | None:
    forms: tuple[tuple[Callable[[Mapping[str, Any]], bool], Reader], ...] = (
        (native.is_conversation, native.read),
        (chatgpt.is_conversation, chatgpt.read),
        (claude.is_conversation, claude.read),
    )
    return next((read for is_one, read in forms if is_one(value)), None)


def _of_json(reopen: Callable[[], BinaryIO], max_bytes: int) -> Iterator[Item]:
    first = _first_character(reopen())
    if first == b"{":
        yield from _of_object(reopen, max_bytes)
        return
    if first != b"[":
        raise ImportInvalid(_UNKNOWN)
    head = _head(_reader(reopen(), max_bytes))
    if "role" in head and _reader_of(head) is None:
        yield openai_messages.read(reopen(), max_bytes=max_bytes)
        return
    reader = _reader(reopen(), max_bytes)
    yield from _listed(reader)
    reader.end()


def _reader(stream: BinaryIO, max_bytes: int) -> JsonReader:
    return JsonReader(stream, max_bytes=max_bytes, what="Conversation", strict=False)


def _head(reader: JsonReader) -> dict[str, Any]:
    """The first object of a list, with its own lists and objects empty."""
    reader.peek()
    for _ in reader.items():
        return _outline(reader)
    raise ImportInvalid("The file holds no conversations. Nothing was imported.")


def _outline(reader: JsonReader) -> dict[str, Any]:
    """The next object, with its lists and objects empty."""
    found: dict[str, Any] = {}
    for name in reader.members():
        kind = reader.peek()
        if kind in _EMPTY:
            reader.skip()
            found[name] = _EMPTY[kind]()
        else:
            found[name] = reader.value()
    return found


def _listed(reader: JsonReader) -> Iterator[Item]:
    """The conversations of a list that begins here."""
    if reader.peek() != "[":
        raise ImportInvalid(_UNKNOWN)
    for place in reader.items():
        # Not kept in a variable while the next one is read, since each may be large.
        yield _next_item(reader, place.number)


def _next_item(reader: JsonReader, number: int) -> Item:
    try:
        return _read(number, reader.value())
    except TooLarge:
        return Refused(number=number, sentence=_TOO_LARGE)


def _first_character(stream: BinaryIO) -> bytes:
    return stream.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip()[:1]


def _of_object(reopen: Callable[[], BinaryIO], max_bytes: int) -> Iterator[Item]:
    """The conversations of a file that is one object, read for its outline and then its members."""
    reader = _reader(reopen(), max_bytes)
    reader.peek()
    outline = _outline(reader)
    reader.end()
    if outline.get("conversations") == []:
        yield from _listed(_member(reopen, max_bytes, "conversations"))
    elif native.is_conversation(outline) and outline.get("messages") == []:
        yield _own(reopen, max_bytes)
    elif outline.get("messages") == [] and _reader_of(outline) is None:
        yield openai_messages.collect(_member(reopen, max_bytes, "messages").objects())
    else:
        reader = _reader(reopen(), max_bytes)
        reader.peek()
        if _reader_of(outline) is None:
            raise ImportInvalid(_UNKNOWN)
        try:
            yield _read(1, reader.value())
        except TooLarge:
            yield Refused(number=1, sentence=_TOO_LARGE)


def _member(reopen: Callable[[], BinaryIO], max_bytes: int, wanted: str) -> JsonReader:
    """A reader at the value of one name in the file's object."""
    reader = JsonReader(reopen(), max_bytes=max_bytes, strict=wanted == "messages")
    reader.peek()
    for name in reader.members():
        if name == wanted:
            break
        reader.skip()
    reader.peek()
    return reader


def _own(reopen: Callable[[], BinaryIO], max_bytes: int) -> Item:
    """Our own export, whose messages are read one at a time."""
    reader = _reader(reopen(), max_bytes)
    reader.peek()
    about: dict[str, Any] = {}
    try:
        for name in reader.members():
            if name == "messages":
                reader.skip()
            else:
                about[name] = reader.value()
        listed = _member(reopen, max_bytes, "messages")
        return native.read(about, (value for _, value in listed.objects()))
    except TooLarge:
        return Refused(number=1, sentence=_TOO_LARGE)
    except ImportInvalid as error:
        return Refused(number=1, sentence=error.message)


def _read(number: int, value: Any) -> Item:
    """One conversation, or why it was refused."""
    if not isinstance(value, dict):
        return Refused(number=number, sentence="This is not a conversation.")
    reader = _reader_of(value)
    if reader is None:
        return Refused(number=number, sentence="This is not a conversation of a known form.")
    try:
        return reader(value)
    except ImportInvalid as error:
        return Refused(number=number, sentence=error.message)


def _of_zip(stream: BinaryIO, max_bytes: int) -> Iterator[Item]:
    with _archive(stream) as archive:
        left = MAX_TOTAL_BYTES
        for entry in _entries(archive):
            left -= entry.file_size
            if entry.file_size > max_bytes or left < 0:
                raise ImportInvalid(
                    "The conversations in the ZIP file are too large: at most "
                    f"{max_bytes:,} bytes a file are read, {MAX_TOTAL_BYTES:,} in all."
                )
            yield from _of_entry(archive, entry, max_bytes)


def _archive(stream: BinaryIO) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(stream)
    except (zipfile.BadZipFile, ValueError, OSError):
        raise ImportInvalid("The ZIP file is cut off or broken. Nothing was imported.") from None


def _entries(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """The entries of an archive that hold conversations, by their names."""
    entries = archive.infolist()
    if len(entries) > MAX_ENTRIES:
        raise ImportInvalid(
            f"The ZIP file has {len(entries):,} entries; at most {MAX_ENTRIES:,} are read. "
            "Nothing was imported."
        )
    named = [one for one in entries if _CONVERSATIONS.search(one.filename)]
    if not named:
        raise ImportInvalid(
            "The ZIP file has an unsupported layout: no conversations.json is in it. "
            "Nothing was imported."
        )
    return sorted(named, key=lambda one: one.filename)


def _of_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, max_bytes: int) -> Iterator[Item]:
    """The conversations of one entry, which is read but never written anywhere."""

    try:
        # The unpacked bytes are counted as they come, whatever size the archive gives.
        yield from _of_json(partial(_opened, archive, entry), max_bytes)
    except _BROKEN:
        raise ImportInvalid("The ZIP file is cut off or broken.") from None


def _opened(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> BinaryIO:
    if entry.flag_bits & 0x1:
        raise ImportInvalid("The ZIP file is encrypted and cannot be read.")
    return archive.open(entry)  # type: ignore[return-value]
