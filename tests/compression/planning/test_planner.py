"""The planner: where the boundary goes, and when a run is worth it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compression.exceptions import NothingToCompress
from compression.planning.planner import PlannerSettings, cap_tokens, plan, usage, worth_applying
from compression.types import Item, Role, Sizes, Trigger
from tests.growth import growth

SETTINGS = PlannerSettings()


def sizes(window: int = 8192, **changes: Any) -> Sizes:
    return Sizes(**{"window": window, "reserve": window // 4, "fixed": 200, **changes})


def talk(turns: int, tokens: int = 100, **changes: Any) -> list[Item]:
    """So many turns of one user and one assistant message."""
    roles: tuple[Role, Role] = ("user", "assistant")
    return [
        Item(seq=n + 1, role=roles[n % 2], text=f"message {n + 1}", tokens=tokens, **changes)
        for n in range(turns * 2)
    ]


def tool_turn(seq: int, calls: int, tokens: int) -> list[Item]:
    """One turn: a question, calls with their results, a reply."""
    items = [Item(seq=seq, role="user", text="q", tokens=tokens)]
    for call in range(calls):
        calls_made = ({"id": f"c{call}"},)
        items.append(
            Item(seq=seq + 1 + 2 * call, role="assistant", text="", tokens=5, tool_calls=calls_made)
        )
        items.append(
            Item(
                seq=seq + 2 + 2 * call,
                role="tool",
                text="r",
                tokens=tokens,
                tool_call_id=f"c{call}",
            )
        )
    items.append(Item(seq=items[-1].seq + 1, role="assistant", text="a", tokens=tokens))
    return items


def test_it_works() -> None:
    items = talk(25)
    span = plan(items, sizes(), SETTINGS, trigger=Trigger.THRESHOLD)
    assert span.first_seq == 1
    assert span.source_tokens == sum(item.tokens for item in span.items)
    tail = items[len(span.items) :]
    assert tail[0].role == "user"
    after = usage(tail, sizes(summary=cap_tokens(sizes(), SETTINGS)))
    assert after.share <= SETTINGS.landing


def test_reasoning_that_is_sent_is_part_of_what_a_run_frees() -> None:
    """But no part of what a summary is made from.

    Breaks when: a window that reasoning fills has nothing to compress.
    """
    plain = talk(6)
    with pytest.raises(NothingToCompress):
        plan(plain, sizes(), SETTINGS, trigger=Trigger.THRESHOLD)
    thought = [replace(one, reasoning=600) if one.role == "assistant" else one for one in plain]
    assert usage(thought, sizes()).share > 0.8
    span = plan(thought, sizes(), SETTINGS, trigger=Trigger.THRESHOLD)
    assert span.source_tokens == 100 * len(span.items)
    assert usage(thought[len(span.items) :], sizes()).share < 0.45


@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_short_conversation_has_nothing_to_compress(count: int) -> None:
    with pytest.raises(NothingToCompress):
        plan(talk(1)[:count], sizes(), SETTINGS, trigger=Trigger.MANUAL)


def test_only_assistant_messages_have_no_cut() -> None:
    items = [Item(seq=n, role="assistant", text="x", tokens=900) for n in range(1, 9)]
    with pytest.raises(NothingToCompress):
        plan(items, sizes(), SETTINGS, trigger=Trigger.THRESHOLD)


def test_all_user_messages_are_turns_of_their_own() -> None:
    items = [Item(seq=n, role="user", text="x", tokens=500) for n in range(1, 12)]
    span = plan(items, sizes(), SETTINGS, trigger=Trigger.THRESHOLD)
    assert 0 < span.through_seq < 11


def test_manual_keeps_the_turns_of_the_settings() -> None:
    items = talk(30)
    for turns in (3, 4, 5):
        settings = PlannerSettings(keep_turns=turns)
        span = plan(items, sizes(), settings, trigger=Trigger.MANUAL)
        assert len(items) - len(span.items) == max(6, 2 * turns)


def test_manual_that_would_gain_little_is_refused_with_figures() -> None:
    with pytest.raises(NothingToCompress) as refused:
        plan(talk(4, tokens=20), sizes(), SETTINGS, trigger=Trigger.MANUAL)
    assert refused.value.fields["needed"] == 0.05
    assert "%" in refused.value.message


def test_automatic_must_free_a_fifth() -> None:
    """A run whose fixed parts are small must free 0.20 B."""
    items = talk(8, tokens=100)
    with pytest.raises(NothingToCompress) as refused:
        plan(items, sizes(window=32768), SETTINGS, trigger=Trigger.BACKGROUND)
    assert refused.value.fields["needed"] == 0.20


def test_large_fixed_parts_allow_the_smaller_gain() -> None:
    figures = sizes(fixed=2400)
    items = talk(7, tokens=110)
    span = plan(items, figures, SETTINGS, trigger=Trigger.THRESHOLD)
    freed = figures.share(span.source_tokens - cap_tokens(figures, SETTINGS))
    assert 0.10 <= freed < 0.20


def test_a_giant_last_turn_keeps_only_itself() -> None:
    items = [*talk(10, tokens=100), *tool_turn(21, 4, 700)]
    span = plan(items, sizes(), SETTINGS, trigger=Trigger.THRESHOLD)
    assert span.through_seq == 20


def test_an_open_turn_is_never_included() -> None:
    items = talk(20)
    items[20] = Item(seq=21, role="user", text="x", tokens=100, open=True)
    span = plan(items, sizes(window=4096), SETTINGS, trigger=Trigger.THRESHOLD)
    assert span.through_seq <= 20


def test_through_seq_moves_back_to_the_nearest_cut() -> None:
    items = talk(30)
    span = plan(items, sizes(), SETTINGS, trigger=Trigger.MANUAL, through_seq=21)
    assert span.through_seq == 20
    whole = plan(items, sizes(), SETTINGS, trigger=Trigger.MANUAL, through_seq=10_000)
    assert whole.through_seq == 58
    with pytest.raises(NothingToCompress):
        plan(items, sizes(), SETTINGS, trigger=Trigger.MANUAL, through_seq=1)


def test_pins_of_the_span_are_counted_as_staying() -> None:
    items = talk(20, pinned=True)
    with pytest.raises(NothingToCompress):
        plan(items, sizes(), SETTINGS, trigger=Trigger.THRESHOLD)


def test_pins_of_the_span_take_room_from_the_tail() -> None:
    """They are quoted again, so a run that lands keeps less verbatim, and is not refused.

    Breaks when: ``cut_within`` looks at the tail alone.
    """
    figures = sizes(fixed=500, calibration=1.0)
    items = talk(27)
    items[1] = replace(items[1], tokens=600, pinned=True)
    span = plan(items, figures, SETTINGS, trigger=Trigger.THRESHOLD)
    standing = figures.fixed + 600 + cap_tokens(figures, SETTINGS)
    tail = sum(item.tokens for item in items[len(span.items) :])
    assert figures.share(standing + tail) <= SETTINGS.landing
    assert figures.share(standing + tail + 200) > SETTINGS.landing


@pytest.mark.parametrize(("tail", "landing"), [(0.20, 0.45), (0.30, 0.45), (0.45, 0.60)])
def test_the_settings_say_how_much_stays_verbatim(tail: float, landing: float) -> None:
    """Breaks when: another tail or landing than that of the settings is used."""
    figures = sizes(fixed=0, calibration=1.0)
    settings = PlannerSettings(tail_share=tail, landing_share=landing)
    items = talk(60, tokens=40)
    span = plan(items, figures, settings, trigger=Trigger.THRESHOLD)
    left = figures.share(sum(item.tokens for item in items[len(span.items) :]))
    assert tail - figures.share(80) < left <= tail


def test_an_automatic_run_must_reach_the_landing() -> None:
    """Breaks when: ``_check_worth`` does not ask where an automatic run lands."""
    items = talk(27)
    assert plan(items, sizes(), SETTINGS, trigger=Trigger.MANUAL, through_seq=20).through_seq == 20
    with pytest.raises(NothingToCompress, match="too large"):
        plan(items, sizes(), SETTINGS, trigger=Trigger.THRESHOLD, through_seq=20)


def test_worth_applying_needs_a_tenth() -> None:
    figures = sizes(calibration=1.0)
    tenth = figures.budget // 10 + 1
    assert worth_applying(tenth, 0, figures)
    assert not worth_applying(tenth, 10, figures)


def test_cap_is_the_smaller_of_setting_and_tenth() -> None:
    assert cap_tokens(sizes(window=1_000_000), SETTINGS) == 1500
    assert cap_tokens(sizes(window=4096, calibration=1.0), SETTINGS) == 307


def test_usage_counts_every_part() -> None:
    figures = sizes(summary=10, pinned=20, calibration=1.5)
    counted = usage(talk(1, tokens=11), figures)
    assert (counted.fixed, counted.summary, counted.pinned, counted.tail) == (300, 15, 30, 33)
    assert counted.total == 378


def test_a_hundred_thousand_messages_take_linear_time() -> None:
    """Breaks when: a cut is found by adding the tokens up anew for each turn."""
    items = talk(50_000, tokens=20)

    def planned(turns: int) -> None:
        figures = sizes(window=40 * turns)
        assert plan(items[: 2 * turns], figures, SETTINGS, trigger=Trigger.THRESHOLD).items

    assert growth(planned, 5_000, 10) < 40


@st.composite
def conversations(draw: st.DrawFn) -> list[Item]:
    items: list[Item] = []
    for _ in range(draw(st.integers(0, 12))):
        turn = tool_turn(len(items) + 1, draw(st.integers(0, 3)), draw(st.integers(1, 1500)))
        items.extend(turn)
    if draw(st.booleans()) and items:
        items.append(Item(seq=len(items) + 1, role="user", text="new", tokens=50, open=True))
    return items


@given(conversations(), st.sampled_from(list(Trigger)), st.none() | st.integers(0, 60))
def test_i15_a_cut_never_splits_a_turn(
    items: list[Item], trigger: Trigger, through: int | None
) -> None:
    """I15: the tail begins at a user turn and holds every call of its results; I8: nothing lost.

    Breaks when: ``_Outline.of`` takes a cut before an item of another role than ``user``.
    """
    try:
        span = plan(items, sizes(), SETTINGS, trigger=trigger, through_seq=through)
    except NothingToCompress:
        return
    tail = items[len(span.items) :]
    assert (*span.items, *tail) == tuple(items)
    assert tail[0].role == "user"
    assert not any(item.open for item in span.items)
    assert span.through_seq == span.items[-1].seq < tail[0].seq
    called = {call["id"] for item in tail for call in item.tool_calls}
    assert {item.tool_call_id for item in tail if item.role == "tool"} <= called
    if through is not None:
        assert span.through_seq <= through
