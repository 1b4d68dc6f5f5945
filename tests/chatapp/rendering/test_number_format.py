"""Figures as people read them, and the context chip."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatapp.rendering.number_format import chip, reply_cost, short
from tests.chatapp.rendering.samples import context


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0"),
        (950, "950"),
        (999, "999"),
        (1000, "1.0k"),
        (2100, "2.1k"),
        (9949, "9.9k"),
        (9950, "10k"),
        (41_234, "41k"),
        (128_000, "128k"),
        (999_499, "999k"),
        (999_500, "1.0M"),
        (1_200_000, "1.2M"),
        (2_500_000_000, "2500M"),
    ],
)
def test_short(count: int, text: str) -> None:
    assert short(count) == text


def test_a_reply_says_what_it_cost() -> None:
    shown = reply_cost(
        {"prompt_tokens": 41_234, "completion_tokens": 312, "cached_tokens": 40_000, "cost": 0.0123}
    )
    assert shown is not None
    assert shown.label == "41k in, 312 out, $0.0123"
    assert "40,000 of them from the model server's cache" in shown.spoken


@pytest.mark.parametrize("usage", [{}, {"prompt_tokens": 5, "completion_tokens": None}])
def test_nobody_counted(usage: dict[str, int | None]) -> None:
    assert reply_cost(usage) is None


def test_the_chip_says_what_is_used() -> None:
    shown = chip(context())
    assert shown.label == "1.4k / 4.1k"
    assert (shown.percent, shown.share) == (34, "34 %")
    assert shown.level == "calm"
    assert "1,400 of 4,096 tokens" in shown.spoken


def test_an_estimate_is_marked() -> None:
    assert chip(context(estimated=True)).label.startswith("~")


@pytest.mark.parametrize(("usage", "level"), [(0.69, "calm"), (0.71, "near"), (0.8, "over")])
def test_the_level_follows_the_threshold(usage: float, level: str) -> None:
    assert chip(context(usage=usage, threshold=0.8)).level == level


sizes = st.integers(min_value=0, max_value=3_000_000)


@given(window=sizes, reserve=sizes, system=sizes, summary=sizes, pinned=sizes, tail=sizes)
def test_the_bar_never_leaves_its_frame(
    window: int, reserve: int, system: int, summary: int, pinned: int, tail: int
) -> None:
    shown = chip(
        context(
            window=window,
            reserve=reserve,
            system=system,
            summary=summary,
            pinned=pinned,
            tail=tail,
        )
    )
    for segment in shown.segments:
        assert segment.x >= 0
        assert segment.width >= 0
        assert segment.x + segment.width <= 100.01
