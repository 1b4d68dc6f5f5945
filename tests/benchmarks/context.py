"""Preparing a turn in a conversation of 100 messages and in one of 100,000 with the same tail.

The older messages stand behind a summary's boundary; what is measured is reading the snapshot of a
request and building it, which is what a turn does before it asks the model.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path

SHORT, LONG = 100, 100_000
TAIL = 40
ROUNDS = 200
MOST_RATIO = 1.2


def main() -> int:
    """Print queries and milliseconds of both; 0 when the queries are equal and the ratio holds."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
        os.environ["DATABASE_URL"] = f"sqlite:///{Path(folder) / 'context.sqlite3'}"
        return _measure()


def _measure() -> int:
    import django

    django.setup()
    from django.core.management import call_command
    from django.db import connection

    call_command("migrate", interactive=False, verbosity=0)
    conversations = {count: _fill(count) for count in (SHORT, LONG)}
    times: dict[int, list[float]] = {SHORT: [], LONG: []}
    queries: dict[int, int] = {}
    for _ in range(ROUNDS):
        # In turn, so that whatever disturbs the machine disturbs both.
        for count, pk in conversations.items():
            begun = time.perf_counter()
            _prepare(pk)
            times[count].append(time.perf_counter() - begun)
    connection.force_debug_cursor = True
    for count, pk in conversations.items():
        before = len(connection.queries_log)
        _prepare(pk)
        queries[count] = len(connection.queries_log) - before
    connection.close()
    medians = {count: statistics.median(values) * 1000 for count, values in times.items()}
    for count in (SHORT, LONG):
        print(f"{count:7} messages: {queries[count]} queries, {medians[count]:.2f} ms")
    ratio = medians[LONG] / medians[SHORT]
    print(f"ratio {ratio:.2f}, to reach {MOST_RATIO}; queries to be equal")
    return 0 if ratio <= MOST_RATIO and queries[SHORT] == queries[LONG] else 1


def _fill(count: int) -> int:
    """A conversation of ``count`` messages whose last TAIL ones are sent; its id."""
    from django.contrib.auth import get_user_model
    from django.utils import timezone

    from chatapp.models import Conversation, Message

    now = timezone.now()
    owner = get_user_model().objects.create_user(f"owner-{count}")
    row = Conversation.objects.create(
        owner=owner,
        model="benchmark",
        next_seq=count + 1,
        compressed_through=count - TAIL,
        compressed_context="## Context\n- What was said before. [1]",
        compression_version=1,
    )
    text = "A sentence of a conversation, about as long as people write them. " * 4
    Message.objects.bulk_create(
        [
            Message(
                conversation=row,
                seq=seq,
                role="user" if seq % 2 else "assistant",
                text=text,
                token_count=60,
                created_at=now,
            )
            for seq in range(1, count + 1)
        ],
        batch_size=2000,
    )
    return row.pk


def _prepare(conversation_id: int) -> None:
    from chatapp.context.request import build_request, request_sizes
    from chatapp.conversations.messages.reading import snapshot_with_tail
    from compression.tokens import default_counter

    counter = default_counter()
    read = snapshot_with_tail(conversation_id)
    sized = request_sizes(read, counter, window=8192, reserve=1024, calibration=1.0)
    built = build_request(read, sized)
    assert len(built.messages) == TAIL + 1


if __name__ == "__main__":
    raise SystemExit(main())
