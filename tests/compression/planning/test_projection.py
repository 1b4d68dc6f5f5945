"""What a provider counted for the last request is a floor for the next one."""

from __future__ import annotations

from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compression.planning.projection import HIGHEST_RATIO, UNSEEN_SHARE, Line, Report, line

WINDOW = 8192


def report(counted: int, reported: int) -> Report:
    return Report(counted=counted, reported=reported)


def projected(found: Line, counted: int) -> int:
    return ceil((counted + found.unseen) * found.calibration)


def test_it_works() -> None:
    assert line(1.1, [], window=WINDOW) == Line(calibration=1.1)
    assert line(1.1, [report(1000, 1050)], window=WINDOW) == Line(calibration=1.1)
    heavy = line(1.1, [report(1450, 6000)], window=WINDOW)
    assert 3.5 < heavy.calibration <= 6000 / 1450
    assert projected(heavy, 1450) >= 6000


reports = st.builds(report, st.integers(1, 200_000), st.integers(1, 1_000_000))


@given(
    calibration=st.floats(0.5, 2.0),
    known=st.lists(reports, min_size=1, max_size=3),
    window=st.integers(256, 1_000_000),
    more=st.integers(0, 50_000),
)
def test_the_next_request_is_never_projected_below_the_last(
    calibration: float, known: list[Report], window: int, more: int
) -> None:
    """Nor below the model's calibration; only what no tokenizer comes to is cut.

    Breaks when: the line does not run through the newest report, or a bound cuts it.
    """
    found = line(calibration, known, window=window)
    last = known[0]
    most = HIGHEST_RATIO * last.counted + UNSEEN_SHARE * window
    grown = projected(found, last.counted + more)
    assert grown >= min(last.reported, int(most)) + int(calibration * more) - 1
    assert calibration <= found.calibration <= max(calibration, HIGHEST_RATIO)
    assert found.unseen * found.calibration <= UNSEEN_SHARE * window + found.calibration


def test_a_small_excess_may_be_something_unseen_and_does_not_grow_with_the_text() -> None:
    """A server's own instructions of 500 tokens before a first question of 60.

    Breaks when: the ratio of a short request is taken for every request to come.
    """
    first = line(1.1, [report(60, 566)], window=WINDOW)
    assert projected(first, 60) >= 566
    assert projected(first, 60 + 1000) < 566 + 1.2 * 1000
    second = line(1.1, [report(460, 1006), report(60, 566)], window=WINDOW)
    assert second.calibration < 1.2


def test_two_reports_tell_a_heavy_tokenizer_from_something_unseen() -> None:
    """Breaks when: the second report is not looked at."""
    one = line(1.1, [report(250, 1000)], window=WINDOW)
    two = line(1.1, [report(250, 1000), report(100, 400)], window=WINDOW)
    assert one.calibration < 1.2
    assert two.calibration == pytest.approx(4.0)
    near = line(1.1, [report(250, 1000), report(240, 400)], window=WINDOW)
    assert near == one, "ten tokens more tell nothing"


def test_the_projection_falls_with_the_request() -> None:
    """After a compression, that is. Breaks when: the floor is the last request's own figure."""
    found = line(2.0, [report(1450, 6000), report(1200, 4970)], window=WINDOW)
    assert projected(found, 400) < 6000 * 400 / 1450 + 0.05 * WINDOW
