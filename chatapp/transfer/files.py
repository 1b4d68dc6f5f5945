"""Which product a file comes from, and its conversations one after another.

Takes a JSON list of OpenAI-style messages (one conversation), our own export, and the exports of
ChatGPT and Claude: a list of conversations, a single one, or the ZIP they come in. Nothing is
ever unpacked to disk, and no more than the limits is read, whatever a file says of itself.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from chatapp.errors import ImportInvalid
from chatapp.transfer import chatgpt, claude, native, openai_messages
from chatapp.transfer.json_stream import Place, objects
from chatapp.transfer.openai_messages import MAX_BYTES
from chatapp.transfer.values import ForeignConversation

# Of a ZIP: its entries, and what is read of all of them together. A year of daily use has a few
# dozen megabytes of text; the rest of such an archive are pictures, which are not read.
MAX_ENTRIES = 20_000
MAX_TOTAL_BYTES = 4 * MAX_BYTES
_CONVERSATIONS = re.compile(r"(^|/)conversations[-_ ]?\d*\.json$", re.IGNORECASE)
_UNKNOWN = (
    "This is not a file that can be imported: a JSON list of messages, an export of this program, "
    "or an export of ChatGPT or Claude is needed. Nothing was imported."
)

Reader = Callable[[Mapping[str, Any]], ForeignConversation]


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A conversation that could not be read, and why."""

    number: int
    #: Its place in the file, 1 and up.
    sentence: str


Item = ForeignConversation | Refused


def conversations(stream: BinaryIO, *, max_bytes: int = MAX_BYTES) -> Iterator[Item]:
    """The conversations of a file, read one at a time from a stream that can be rewound.

    What is wrong with one of them is an item of its own. Raises ImportInvalid for a file that is
    none of those above or is too large.
    """
    if stream.read(2) == b"PK":
        stream.seek(0)
        yield from _of_zip(stream, max_bytes)
        return
    stream.seek(0)
    yield from _of_json(lambda: _rewound(stream), max_bytes)


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
        yield from _of_object(reopen(), max_bytes)
        return
    if first != b"[":
        raise ImportInvalid(_UNKNOWN)
    head = next(_listed(reopen(), max_bytes), None)
    if head is None:
        raise ImportInvalid("The file holds no conversations. Nothing was imported.")
    if "role" in head[1] and _reader_of(head[1]) is None:
        yield openai_messages.read(reopen(), max_bytes=max_bytes)
        return
    for place, value in _listed(reopen(), max_bytes):
        yield _read(place.number, value)


def _listed(stream: BinaryIO, max_bytes: int) -> Iterator[tuple[Place, dict[str, Any]]]:
    return objects(stream, max_bytes=max_bytes, what="Conversation", strict=False)


def _first_character(stream: BinaryIO) -> bytes:
    return stream.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip()[:1]


def _of_object(stream: BinaryIO, max_bytes: int) -> Iterator[Item]:
    data = stream.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise ImportInvalid(
            f"The file is larger than {max_bytes:,} bytes, the limit. Nothing was imported."
        )
    try:
        value = json.loads(data.decode("utf-8-sig"), parse_constant=lambda name: None)
    except (ValueError, RecursionError):
        raise ImportInvalid("The file is cut off or is not JSON. Nothing was imported.") from None
    inner = value.get("conversations")
    if isinstance(inner, list):
        for number, one in enumerate(inner, start=1):
            yield _read(number, one)
    elif isinstance(value.get("messages"), list) and not native.is_conversation(value):
        listed = json.dumps(value["messages"]).encode()
        yield openai_messages.read(io.BytesIO(listed), max_bytes=6 * max_bytes)
    else:
        if _reader_of(value) is None:
            raise ImportInvalid(_UNKNOWN)
        yield _read(1, value)


def _read(number: int, value: Any) -> Item:
    """One conversation, or why it is none."""
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
    try:
        archive = zipfile.ZipFile(stream)
    except (zipfile.BadZipFile, ValueError, OSError):
        raise ImportInvalid("The ZIP file is cut off or broken. Nothing was imported.") from None
    with archive:
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
        left = MAX_TOTAL_BYTES
        for entry in sorted(named, key=lambda one: one.filename):
            left -= entry.file_size
            if entry.file_size > max_bytes or left < 0:
                raise ImportInvalid(
                    "The conversations in the ZIP file are too large: at most "
                    f"{max_bytes:,} bytes a file are read, {MAX_TOTAL_BYTES:,} in all."
                )
            yield from _of_entry(archive, entry, max_bytes)


def _of_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, max_bytes: int) -> Iterator[Item]:
    """The conversations of one file in the archive. It is read, never written anywhere."""

    def reopen() -> BinaryIO:
        if entry.flag_bits & 0x1:
            raise ImportInvalid("The ZIP file is encrypted, which cannot be read here.")
        return archive.open(entry)  # type: ignore[return-value]

    try:
        # What is unpacked is counted as it comes, whatever the archive says of its size.
        yield from _of_json(reopen, max_bytes)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, OSError):
        raise ImportInvalid("The ZIP file is cut off or broken.") from None
