"""Stored audits, which an imported file may have given any shape."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compression.judging.stored_audit import extracted_parts

ONE = {"first_seq": 1, "through_seq": 8, "part": 1, "parts": 2, "reason": "It was empty."}


def test_it_works() -> None:
    (found,) = extracted_parts([ONE])
    assert str(found) == "part 1 of 2 (messages 1–8) by extract: it was empty"


@pytest.mark.parametrize(
    "value", [None, {}, {"part": 1}, "part", 7, [1], [[]], [{}], [{**ONE, "part": "x"}]]
)
def test_what_is_no_part_is_passed_over(value: Any) -> None:
    assert extracted_parts(value) == ()


@given(st.lists(st.dictionaries(st.sampled_from([*ONE]), st.none() | st.integers() | st.text())))
def test_every_shape_can_be_read(value: Any) -> None:
    """Breaks when: what is stored is taken to have been written by this program."""
    for part in extracted_parts(value):
        assert "by extract" in str(part)
