from __future__ import annotations

from chatapp.turns.pacing import FLUSH_INTERVAL, LONGEST_INTERVAL, Pace


def test_more_replies_are_shown_less_often_within_bounds() -> None:
    pace = Pace()
    intervals = []
    for pace.streams in (0, 20, 50, 100, 200, 10_000):
        intervals.append(round(pace.interval, 3))
    assert intervals == [
        FLUSH_INTERVAL,
        FLUSH_INTERVAL,
        FLUSH_INTERVAL,
        0.075,
        0.125,
        LONGEST_INTERVAL,
    ]
