"""How long a person waits for a summary that was prepared, and how long for one that was not.

A model that writes summaries for 20 seconds, and a person who types every 30: the summary is
prepared between two messages and put in place at the threshold. The control crosses the threshold
at once, so that the summary must be waited for.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

if TYPE_CHECKING:
    from tests.chatapp.long_conversations import Talk

WINDOW = 8192
SUMMARY_SECONDS, TYPING_SECONDS = 20.0, 30.0
MOST_SECONDS = 0.05
PREPARED_AT, WAITED_AT = 3_500, 5_200
"""Ruler tokens stored before the person types: just below the soft threshold; above the hard."""
MOST_MESSAGES = 6
LOOK = 0.01
"""Seconds between two looks at whether the input is locked."""


@dataclass(slots=True)
class Course:
    """What one conversation saw."""

    answered: list[float] = field(default_factory=list)
    """Seconds from each send to the end of its reply."""
    locked: float = 0.0
    """Seconds for which the input was locked."""
    applied: list[tuple[str, float]] = field(default_factory=list)
    """Trigger and seconds of what put a summary in place."""


def main() -> int:
    """0 when a prepared summary is in place within 50 ms and never locked the input."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
        os.environ["DATABASE_URL"] = f"sqlite:///{Path(folder) / 'waiting.sqlite3'}"
        return _measure()


def _measure() -> int:
    import django
    from django.core.management import call_command
    from django.test.utils import setup_test_environment

    django.setup()
    setup_test_environment()
    call_command("migrate", interactive=False, verbosity=0)
    prepared = asyncio.run(_course("prepared", PREPARED_AT))
    waited = asyncio.run(_course("waited", WAITED_AT))
    for name, one in (("prepared", prepared), ("not prepared", waited)):
        told = ", ".join(
            f"{trigger} in {seconds * 1000:.1f} ms" for trigger, seconds in one.applied
        )
        replies = ", ".join(f"{seconds:.2f}" for seconds in one.answered)
        print(f"{name}: {told or 'nothing'}; locked {one.locked:.2f} s; replies after {replies} s")
    if [trigger for trigger, _ in prepared.applied] != ["background"] or not waited.applied:
        print("The courses did not come to what they were to show.")
        return 1
    ratio = waited.applied[0][1] / prepared.applied[0][1]
    print(f"a prepared summary is in place {ratio:,.0f} times as fast; to reach: 50 ms, no lock")
    good = prepared.applied[0][1] <= MOST_SECONDS and prepared.locked == 0.0
    return 0 if good else 1


async def _course(name: str, tokens: int) -> Course:
    from django.conf import settings
    from django.contrib.auth import get_user_model

    from compression import signals
    from compression.database import in_database_thread
    from tests.chatapp.long_conversations import StrictUpstream, talking
    from tests.chatapp.test_long_conversations import history

    course = Course()
    completed = asyncio.Event()

    async def hear(*, outcome: Any, **more: Any) -> None:
        if outcome.version:
            course.applied.append((str(outcome.trigger), outcome.duration))
            completed.set()

    owner = await in_database_thread(get_user_model().objects.create_user)(name)
    strict = StrictUpstream(window=WINDOW, answer=_slow)
    async with talking(owner, settings, strict, history(tokens, each=300)) as talk:
        signals.compression_completed.connect(hear)
        watch = asyncio.create_task(_watch_lock(talk, course))
        for number in range(MOST_MESSAGES):
            began = time.perf_counter()
            await _say(talk, f"Question {number}. " + "Tell me more about the harbour. " * 60)
            course.answered.append(time.perf_counter() - began)
            if completed.is_set():
                break
            await asyncio.sleep(TYPING_SECONDS - (time.perf_counter() - began))
        watch.cancel()
        with suppress(asyncio.CancelledError):
            await watch
    return course


def _slow(request: Any) -> Any:
    """The fake model's usual answers, those for summaries after 20 seconds."""
    from tests.fake_scripts import Delay, default_answer, is_summary_request

    script = default_answer(request)
    if not is_summary_request(request):
        return script
    return replace(script, steps=(Delay(SUMMARY_SECONDS), *script.steps))


async def _say(talk: Talk, text: str) -> None:
    """Send, and wait for the reply; not for what is done in the background afterwards."""
    headers = {"Accept": "application/json"}
    fields = {"text": text, "client_msg_id": str(uuid4())}
    answer = await talk.client.post(f"/c/{talk.code}/messages/", fields, headers=headers)
    turn = answer.json()["turn"]
    while True:
        told = await talk.client.get(f"/c/{talk.code}/turns/{turn}/", headers=headers)
        if told.json()["finished_at"]:
            return
        await asyncio.sleep(LOOK)


async def _watch_lock(talk: Talk, course: Course) -> None:
    """Add up for how long the screen would show a locked input."""
    from compression import store

    row = await talk.row()
    before = time.perf_counter()
    while True:
        await asyncio.sleep(LOOK)
        now = time.perf_counter()
        if (await store.aread_state(row.pk)).locks_input:
            course.locked += now - before
        before = now


if __name__ == "__main__":
    raise SystemExit(main())
