"""The export of a conversation as a file, piece by piece."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from chatapp.conversations.messages.exporting import ExportHead, aexport_head, aexport_messages
from chatapp.text.safety import without_hidden
from chatapp.transfer import native

NAME_LENGTH = 60


@dataclass(frozen=True, kw_only=True)
class Export:
    """A file to be downloaded."""

    name: str
    content_type: str
    pieces: AsyncIterator[str]


def file_name(title: str, ending: str) -> str:
    """A file name that is valid on every system: letters, digits, spaces, hyphens, underscores."""
    kept = "".join(one if one.isalnum() or one in " -_" else " " for one in without_hidden(title))
    return f"{' '.join(kept.split())[:NAME_LENGTH].strip() or 'conversation'}.{ending}"


async def export(user_id: int, code: str, *, markdown: bool) -> Export:
    """The person's conversation as Markdown or as JSON. Raises NotFound before the first piece."""
    head = await aexport_head(user_id, code)
    title = str(head.conversation["title"])
    if markdown:
        return Export(
            name=file_name(title, "md"),
            content_type="text/markdown; charset=utf-8",
            pieces=_markdown(user_id, head),
        )
    return Export(
        name=file_name(title, "json"),
        content_type="application/json",
        pieces=_json(user_id, head),
    )


async def _messages(user_id: int, head: ExportHead) -> AsyncIterator[list[dict[str, Any]]]:
    after = 0
    while batch := await aexport_messages(user_id, head, after):
        yield batch
        after = batch[-1]["seq"]


async def _json(user_id: int, head: ExportHead) -> AsyncIterator[str]:
    # ASCII: nothing in the file can deceive the eye or break a line, and all can be read back.
    begin = {
        "format": native.FORMAT,
        "version": native.VERSION,
        "conversation": head.conversation,
        "summaries": head.summaries,
    }
    yield json.dumps(begin)[:-1] + ', "messages": ['
    between = "\n"
    async for batch in _messages(user_id, head):
        for message in batch:
            yield between + json.dumps(message)
            between = ",\n"
    yield "\n]}\n"


async def _markdown(user_id: int, head: ExportHead) -> AsyncIterator[str]:
    yield native.markdown_head(head.conversation)
    async for batch in _messages(user_id, head):
        for message in batch:
            yield native.markdown_message(message)
    for one in head.summaries:
        if one["version"] and one["version"] == head.conversation["summary_version"]:
            yield native.markdown_summary(one)
