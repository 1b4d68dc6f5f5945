"""The policy: which rung comes first."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from compression.planning.planner import PlannerSettings
from compression.planning.policy import PolicySettings, PolicyState, breaker_open, decide
from compression.types import ContextAction as Action
from compression.types import Usage

SETTINGS = PolicySettings()


def at(share: float) -> Usage:
    return Usage(budget=1000, fixed=0, summary=0, pinned=0, tail=round(share * 1000))


def action(share: float, settings: PolicySettings = SETTINGS, **state: Any) -> Action:
    return decide(at(share), settings, PolicyState(**state)).action


@pytest.mark.parametrize(
    ("share", "state", "expected"),
    [
        (0.10, {}, Action.CONTINUE),
        (0.64, {"compressible": True, "maskable": 0.3}, Action.CONTINUE),
        (0.65, {"compressible": True}, Action.PREPARE),
        (0.65, {"compressible": True, "maskable": 0.06}, Action.MASK),
        (0.70, {"compressible": True, "ready": True, "ready_frees": 0.3}, Action.CONTINUE),
        (0.70, {"compressible": True, "ready": True, "ready_frees": 0.05}, Action.PREPARE),
        (0.70, {"compressible": True, "breaker_open": True}, Action.CONTINUE),
        (0.70, {"compressible": True, "undone": True}, Action.CONTINUE),
        (0.70, {}, Action.CONTINUE),
        (0.10, {"due": True}, Action.PREPARE),
        (0.10, {"due": True, "ready": True, "ready_frees": 0.3}, Action.CONTINUE),
        (0.10, {"due": True, "breaker_open": True}, Action.CONTINUE),
        (0.10, {"due": True, "undone": True}, Action.CONTINUE),
        (0.70, {"due": True}, Action.PREPARE),
        (0.80, {"due": True}, Action.CONTINUE),
        (0.80, {"compressible": True}, Action.COMPRESS),
        (0.80, {"ready": True, "ready_frees": 0.3, "maskable": 0.5}, Action.COMPRESS),
        (0.80, {"ready": True, "ready_frees": 0.3, "breaker_open": True}, Action.COMPRESS),
        (0.80, {"compressible": True, "maskable": 0.3}, Action.MASK),
        (0.95, {"compressible": True, "maskable": 0.06}, Action.COMPRESS),
        (0.95, {"maskable": 0.06}, Action.MASK),
        (0.80, {"compressible": True, "breaker_open": True, "truncatable": True}, Action.TRUNCATE),
        (0.80, {"compressible": True, "breaker_open": True, "extractable": True}, Action.COMPRESS),
        (0.70, {"compressible": True, "breaker_open": True, "extractable": True}, Action.CONTINUE),
        (0.80, {"breaker_open": True, "extractable": True, "truncatable": True}, Action.TRUNCATE),
        (0.80, {"truncatable": True}, Action.TRUNCATE),
        (0.80, {}, Action.CONTINUE),
        (0.85, {"compressible": True, "undone": True}, Action.CONTINUE),
        (0.95, {"compressible": True, "undone": True}, Action.COMPRESS),
        (0.92, {"in_tool_loop": True}, Action.WIND_DOWN),
        (0.92, {"in_tool_loop": True, "wound_down": True}, Action.CONTINUE),
        (0.92, {"in_tool_loop": True, "compressible": True}, Action.COMPRESS),
        (1.20, {}, Action.BLOCK),
        (1.20, {"in_tool_loop": True}, Action.BLOCK),
        (1.20, {"truncatable": True}, Action.TRUNCATE),
        (1.20, {"maskable": 0.3}, Action.MASK),
        (1.20, {"compressible": True}, Action.COMPRESS),
    ],
)
def test_the_table(share: float, state: dict[str, Any], expected: Action) -> None:
    assert action(share, **state) is expected


def test_off_leaves_the_conversation_alone_until_it_overflows() -> None:
    off = PolicySettings(off=True)
    everything = {"compressible": True, "maskable": 0.3, "truncatable": True, "ready": True}
    assert action(0.99, off, **everything) is Action.CONTINUE
    assert action(1.01, off, **everything) is Action.TRUNCATE
    assert action(1.01, off, compressible=True) is Action.BLOCK
    assert action(0.95, off, in_tool_loop=True) is Action.WIND_DOWN


@pytest.mark.parametrize(
    ("state", "cause"),
    [
        ({"breaker_open": True}, "Summarising failed too often, "),
        ({"failed": True}, "No summary could be had, "),
        ({}, "What must stay is too large for a summary to help, "),
    ],
)
def test_what_leaves_turns_out_names_the_cause(state: dict[str, Any], cause: str) -> None:
    for share, settings in ((0.85, SETTINGS), (1.2, SETTINGS), (1.2, PolicySettings(off=True))):
        decision = decide(at(share), settings, PolicyState(truncatable=True, **state))
        assert decision.action is Action.TRUNCATE
        expected = "Automatic compression is off, " if settings.off else cause
        assert decision.reason.startswith(expected)


def test_thresholds_are_clamped() -> None:
    assert PolicySettings(threshold=0.1).threshold == 0.5
    assert PolicySettings(threshold=2).threshold == 0.95


@pytest.mark.parametrize(
    ("threshold", "soft", "landing"),
    [(0.5, 0.4, 0.3), (0.6, 0.5, 0.4), (0.7, 0.6, 0.45), (0.8, 0.65, 0.45), (0.95, 0.65, 0.45)],
)
def test_where_preparing_begins_and_where_a_compression_lands(
    threshold: float, soft: float, landing: float
) -> None:
    """Breaks when: soft is not min(0.65, threshold - 0.1), or landing not min(0.45, it - 0.2)."""
    assert PolicySettings(threshold=threshold).soft == pytest.approx(soft)
    assert PlannerSettings(threshold=threshold).landing == pytest.approx(landing)


def test_every_state_gets_an_answer_that_can_be_done() -> None:
    """All combinations: nothing that is not possible is asked for, and what overflows never goes.

    Breaks when: ``decide`` answers ``continue`` or ``prepare`` above 1.0.
    """
    switches = ("ready", "breaker_open", "extractable", "undone", "in_tool_loop", "wound_down")
    for flags in itertools.product((False, True), repeat=8):
        state = dict(zip((*switches, "compressible", "truncatable"), flags, strict=True))
        for share, maskable, threshold in itertools.product(
            (0.3, 0.66, 0.75, 0.85, 0.91, 0.97, 1.5), (0.0, 0.1), (0.5, 0.8, 0.95)
        ):
            settings = PolicySettings(threshold=threshold)
            answer = action(share, settings, maskable=maskable, **state)
            if share > 1:
                assert answer not in (Action.CONTINUE, Action.PREPARE, Action.WIND_DOWN)
            if answer is Action.MASK:
                assert maskable
            if answer in (Action.COMPRESS, Action.PREPARE):
                assert state["compressible"] or state["ready"]
                rests = state["breaker_open"] and not state["extractable"]
                assert not rests or state["ready"]
            if answer is Action.TRUNCATE:
                assert state["truncatable"]
            if answer is Action.WIND_DOWN:
                assert state["in_tool_loop"]
                assert not state["wound_down"]
                assert share >= 0.9
            if answer is Action.BLOCK:
                assert share > 1


@pytest.mark.parametrize(
    ("fruitless", "failures", "grown", "expected"),
    [
        (0, 0, 0.0, False),
        (1, 2, 0.0, False),
        (2, 0, 0.0, True),
        (0, 3, 0.24, True),
        (0, 3, 0.25, False),
        (9, 9, 1.0, False),
    ],
)
def test_the_breaker(fruitless: int, failures: int, grown: float, expected: bool) -> None:
    assert breaker_open(fruitless, failures, grown) is expected
