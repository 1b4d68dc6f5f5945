"""What a model wrote as arguments, and what goes back to it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compression.tools.arguments import (
    INVALID,
    InvalidArguments,
    as_json,
    as_object,
    read,
    wire_call,
)

BAD = {
    "empty": "",
    "cut": '{"city": "Mal',
    "null": "null",
    "a list": "[1]",
    "a text": '"Malmö"',
    "two": "{}{}",
    "not a number": '{"x": NaN}',
    "deep": "[" * 100_000,
    "a huge number": '{"x": ' + "9" * 5000 + "}",
    "NUL": "\0",
}


def test_it_works() -> None:
    text = '{"city":  "Malmö"}'
    assert read(text) == {"city": "Malmö"}
    assert as_json(text) is text, "not a byte is changed, so that a request stays the same"


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_l17_what_is_no_object_goes_back_as_one(bad: str) -> None:
    """Breaks when: a server is sent arguments that it cannot read."""
    with pytest.raises(InvalidArguments, match="The arguments are "):
        read(bad)
    sent = as_json(bad)
    assert json.loads(sent) == as_object(bad)
    assert list(as_object(bad)) == [INVALID]
    assert as_json(sent) == sent


def test_half_a_pair_is_not_sent_back() -> None:
    """Breaks when: what Python reads is taken for what every server reads."""
    assert json.loads(as_json('{"a": "\\ud800x"}')) == {"a": "\ufffdx"}
    whole = '{"a": "\\ud83d\\ude00"}'
    assert as_json(whole) == whole


@given(st.text())
def test_whatever_was_written_an_object_is_sent(text: str) -> None:
    value: Any = json.loads(as_json(text))
    assert isinstance(value, dict)
    assert value == as_object(text)
    json.dumps(value, allow_nan=False).encode("ascii")


def test_a_call_keeps_the_fields_of_its_server() -> None:
    """Breaks when: a call is sent as the fields that we know."""
    call = {
        "id": "a",
        "type": "function",
        "function": {"name": "f", "arguments": "{", "strict": True},
        "extra_content": {"signature": "x"},
    }
    sent = wire_call(call)
    assert json.loads(sent["function"].pop("arguments")) == {INVALID: "{"}
    assert sent == {**call, "function": {"name": "f", "strict": True}}
    assert wire_call({"id": "odd"}) == {"id": "odd"}
