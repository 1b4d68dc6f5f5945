"""Times as the distance to now."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from chatapp.rendering.words.ago import ago

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("passed", "words"),
    [
        (timedelta(seconds=-5), "just now"),
        (timedelta(seconds=59), "just now"),
        (timedelta(minutes=1), "1 minute ago"),
        (timedelta(minutes=59), "59 minutes ago"),
        (timedelta(hours=1), "1 hour ago"),
        (timedelta(hours=23), "23 hours ago"),
        (timedelta(hours=24), "yesterday"),
        (timedelta(days=2), "2 days ago"),
        (timedelta(days=6, hours=23), "6 days ago"),
        (timedelta(days=7), "18 Nov"),
        (timedelta(days=365), "25 Nov 2025"),
    ],
)
def test_the_nearer_the_finer(passed: timedelta, words: str) -> None:
    assert ago(NOW - passed, NOW) == words
