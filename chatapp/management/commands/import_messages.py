"""Import a conversation."""

from __future__ import annotations

import asyncio
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management import CommandError
from django.core.management.base import BaseCommand

from chatapp.accounts import signin_links
from chatapp.actions.importing import ImportReport, import_openai_messages
from chatapp.actions.preferences import default_model
from chatapp.errors import ImportInvalid
from chatapp.text.safety import visible
from chatapp.transfer.openai_messages import MAX_BYTES
from compression.tokens import default_counter

PROGRESS_SECONDS = 2.0


class Command(BaseCommand):
    """``manage.py import_messages FILE --owner NAME``: imports one file as one conversation."""

    help = (
        "Imports a JSON list of OpenAI-style messages (role, content, tool_calls …) as one "
        "conversation: whole or not at all, and the same messages only once."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the file, its owner, and a title."""
        parser.add_argument("file", type=Path, help="JSON list of messages, UTF-8")
        parser.add_argument("--owner", required=True, help="name of the person who will own it")
        parser.add_argument(
            "--title", default="", help="title of the conversation (default: its first words)"
        )
        parser.add_argument(
            "--keep-system-prompt",
            action="store_true",
            help="use the system messages at the head of the file as the conversation's system "
            "prompt; otherwise they are left out, since a file must not instruct a model",
        )
        parser.add_argument(
            "--max-bytes",
            type=int,
            default=MAX_BYTES,
            help="refuse a larger file (default: %(default)s)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Import, and print the code, the path, and what was left out. Exit 1 on bad input."""
        name, path, limit = options["owner"], options["file"], options["max_bytes"]
        owner = signin_links.find_person(name) if name else None
        if owner is None:
            raise CommandError(f"There is no active person named {name!r}.")
        try:
            with path.open("rb") as stream:
                report = import_openai_messages(
                    owner.pk,
                    stream,
                    counter=default_counter(),
                    title=options["title"],
                    model=asyncio.run(default_model(owner.pk)),
                    keep_system_prompt=options["keep_system_prompt"],
                    max_bytes=limit,
                    on_stored=self.progress(),
                )
        except OSError as error:
            raise CommandError(f"The file cannot be read: {error.strerror or error}.") from None
        except ImportInvalid as error:
            raise CommandError(error.message) from None
        for line in lines_of(report):
            self.stdout.write(line)

    def progress(self) -> Any:
        """A callback that prints the progress every two seconds."""
        said = time.monotonic()

        def on_stored(stored: int, messages: int) -> None:
            nonlocal said
            if time.monotonic() - said >= PROGRESS_SECONDS and stored < messages:
                said = time.monotonic()
                self.stdout.write(f"Stored {stored:,} of {messages:,} messages.")

        return on_stored


def lines_of(report: ImportReport) -> list[str]:
    """The result of an import, in sentences of one line each."""
    found, source = report.conversation, report.source
    path = f"/c/{found.code}/"
    if not found.created:
        where = "It was deleted since; nothing was brought back." if found.deleted else path
        return [f"Already imported as {found.code}; nothing was changed. {where}"]
    roles = [one.role for one in source.messages]
    by_role = ", ".join(f"{roles.count(role):,} {role}" for role in ("user", "assistant", "tool"))
    lines = [
        f"Imported {len(roles):,} messages ({by_role}), {report.tokens:,} tokens, as {found.code}.",
        path,
    ]
    if report.kept_system_prompt:
        lines.append("The leading system text is now the conversation's system prompt.")
    elif source.system_prompt:
        lines.append("Left out: the leading system text (see --keep-system-prompt).")
    lines += [f"Left out: {count:,} × {visible(what)}." for what, count in source.left_out.items()]
    if source.orphan_results:
        lines.append(
            f"Kept, but not sent to a model: {source.orphan_results:,} tool results without a call."
        )
    if source.orphan_calls:
        lines.append(f"Kept: {source.orphan_calls:,} tool calls without a result.")
    return lines
