"""The bounds of one reply, each at its last step and one beyond."""

from __future__ import annotations

import pytest

from chatapp.llm.errors import MalformedReply, ReplyTooLong
from chatapp.llm.openai_compatible.bounds import (
    BYTES_PER_CHARACTER,
    EMPTY_BYTES,
    EMPTY_PIECES,
    PIECES_PER_CHARACTER,
    Bounds,
)


def bounds() -> Bounds:
    return Bounds(max_characters=10, max_event_bytes=2048)


def test_what_is_said_is_counted_up_to_the_limit() -> None:
    """Breaks when: the characters over the limit are counted as said."""
    one = bounds()
    one.add_characters(4)
    assert (one.characters, one.characters_left) == (4, 6)
    one.add_characters(6)
    with pytest.raises(ReplyTooLong):
        one.add_characters(1)
    assert (one.characters, one.characters_left) == (10, 0)


@pytest.mark.parametrize("said", [0, 3])
def test_n06_i26_what_is_said_makes_room_for_bytes(said: int) -> None:
    """N06, I26. Breaks when: the room for bytes does not grow with what is said."""
    one = bounds()
    one.add_bytes(EMPTY_BYTES)
    one.add_characters(said)
    one.add_bytes(said * BYTES_PER_CHARACTER)
    with pytest.raises(MalformedReply):
        one.add_bytes(1)


@pytest.mark.parametrize("said", [0, 3])
def test_n06_i26_what_is_said_makes_room_for_pieces(said: int) -> None:
    """N06, I26. Breaks when: the room for pieces does not grow with what is said."""
    one = bounds()
    for _ in range(EMPTY_PIECES):
        one.add_piece()
    one.add_characters(said)
    for _ in range(said * PIECES_PER_CHARACTER):
        one.add_piece()
    with pytest.raises(MalformedReply):
        one.add_piece()


def test_i26_a_single_event_is_bounded() -> None:
    """I26. Breaks when: an event of any size is kept."""
    one = bounds()
    one.check_event(2048)
    with pytest.raises(MalformedReply, match="2 KiB"):
        one.check_event(2049)
