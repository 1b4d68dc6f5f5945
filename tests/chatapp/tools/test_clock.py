"""The tool that tells the time."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from chatapp.tools.clock import current_time
from compression.exceptions import ToolFailed
from compression.tools.calls import offerable

NOON = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
CLOCK = current_time(lambda: NOON)


@pytest.mark.parametrize(
    ("zone", "told"),
    [
        ({}, "Sunday, 2026-03-01T12:30:00+00:00 (UTC)"),
        ({"time_zone": ""}, "Sunday, 2026-03-01T12:30:00+00:00 (UTC)"),
        (
            {"time_zone": "Europe/Stockholm"},
            "Sunday, 2026-03-01T13:30:00+01:00 (Europe/Stockholm)",
        ),
    ],
)
async def test_it_tells_the_time(zone: dict[str, str], told: str) -> None:
    assert await CLOCK.run(zone) == told


@pytest.mark.parametrize("name", ["Mars/Olympus", "../../etc/passwd", "/etc/passwd", "a\0b", "."])
async def test_what_is_no_time_zone_is_said(name: str) -> None:
    """Breaks when: a name from a model is used as a path, or its error is not a sentence."""
    with pytest.raises(ToolFailed, match="no time zone named"):
        await CLOCK.run({"time_zone": name})


def test_it_changes_nothing_and_may_be_offered() -> None:
    assert offerable([CLOCK]) == (CLOCK,)
    assert CLOCK.read_only
