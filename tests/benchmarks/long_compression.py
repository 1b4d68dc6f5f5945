"""The first compression of a long conversation: calls, time, and the progress as it is told.

515,000 tokens that were imported, before a model with a small window that answers each call after
a quarter of a second. ``python -m tests.benchmarks.long_compression --tokens 40000`` takes fewer.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from pathlib import Path
from typing import Any

TOKENS = 515_000
WINDOWS = (4_096, 8_192)
MOST_CALLS = 40
ANSWER_SECONDS = 0.25
MOST_OWN_SECONDS = 60.0
"""What the program may take besides the model's answers; the extract of all of it included."""
LEAST_FILLED = 0.6
"""Share of its window that a call must take on average, its answer included."""


@dataclass(slots=True)
class Course:
    """What one compression took, and what was said of it."""

    seconds: float = 0.0
    calls: int = 0
    filled: float = 0.0
    """The part of the window that a call takes on average, its answer included."""
    pause: float = 0.0
    """Seconds for which the event loop stood still at most."""
    told: list[str] = field(default_factory=list)
    parts: list[int] = field(default_factory=list)
    extracted: list[str] = field(default_factory=list)
    applied: bool = False
    refused: int = 0
    """Calls above the window."""
    tokens: tuple[int, int] = (0, 0)


def main(arguments: Sequence[str] = ()) -> int:
    """0 when the calls are bounded and filled, every part is told, and a summary is applied."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.long_compression")
    parser.add_argument("--tokens", type=int, default=TOKENS)
    parser.add_argument("--window", type=int, action="append")
    chosen = parser.parse_args(list(arguments))
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
        os.environ["DATABASE_URL"] = f"sqlite:///{Path(folder) / 'long.sqlite3'}"
        return _measure(chosen.tokens, chosen.window or WINDOWS)


def _measure(tokens: int, windows: Sequence[int]) -> int:
    import django
    from django.core.management import call_command
    from django.test.utils import setup_test_environment

    django.setup()
    setup_test_environment()
    call_command("migrate", interactive=False, verbosity=0)
    return max([_report(asyncio.run(course(tokens, window)), window) for window in windows])


def _report(made: Course, window: int) -> int:
    before, after = made.tokens
    own = made.seconds - made.calls * ANSWER_SECONDS
    print(
        f"window {window:,}: {before:,} → {after:,} tokens in {made.calls} calls, "
        f"{made.filled:.0%} of the window each; {made.seconds:.1f} s, {own:.1f} s of them our own; "
        f"longest pause {1000 * made.pause:.0f} ms"
    )
    shown = made.told if len(made.told) < 7 else [*made.told[:3], "…", *made.told[-3:]]
    for line in (*shown, *made.extracted):
        print(f"  {line}")
    good = (
        made.applied
        and not made.refused
        and made.calls <= MOST_CALLS
        and made.filled >= LEAST_FILLED
        and own <= MOST_OWN_SECONDS
        and made.parts == list(range(1, len(made.parts) + 1))
    )
    return 0 if good else 1


async def course(tokens: int, window: int) -> Course:
    """One conversation of so many tokens, compressed once."""
    from django.conf import settings
    from django.contrib.auth import get_user_model

    from chatapp.rendering.words.labels import extracted_part
    from compression import signals
    from compression.database import in_database_thread
    from tests.chatapp.long_conversations import StrictUpstream, talking
    from tests.chatapp.test_long_conversations import history
    from tests.fake_scripts import is_summary_request
    from tests.inprocess import JSON

    made, done = Course(), asyncio.Event()

    async def hear(*, outcome: Any, **more: Any) -> None:
        made.applied, made.tokens = outcome.success, (outcome.tokens_before, outcome.tokens_after)
        done.set()

    async def follow(*, part: int, **facts: Any) -> None:
        if part not in made.parts:
            made.parts.append(part)
            made.told.append(_line(part=part, **facts))

    owner = await in_database_thread(get_user_model().objects.create_user)(f"window-{window}")
    strict = StrictUpstream(window=window, answer=_after_a_while)
    async with talking(owner, settings, strict, history(tokens)) as talk:
        # Known before it is asked, as after any other request to this model.
        await talk.client.get("/models/", headers=JSON)
        signals.compression_completed.connect(hear)
        signals.compression_progress.connect(follow)
        # As the server does before it answers anybody.
        gc.freeze()
        talk.longest_pause = 0.0
        began = time.perf_counter()
        answer = await talk.client.post(f"/c/{talk.code}/compact/", {}, headers=JSON)
        assert answer.status_code == 202, answer.content
        await done.wait()
        made.seconds = time.perf_counter() - began
        made.pause = talk.longest_pause
        signals.compression_completed.disconnect(hear)
        signals.compression_progress.disconnect(follow)
        made.calls = sum(is_summary_request(one.json) for one in talk.upstream.chats)
        made.filled = sum(strict.sizes) / max(1, len(strict.sizes)) / window
        made.refused = len(strict.refused)
        page = (await talk.client.get(f"/c/{talk.code}/", headers=JSON)).json()
        made.extracted = [extracted_part(one) for one in page["compression"]["extracted"]]
    return made


def _line(
    *, tokens_written: int, seconds_left: float | None, signal: Any, sender: Any, **facts: Any
) -> str:
    """What the page shows of the progress, beside the count of tokens."""
    from django.utils.timezone import now

    from chatapp.live import events
    from chatapp.rendering.fragments import render_event

    left = None if seconds_left is None else ceil(seconds_left)
    told: dict[str, Any] = {"tokens_written": tokens_written, "seconds_left": left}
    del facts["conversation_id"]
    about: dict[str, Any] = {"conversation_id": 0, "event_no": 0, "at": now()}
    shown = render_event(events.CompressionProgress(**about, **told, **facts))
    return " · ".join(re.findall(r'<span class="part">(.+?)</span>', shown))


def _after_a_while(request: Any) -> Any:
    """The fake model's usual answers, after a while."""
    from tests.fake_scripts import Delay, default_answer

    script = default_answer(request)
    return replace(script, steps=(Delay(ANSWER_SECONDS), *script.steps))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
