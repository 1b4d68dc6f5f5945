"""A conversation at 7 %, at 65 % and above the threshold, in a project made of the page's pieces.

A script of its own, run in that project by tests/compression/test_standalone.py.
"""

# ruff: noqa: E402
from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import django

django.setup()

from letters.answering import answer  # type: ignore[import-not-found]
from letters.compressing import get_ready, make_room  # type: ignore[import-not-found]
from letters.models import Digest, Letter, Thread  # type: ignore[import-not-found]

BUDGET = 8192 - 1024
CALIBRATION = 1.1


def thread_at(share: float) -> Any:
    """A thread whose next request takes this share of the budget."""
    thread = Thread.objects.create(subject="Words")
    tokens = int((share * BUDGET / CALIBRATION - 200) / 20)
    Letter.objects.bulk_create(
        Letter(
            thread=thread,
            number=number,
            role="user" if number % 2 else "assistant",
            text="Dear friend",
            tokens=tokens,
        )
        # The database hands rows out as it likes unless it is told the order.
        for number in reversed(range(1, 21))
    )
    return thread


def after(share: float, *calls: Any) -> tuple[int, list[str]]:
    """The boundary and the versions once these were called."""
    thread = thread_at(share)
    for call in calls:
        asyncio.run(call(thread.pk))
    thread.refresh_from_db()
    versions = Digest.objects.filter(conversation=thread).order_by("pk")
    return thread.compressed_through, [row.status for row in versions]


for low in (0.07, 0.5):
    assert after(low, make_room, get_ready) == (0, []), low
assert after(0.68, make_room) == (0, [])
assert after(0.68, get_ready, get_ready, make_room) == (0, ["ready"])
boundary, versions = after(0.85, make_room, make_room, get_ready)
assert 0 < boundary < 20, boundary
assert versions == ["active"], versions


async def model(messages: list[dict[str, Any]], tools: Any) -> tuple[str, list[Any]]:
    """Calls the tool wrongly, then well, and then says what it was told."""
    results = [one["content"] for one in messages if one["role"] == "tool"]
    if len(results) < 2:
        arguments = '{"of": "user"}' if results else "{"
        return "", [SimpleNamespace(name=tools[0].name, arguments=arguments, extra={})]
    return results[-1], []


said: list[dict[str, Any]] = [{"role": "user", "content": "How many have I written?"}]
assert asyncio.run(answer(thread_at(0.1).pk, said, model)) == "10 letters"
assert said[2]["content"].startswith("error: The arguments are not valid JSON"), said
assert [one["role"] for one in said] == ["user", "assistant", "tool", "assistant", "tool"]
