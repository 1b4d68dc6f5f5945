"""Pieces of text and reasoning, joined, cleaned and cut at the bound."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatapp.llm.client import ReasoningChunk, TextChunk
from chatapp.llm.errors import ReplyTooLong
from chatapp.llm.openai_compatible.bounds import Bounds
from chatapp.llm.openai_compatible.chunks import ChunkBuffer


def buffer(max_characters: int = 1000) -> ChunkBuffer:
    return ChunkBuffer(Bounds(max_characters=max_characters, max_event_bytes=1000))


@given(st.lists(st.tuples(st.booleans(), st.text(max_size=3)), max_size=30))
def test_neighbours_of_one_kind_come_as_one_in_order(pieces: list[tuple[bool, str]]) -> None:
    """Breaks when: a piece is lost, or text and reasoning change places."""
    chunks = buffer()
    for is_text, piece in pieces:
        (chunks.add_text if is_text else chunks.add_reasoning)(piece)
    drained = chunks.drain()
    kinds = [type(one) for one in drained]
    assert all(kind is not following for kind, following in pairwise(kinds))
    told = [(isinstance(one, TextChunk), letter) for one in drained for letter in one.text]
    assert told == [
        (is_text, "\ufffd" if letter == "\0" else letter)
        for is_text, piece in pieces
        for letter in piece
    ]
    assert chunks.drain() == []


def test_l12_it_is_cut_at_the_bound_and_kept_until_there() -> None:
    """L12. Breaks when: the piece that is too long is dropped as a whole."""
    chunks = buffer(max_characters=5)
    chunks.add_text("abc")
    with pytest.raises(ReplyTooLong):
        chunks.add_text("defgh")
    assert chunks.drain() == [TextChunk(text="abcde")]


def test_l07_a_half_of_a_pair_waits_for_the_other() -> None:
    """L07. Breaks when: text and reasoning share one held half, or one left over is forgotten."""
    chunks = buffer()
    chunks.add_text("\ud83d")
    chunks.add_reasoning("\ud83d")
    assert chunks.drain() == []
    chunks.add_text("\ude00")
    assert chunks.drain() == [TextChunk(text="\U0001f600")]
    assert list(chunks.rest()) == [ReasoningChunk(text="\ufffd")]
    assert list(chunks.rest()) == []


@pytest.mark.parametrize("value", [None, 7, ["a"], {"text": "a"}, ""])
def test_what_is_no_text_is_none(value: object) -> None:
    chunks = buffer()
    chunks.add_text(value)
    chunks.add_reasoning(value)
    assert chunks.drain() == []
