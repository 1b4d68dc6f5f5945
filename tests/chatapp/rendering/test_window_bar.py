"""The bar of the window: one source for the chip, the drawer and what a reply saw."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.template import Context, Engine
from django.template.loader import render_to_string
from hypothesis import given
from hypothesis import strategies as st

from chatapp.live.view_models import ContextView
from chatapp.rendering import window_bar
from chatapp.rendering.number_format import chip, percent, short
from tests.chatapp.rendering.samples import context

sizes = st.integers(min_value=0, max_value=3_000_000)
PARTS = tuple(window_bar.COLOURS)


@st.composite
def contexts(draw: st.DrawFn) -> ContextView:
    """Usage of any window, as the server adds it up."""
    window = draw(st.integers(min_value=1, max_value=3_000_000))
    reserve = draw(st.integers(min_value=0, max_value=window))
    parts = {name: draw(sizes) for name in PARTS}
    adjustment = draw(st.integers(min_value=-sum(parts.values()), max_value=3_000_000))
    total, budget = sum(parts.values()) + adjustment, max(1, window - reserve)
    return context(
        **parts,
        window=window,
        reserve=reserve,
        budget=budget,
        adjustment=adjustment,
        total=total,
        usage=round(total / budget, 4),
        threshold=draw(st.sampled_from([0.5, 0.8, 0.95])),
    )


@given(contexts())
def test_one_thing_has_one_figure(one: ContextView) -> None:
    """In the chip, in the drawer's bar, in JSON, and in the bar of the reply to that request.

    Breaks when: one of them takes the share of the budget, rounds in a way of its own, or the
    parts do not add up to the whole.
    """
    shown, bar, told = chip(one), window_bar.of_context(one), one.as_json()
    manifest = json.loads(
        json.dumps(
            {
                "tokens": {name: told[name] for name in (*PARTS, "adjustment", "total")},
                "window": told["window"],
                "budget": told["budget"],
            }
        )
    )
    sent = window_bar.of_manifest(manifest)
    assert sent is not None
    assert percent(told["share"]) == shown.share == percent(bar.share) == percent(sent.share)
    assert shown.label.endswith(f"{short(told['total'])} / {short(told['window'])}")
    assert (bar.total, bar.window) == (sent.total, sent.window) == (told["total"], told["window"])
    figures = {part.name: part.tokens for part in bar.parts}
    assert all(figures.get(name, 0) == told[name] for name in (*PARTS, "adjustment"))
    assert sum(figures.get(name, 0) for name in (*PARTS, "adjustment")) == told["total"]
    assert figures["reserve"] == told["reserve"]
    rest = max(0, told["window"] - told["reserve"] - told["total"])
    assert figures.get("free", 0) == rest
    # A budget of nothing is one token.
    if told["budget"] == told["window"] - told["reserve"]:
        assert [part for part in sent.parts if part.name != "free"] == [
            part for part in bar.parts if part.name != "free"
        ]


@given(contexts())
def test_the_parts_of_a_colour_are_the_chips_segment(one: ContextView) -> None:
    """Breaks when: the drawer's bar is drawn to another scale than the chip's."""
    bar, segments = window_bar.of_context(one), chip(one).segments
    assert [one.name for one in segments] == ["system", "summary", "verbatim", "reserve"]
    for segment in segments:
        parts = [part for part in bar.parts if part.colour == segment.name]
        assert segment.width == pytest.approx(sum(part.width for part in parts), abs=0.01)
    ends = [part.x + part.width for part in bar.drawn if part.colour != "reserve"]
    assert all(end <= 100.05 for end in ends)


def test_what_is_in_a_request_is_named() -> None:
    parts = window_bar.of_context(context()).parts
    assert [part.name for part in parts] == ["system", "summary", "tail", "reserve", "free"]
    with_tools = window_bar.of_context(context(tools=50, pinned=20, total=1470)).parts
    assert [part.name for part in with_tools][:5] == [
        "system",
        "tools",
        "summary",
        "pinned",
        "tail",
    ]


@pytest.mark.parametrize(
    "manifest",
    [
        {},
        {"tokens": None, "window": 4096},
        {"tokens": {"total": 10}, "window": 0},
        {"tokens": {"total": 10}, "window": "4096"},
        {"tokens": {"total": 10}, "window": True},
    ],
)
def test_a_request_that_was_not_recorded_has_no_bar(manifest: dict[str, Any]) -> None:
    assert window_bar.of_manifest(manifest) is None


def test_a_manifest_of_an_older_version_has_the_parts_it_knew() -> None:
    bar = window_bar.of_manifest(
        {"tokens": {"system": 100, "tail": "x", "total": 300, "pinned": -5}, "window": 1000}
    )
    assert bar is not None
    assert (bar.total, bar.share) == (300, 0.3)
    assert {part.name: part.tokens for part in bar.parts} == {
        "system": 100,
        "tail": 0,
        "reserve": 0,
        "free": 700,
    }


@pytest.mark.parametrize(
    ("share", "words"),
    [(0, "0 %"), (0.0004, "<1 %"), (0.324, "32 %"), (1.22, "122 %"), (-0.0004, "−<1 %")],
)
def test_a_share_that_is_there_is_not_nothing(share: float, words: str) -> None:
    assert percent(share) == words


@pytest.mark.parametrize(("usage", "marked"), [(0.79, False), (0.8, True)])
def test_beyond_the_threshold_a_mark_and_words_say_so(usage: float, marked: bool) -> None:
    """Breaks when: only the colour tells that the threshold is passed."""
    html = render_to_string("partials/chip.html", {"context": context(usage=usage, threshold=0.8)})
    assert ("<path" in html) is marked
    assert ("beyond the threshold of 2,458 tokens" in html) is marked
    assert "34 % of the window" in html
    assert "2,458 tokens, 60 %" in html
    assert 'aria-valuenow="34"' in html


def test_the_legend_names_each_part_once() -> None:
    template = Engine.get_default().get_template("partials/sees/bar.html")
    html = template.render(Context({"bar": window_bar.of_context(context())}))
    assert html.count("<li") == 5
    assert (
        html.index("Instructions") < html.index("Summary") < html.index("Messages, word for word")
    )
    assert "kept free for the reply" in html
