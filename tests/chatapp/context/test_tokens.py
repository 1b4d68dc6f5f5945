from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from chatapp.context.tokens import MESSAGE_OVERHEAD, message_tokens
from compression.tokens import CharacterCounter

COUNTER = CharacterCounter()
CALL = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"é": 1}'}}


def test_it_works() -> None:
    assert message_tokens(COUNTER, "") == MESSAGE_OVERHEAD
    assert message_tokens(COUNTER, "Hello") == COUNTER.count("Hello") + MESSAGE_OVERHEAD


@given(st.text(max_size=200))
def test_a_message_costs_its_text_and_the_overhead(text: str) -> None:
    assert message_tokens(COUNTER, text) == COUNTER.count(text) + MESSAGE_OVERHEAD


def test_tool_calls_are_counted_as_they_are_sent() -> None:
    calls = json.dumps([CALL], ensure_ascii=False)
    assert message_tokens(COUNTER, "so", [CALL]) == (
        COUNTER.count("so") + COUNTER.count(calls) + MESSAGE_OVERHEAD
    )
    assert message_tokens(COUNTER, "so", [CALL, CALL]) > message_tokens(COUNTER, "so", [CALL])
