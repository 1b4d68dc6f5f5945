"""What a model gets back of its own messages besides their text."""

from __future__ import annotations

from typing import Any

import pytest

from chatapp.context.request import StoredMessage
from chatapp.context.sent_back import SentBack, items_of
from chatapp.context.wire import wire_of
from compression.planning.planner import usage
from compression.types import Sizes
from tests.chatapp.context.test_request import call, message


def thinking(seq: int, text: str = "so", **more: Any) -> StoredMessage:
    given = {
        "turn": 1,
        "model": "m",
        "reasoning": f"thought {seq}",
        "reasoning_field": "reasoning_content",
        "reasoning_tokens": 7,
    }
    return message(seq, "assistant", text, **{**given, **more})


def turn(**more: Any) -> list[StoredMessage]:
    """Two turns: one with a tool, and one without."""
    return [
        message(1, "user", turn=1),
        thinking(2, "", tool_calls=(call("a"),), **more),
        message(3, "tool", "found " * 50, tool_call_id="a", tool_name="look", turn=1),
        thinking(4, **more),
        message(5, "user", turn=2),
        thinking(6, turn=2, **more),
    ]


def thoughts(tail: list[StoredMessage], back: SentBack) -> list[str]:
    return [
        one.message["reasoning_content"]
        for one in wire_of(tail, back)
        if "reasoning_content" in one.message
    ]


@pytest.mark.parametrize(
    ("mode", "sent"),
    [
        ("never", []),
        ("tool_turns", ["thought 2", "thought 4"]),
        ("always", ["thought 2", "thought 4", "thought 6"]),
    ],
)
def test_as_the_model_wants_it(mode: str, sent: list[str]) -> None:
    """And counted where it is sent.

    Breaks when: the mode is not asked, or the tokens of reasoning are left out.
    """
    back = SentBack(model="m", reasoning=mode)
    assert thoughts(turn(), back) == sent
    without = sum(one.tokens for one in wire_of(turn()))
    assert sum(one.tokens for one in wire_of(turn(), back)) == without + 7 * len(sent)


def test_what_another_model_thought_is_not_sent() -> None:
    assert thoughts(turn(), SentBack(model="other", reasoning="always")) == []


def test_reasoning_of_no_name_is_not_sent() -> None:
    """It came as text parts or details, which are not kept in their form."""
    assert thoughts(turn(reasoning_field=""), SentBack(model="m", reasoning="always")) == []


def test_a_mask_drops_what_was_thought_before_it() -> None:
    """Breaks when: reasoning about a result is sent without the result."""
    tail = turn()
    tail[2] = message(3, "tool", "found " * 50, tool_call_id="a", tool_name="look", masked=True)
    assert thoughts(tail, SentBack(model="m", reasoning="always")) == ["thought 4", "thought 6"]


def test_fields_of_the_server_go_to_the_model_that_wrote_them() -> None:
    signed = {**call("a"), "extra_content": {"signature": "x"}}
    tail = [message(1, "user"), thinking(2, "", tool_calls=(signed,))]
    mine, others = (
        wire_of(tail, SentBack(model=name))[1].message["tool_calls"][0] for name in ("m", "other")
    )
    assert mine == signed
    assert others == call("a")


@pytest.mark.parametrize("mode", ["never", "tool_turns", "always"])
@pytest.mark.parametrize("masked", [False, True])
def test_what_goes_back_counts_wherever_room_is_made(mode: str, masked: bool) -> None:
    """The request, and what plans, truncates and masks, agree on its size.

    Breaks when: reasoning counts in the request and not in its messages as compression sees them.
    """
    tail = turn()
    if masked:
        tail[2] = message(3, "tool", "found " * 50, tool_call_id="a", masked=True)
    back = SentBack(model="m", reasoning=mode)
    items = items_of(tail, back)
    assert sum(one.sent_tokens for one in items) == sum(one.tokens for one in wire_of(tail, back))
    assert [one.tokens for one in items] == [one.token_count for one in tail]
    assert usage(items, Sizes(window=1000, reserve=0, calibration=1.0)).tail == sum(
        one.sent_tokens for one in items
    )
