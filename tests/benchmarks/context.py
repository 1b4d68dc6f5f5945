"""Preparing a turn in a conversation of 100 messages and in one of 100,000 with the same tail.

The older messages stand behind a summary's boundary; what is measured is reading the snapshot of a
request and building it, and looking up what comes along with its message, which is what a turn does
before it asks the model.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

SHORT, LONG = 100, 100_000
TAIL = 40
ROUNDS = 200
MOST_RATIO = 1.2
#: Named in one of the first messages.
NAME = "KX-4021"


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

    call_command("migrate", interactive=False, verbosity=0)
    conversations = {count: _fill(count) for count in (SHORT, LONG)}
    missed = []
    for name, work, most in (
        ("snapshot and request", _prepare, MOST_RATIO),
        ("excerpts for a rare name", _look_up_name, MOST_RATIO),
        # A word is looked for in so many messages at most: more of them than the short one has.
        ("excerpts for common words", _look_up_words, None),
    ):
        ratio, same = _compared(name, work, conversations)
        if most is not None and (ratio > most or not same):
            missed.append(f"{name}: {ratio:.2f}, same queries: {same}")
    print("\n".join(missed) or f"At most {MOST_RATIO} times as long, and the same queries.")
    return 1 if missed else 0


def _compared(
    name: str, work: Callable[[int], object], conversations: dict[int, int]
) -> tuple[float, bool]:
    """How many times as long the work takes in the long one, and whether by as many queries."""
    from django.db import connection

    times: dict[int, list[float]] = {count: [] for count in conversations}
    queries: dict[int, int] = {}
    for _ in range(ROUNDS):
        # In turn, so that whatever disturbs the machine disturbs both.
        for count, pk in conversations.items():
            begun = time.perf_counter()
            work(pk)
            times[count].append(time.perf_counter() - begun)
    connection.force_debug_cursor = True
    for count, pk in conversations.items():
        before = len(connection.queries_log)
        work(pk)
        queries[count] = len(connection.queries_log) - before
    connection.force_debug_cursor = False
    connection.close()
    medians = {count: statistics.median(values) * 1000 for count, values in times.items()}
    for count in conversations:
        print(f"{name:26} {count:7} messages: {queries[count]} queries, {medians[count]:.2f} ms")
    return medians[LONG] / medians[SHORT], queries[SHORT] == queries[LONG]


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
                text=f"{text}{NAME}" if seq == 3 else text,
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


def _look_up_name(conversation_id: int) -> None:
    """What a model with tools gets along for a message that names something."""
    assert NAME in _excerpts(conversation_id, f"Open {NAME} again.", any_words=False)


def _look_up_words(conversation_id: int) -> None:
    """What a model without tools gets along for words that all messages have."""
    _excerpts(conversation_id, "How do people write a sentence?", any_words=True)


def _excerpts(conversation_id: int, message: str, *, any_words: bool) -> str:
    from chatapp.conversations.messages.originals import look_up
    from compression.recall.excerpts import excerpts
    from compression.tokens import default_counter

    work = partial(
        excerpts,
        message=message,
        seen=(),
        any_words=any_words,
        count=default_counter().count,
        most_tokens=300,
    )
    return look_up(conversation_id, work)


if __name__ == "__main__":
    raise SystemExit(main())
