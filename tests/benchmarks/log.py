"""Search in the index of the activity log with a million calls, on the database of the settings.

The calls are those of one person in a thousand conversations, over thirty days. Each kind of
question is asked a few times; the slowest counts. ``CALLS=number`` asks for another number. With
``DATABASE_URL`` the same on PostgreSQL.
"""

from __future__ import annotations

import os
import random
import sys
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import django
from django.test.utils import setup_databases, setup_test_environment, teardown_databases

CALLS = int(os.environ.get("CALLS", "1000000"))
CONVERSATIONS = 1_000
MODELS = ("gpt-5", "gpt-5-mini", "claude-opus", "qwen3-32b", "llama-3.3-70b")
KINDS = ("chat", "chat", "chat", "chat", "summary", "title", "probe")
#: Milliseconds that no search may take longer than.
DEMANDED = 300.0
TRIES = 5


def main() -> int:
    """Print the time of each search. Returns 0 when all are as fast as demanded."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    setup_test_environment()
    made = setup_databases(verbosity=0, interactive=False)
    try:
        return _measured()
    finally:
        teardown_databases(made, verbosity=0)


def _measured() -> int:
    from chatapp.conversations.model_calls.listing import CallFilter, calls
    from chatapp.conversations.model_calls.totals import totals

    owner, codes = _filled()
    today = datetime.now(UTC).date()
    searches = {
        "newest": CallFilter(),
        "by kind": CallFilter(kind="title"),
        "by kind and model": CallFilter(kind="probe", model=MODELS[-1]),
        "a model that is rare": CallFilter(model="rare-model"),
        "words of a title": CallFilter(words="number 77"),
        "words of a model": CallFilter(words="qwen"),
        "words that are nowhere": CallFilter(words="nowhere"),
        "errors": CallFilter(failed=True),
        "errors by words": CallFilter(words="llm_rate"),
        "one conversation": CallFilter(conversation=codes[0], kind="probe"),
        "one day": CallFilter(first=today - timedelta(days=9), last=today - timedelta(days=9)),
        "a day of a project": CallFilter(
            project="rare", first=today - timedelta(days=9), last=today - timedelta(days=9)
        ),
    }
    slowest = 0.0
    for name, wanted in searches.items():
        taken = []
        for _ in range(TRIES):
            begun = time.perf_counter()
            found = calls(owner, wanted)
            taken.append((time.perf_counter() - begun) * 1000)
        slowest = max(slowest, *taken)
        print(f"{name:24} {max(taken):7.1f} ms  {len(found.calls)} calls")
    begun = time.perf_counter()
    totals(owner, CallFilter(first=today - timedelta(days=29), last=today))
    print(f"{'sums of thirty days':24} {(time.perf_counter() - begun) * 1000:7.1f} ms")
    print(f"slowest search {slowest:.1f} ms of {DEMANDED:.0f} ms, {CALLS:,} calls")
    return int(slowest > DEMANDED)


def _filled() -> tuple[int, list[str]]:
    """A person with all the calls. Returns the person's id and the codes of the conversations."""
    from django.contrib.auth.models import User

    from chatapp.models import Conversation

    owner = User.objects.create(username="busy")
    Conversation.objects.bulk_create(
        Conversation(owner=owner, title=f"Conversation number {n}") for n in range(CONVERSATIONS)
    )
    rows = list(Conversation.objects.values_list("pk", "code"))
    portion: list[Any] = []
    for call in _calls(owner.pk, [pk for pk, _ in rows]):
        portion.append(call)
        if len(portion) == 5_000:
            _store(portion)
            portion = []
    _store(portion)
    return owner.pk, [str(code) for _, code in rows]


def _calls(owner: int, conversations: list[int]) -> Iterator[Any]:
    from chatapp.models import ModelCall

    chance = random.Random(7)
    now = datetime.now(UTC)
    for n in range(CALLS):
        failed = chance.random() < 0.01
        rare = n % 100_000 == 99_999
        yield ModelCall(
            call=uuid.UUID(int=chance.getrandbits(128)),
            place="0" * 32,
            file=f"default/20260101_{n // 5000:06d}.jsonl",
            offset=n % 5000 * 1000,
            length=1000,
            owner_id=owner,
            conversation_id=chance.choice(conversations),
            project="rare" if rare else "default",
            kind=chance.choice(KINDS),
            model="rare-model" if rare else chance.choice(MODELS),
            at=now - timedelta(days=30) * (1 - n / CALLS),
            input_tokens=1000,
            output_tokens=100,
            duration=1.0,
            error="llm_rate_limited" if failed else "",
            failed=failed,
        )


def _store(rows: list[Any]) -> None:
    """The rows, and their sums as the log would have them."""
    from django.db import transaction
    from django.db.models import F

    from chatapp.models import DailyCalls, ModelCall

    sums: dict[tuple[Any, ...], int] = {}
    with transaction.atomic():
        ModelCall.objects.bulk_create(rows)
        for row in rows:
            key = (row.owner_id, row.at.date(), row.project, row.kind, row.model)
            sums[key] = sums.get(key, 0) + 1
        for (owner, day, project, kind, model), count in sums.items():
            found, _ = DailyCalls.objects.get_or_create(
                owner_id=owner, day=day, project=project, kind=kind, model=model
            )
            DailyCalls.objects.filter(pk=found.pk).update(
                calls=F("calls") + count, input_tokens=F("input_tokens") + 1000 * count
            )


if __name__ == "__main__":
    sys.exit(main())
