"""From a foreign file to a stored conversation: read, count, store. Nothing half way."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO

from chatapp.conversations.importing import (
    ImportedConversation,
    afind_imported,
    astore_import,
    find_imported,
    store_import,
)
from chatapp.counting import message_tokens
from chatapp.errors import ImportInvalid
from chatapp.models import Conversation, TitleSource
from chatapp.rendering.titles import first_words
from chatapp.text import problems
from chatapp.transfer import files, openai_messages
from chatapp.transfer.values import ForeignConversation
from compression.ports import TokenCounter

TITLE_LENGTH = int(Conversation._meta.get_field("title").max_length or 0)


@dataclass(frozen=True, kw_only=True)
class ImportReport:
    """What became of a file."""

    conversation: ImportedConversation
    source: ForeignConversation
    tokens: int
    #: Ruler tokens of all messages; 0 when nothing was created.
    kept_system_prompt: bool = False


def import_openai_messages(
    owner_id: int,
    stream: BinaryIO,
    *,
    counter: TokenCounter,
    title: str = "",
    keep_system_prompt: bool = False,
    max_bytes: int = openai_messages.MAX_BYTES,
    on_counted: Callable[[int, int], None] = lambda counted, messages: None,
) -> ImportReport:
    """Import a JSON list of OpenAI-style messages as one conversation of ``owner_id``.

    ``on_counted`` is told after each message how many of how many are counted. Synchronous, and
    seconds long for a large file: call it in a thread. Raises ImportInvalid.
    """
    _check_title(title)
    source = openai_messages.read(stream, max_bytes=max_bytes)
    found = find_imported(owner_id, source.fingerprint)
    if found is not None:
        return ImportReport(conversation=found, source=source, tokens=0)
    tokens = []
    for number, one in enumerate(source.messages, start=1):
        tokens.append(message_tokens(counter, one.text, one.tool_calls))
        on_counted(number, len(source.messages))
    stored = store_import(
        owner_id,
        source,
        tokens=tokens,
        title=title or _title_of(source),
        title_source=TitleSource.PERSON if title else TitleSource.FIRST_WORDS,
        keep_system_prompt=keep_system_prompt,
    )
    return ImportReport(
        conversation=stored,
        source=source,
        tokens=sum(tokens) if stored.created else 0,
        kept_system_prompt=stored.created and keep_system_prompt and bool(source.system_prompt),
    )


@dataclass(slots=True, kw_only=True)
class FileReport:
    """What became of a file with any number of conversations."""

    conversations: list[dict[str, Any]] = field(default_factory=list)
    #: code, title, messages, created, deleted of each that is here now, in the file's order.
    refused: list[dict[str, Any]] = field(default_factory=list)
    #: number and message of each that could not be read.
    left_out: Counter[str] = field(default_factory=Counter)
    #: What of the imported ones was not taken over -> how often.
    messages: int = 0
    #: Stored by this import.

    @property
    def imported(self) -> int:
        """Conversations that this import made."""
        return sum(one["created"] for one in self.conversations)

    @property
    def already(self) -> int:
        """Conversations that had been imported before; nothing of them was changed."""
        return len(self.conversations) - self.imported

    def as_json(self) -> dict[str, Any]:
        """All of it, with the counts."""
        return {
            "imported": self.imported,
            "already": self.already,
            "messages": self.messages,
            "conversations": self.conversations,
            "refused": self.refused,
            "left_out": dict(self.left_out),
        }


async def import_file(
    owner_id: int, stream: BinaryIO, *, counter: TokenCounter, most_pinned: int
) -> FileReport:
    """Import every conversation of a file, each whole or not at all, and once.

    Reading and counting happen in a thread, one conversation at a time; each is stored in a unit
    of work of its own, so that an import that is cut short leaves whole conversations, and the
    same file again brings the rest. As many messages stay pinned as have ``most_pinned`` ruler
    tokens together. Raises ImportInvalid when nothing could be imported at all.
    """
    report = FileReport()
    items = files.conversations(stream)
    while True:
        try:
            item = await asyncio.to_thread(next, items, None)
        except ImportInvalid as error:
            if not report.conversations:
                raise
            report.refused.append({"number": None, "message": error.message})
            return report
        if item is None:
            break
        if isinstance(item, files.Refused):
            report.refused.append({"number": item.number, "message": item.sentence})
        else:
            await _import_one(owner_id, item, report, counter, most_pinned)
    if not report.conversations:
        first = report.refused[0]["message"] if report.refused else "It holds no conversations."
        raise ImportInvalid(
            f"Nothing was imported. {first}", fields={"refused": report.refused[:100]}
        )
    return report


async def _import_one(
    owner_id: int,
    source: ForeignConversation,
    report: FileReport,
    counter: TokenCounter,
    most_pinned: int,
) -> None:
    fingerprint = await asyncio.to_thread(lambda: source.fingerprint)
    title = source.title or _title_of(source)
    stored = await afind_imported(owner_id, fingerprint)
    if stored is None:
        tokens = await asyncio.to_thread(_count, source, counter)
        source = _with_pins_within(source, tokens, most_pinned)
        stored = await astore_import(
            owner_id,
            source,
            tokens=tokens,
            title=title,
            title_source=TitleSource.PERSON if source.title else TitleSource.FIRST_WORDS,
        )
    report.conversations.append(
        {
            "code": stored.code,
            "title": title,
            "messages": len(source.messages),
            "created": stored.created,
            "deleted": stored.deleted,
        }
    )
    if stored.created:
        report.messages += len(source.messages)
        report.left_out.update(source.left_out)
        report.left_out["system prompt"] += bool(source.system_prompt)
        report.left_out = +report.left_out


def _count(source: ForeignConversation, counter: TokenCounter) -> list[int]:
    return [message_tokens(counter, one.text, one.tool_calls) for one in source.messages]


def _with_pins_within(
    source: ForeignConversation, tokens: Sequence[int], most: int
) -> ForeignConversation:
    """The conversation with the first of its pins that may be pinned here; the others are left out.

    As when a person pins: none of a tool, and no more than a request has room for.
    """
    messages, left_out = list(source.messages), 0
    for place, (one, count) in enumerate(zip(source.messages, tokens, strict=True)):
        # What is superseded is in no request.
        if not one.pinned or one.superseded:
            continue
        if one.role != "tool" and count <= most:
            most -= count
        else:
            messages[place] = replace(one, pinned=False)
            left_out += 1
    if not left_out:
        return source
    return replace(
        source,
        messages=tuple(messages),
        left_out={**source.left_out, "pin, for which there is no room": left_out},
    )


def _check_title(title: str) -> None:
    if len(title) > TITLE_LENGTH:
        raise ImportInvalid(f"The title is longer than {TITLE_LENGTH} characters.")
    for sentence in problems(title):
        raise ImportInvalid(f"The title cannot be stored. {sentence}")


def _title_of(source: ForeignConversation) -> str:
    first = next((one.text for one in source.messages if one.role == "user" and one.text), "")
    return first_words(first)
