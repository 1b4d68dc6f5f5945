"""From a foreign file to a stored conversation: read, count, store. Nothing half way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO

from chatapp.conversations.importing import (
    ImportedConversation,
    find_imported,
    store_import,
)
from chatapp.counting import message_tokens
from chatapp.errors import ImportInvalid
from chatapp.models import Conversation, TitleSource
from chatapp.rendering.titles import first_words
from chatapp.text import problems
from chatapp.transfer import openai_messages
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


def _check_title(title: str) -> None:
    if len(title) > TITLE_LENGTH:
        raise ImportInvalid(f"The title is longer than {TITLE_LENGTH} characters.")
    for sentence in problems(title):
        raise ImportInvalid(f"The title cannot be stored. {sentence}")


def _title_of(source: ForeignConversation) -> str:
    first = next((one.text for one in source.messages if one.role == "user" and one.text), "")
    return first_words(first)
