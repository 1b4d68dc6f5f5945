"""What a viewer knows to be missing, by numbers and offsets alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatapp.live.bus import Published
from chatapp.live.view_models import CompressionView, TurnView
from chatapp.live.viewer import ON_ITS_WAY, Viewer

NOW = 1000.0
TURN = TurnView(
    turn=1, status="streaming", event_no=5, model="m", message_seq=1, reply_seq=2, seq=2
)


def event(type_: str, event_no: int, **json: Any) -> Published:
    return Published(type=type_, event_no=event_no, json=json, html="")


def piece(offset: int, text: str, *, seq: int = 2, reasoning: str = "") -> dict[str, Any]:
    return {
        "seq": seq,
        "offset": offset,
        "text": text,
        "reasoning_offset": 0,
        "reasoning": reasoning,
    }


def viewer_of(event_no: int = 5, turn: TurnView | None = None, **compression: Any) -> Viewer:
    """One that was shown a ``state``."""
    viewer = Viewer(seen=0)
    now_is = CompressionView(**compression)
    viewer.shown(event_no, turn=turn, compression=now_is, tell_by=NOW)
    return viewer


def answering() -> Viewer:
    """One that was told of a turn as it began."""
    viewer = viewer_of(3)
    viewer.note(event("message-added", 4, message={"seq": 1}))
    viewer.note(event("message-added", 5, message={"seq": 2}))
    viewer.note(event("turn-started", 5, reply_seq=2))
    return viewer


def test_it_works() -> None:
    viewer = answering()
    assert viewer.open
    assert viewer.agrees(5, running=False, opened=True)
    assert viewer.goes_on_with(piece(0, "Well, "), NOW)
    assert viewer.goes_on_with(piece(6, "yes."), NOW)
    assert not viewer.stands_still(10, NOW + 60)
    viewer.note(event("turn-finished", 6))
    assert viewer.agrees(6, running=False, opened=False)


def test_i4_a_number_that_was_left_out_is_missed() -> None:
    """I4. Several events share a number; what a state brought is not told again.

    Breaks when: a gap in the numbers passes for nothing, or each number counts as one event.
    """
    viewer = viewer_of(5)
    assert viewer.has(5)
    assert viewer.only_by_state
    assert not viewer.has(6)
    assert not viewer.misses_before(6)
    assert viewer.misses_before(7)
    viewer.note(event("title-changed", 6))
    assert not viewer.has(6)
    assert not viewer.misses_before(6)
    assert not viewer.only_by_state
    assert viewer.after == 5
    assert viewer_of(0).after == 0


@given(st.data())
def test_i4_a_state_brings_whatever_single_event_was_lost(data: st.DataObject) -> None:
    """I4. Breaks when: over a lossy bus a number of which one event came counts as told."""
    numbers = sorted(data.draw(st.lists(st.integers(6, 12), min_size=1, max_size=12)))
    lost = data.draw(st.integers(0, len(numbers) - 1))
    viewer = Viewer(seen=5, lossy=True)
    assert viewer.after == 4
    viewer.shown(5, turn=None, compression=CompressionView(), tell_by=NOW)
    for place, number in enumerate(numbers):
        if place != lost:
            viewer.note(event("message-changed", number))
    assert viewer.after < numbers[lost]
    viewer.shown(12, turn=None, compression=CompressionView(), tell_by=NOW)
    assert (viewer.after, viewer.only_by_state) == (12, True)


@pytest.mark.parametrize(("lossy", "after"), [(True, 5), (False, 8)])
def test_i4_who_comes_back_says_which_state_it_had_last(lossy: bool, after: int) -> None:
    """I4. Breaks when: an event that was lost just before a socket ended is never told."""
    assert Viewer(seen=9, state_no=5, lossy=lossy).after == after
    assert Viewer(seen=9, state_no=10**17, lossy=lossy).after <= 9
    assert Viewer(seen=9, lossy=lossy).after == 8


def test_i4_there_is_nothing_to_add_to_where_the_empty_reply_was_lost() -> None:
    """I4. Breaks when: a reply begins although its message was never told."""
    viewer = viewer_of(3)
    viewer.note(event("message-added", 4, message={"seq": 1}))
    viewer.note(event("turn-started", 5, reply_seq=2))
    assert viewer.open
    assert viewer.misses_text(piece(0, "Well"))
    assert not viewer.goes_on_with(piece(0, "Well"), NOW)


@given(st.lists(st.tuples(st.integers(0, 19), st.integers(1, 5)), max_size=60))
def test_i4_whatever_is_lost_or_comes_twice_the_text_is_told_in_one_piece(
    pieces: list[tuple[int, int]],
) -> None:
    """I4: of pieces in any order, those are taken that continue exactly.

    Breaks when: a piece that was told before, or one behind a gap, is passed on.
    """
    whole = "abcdefghijklmnopqrstuvwxyz"
    viewer, told = answering(), ""
    for offset, length in pieces:
        delta = piece(offset, whole[offset : offset + length])
        assert viewer.misses_text(delta) == (offset > len(told))
        if viewer.goes_on_with(delta, NOW):
            told += delta["text"]
    assert whole.startswith(told)


def test_a_piece_of_another_reply_is_not_taken() -> None:
    viewer = answering()
    assert viewer.misses_text(piece(0, "x", seq=3))
    assert not viewer.goes_on_with(piece(0, "x", seq=3), NOW)


def test_i4_a_reply_that_goes_on_without_the_viewer_is_noticed_after_a_moment() -> None:
    """I4. Breaks when: text that is on its way is taken for lost, or lost text is not."""
    viewer = answering()
    assert viewer.goes_on_with(piece(0, "four"), NOW)
    assert not viewer.stands_still(9, NOW + ON_ITS_WAY)
    assert viewer.stands_still(9, NOW + ON_ITS_WAY + 0.1)
    assert not viewer.stands_still(4, NOW + 60)
    assert viewer.goes_on_with(piece(4, "", reasoning="think"), NOW)
    assert not viewer.stands_still(9, NOW + 60)


def test_i7_a_state_takes_no_word_back() -> None:
    """I7. Breaks when: a database that is behind its own events shortens a reply."""
    viewer = answering()
    assert viewer.goes_on_with(piece(0, "One two ", reasoning="Hm"), NOW)
    read = replace(TURN, text="One ", reasoning="")
    shown = viewer.at_least(read)
    assert shown is not None
    assert (shown.text, shown.reasoning) == ("One two ", "Hm")
    assert viewer.at_least(replace(TURN, text="One two three")).text == "One two three"  # type: ignore[union-attr]
    assert viewer.at_least(None) is None


def test_a_state_goes_on_from_its_text() -> None:
    viewer = viewer_of(5, replace(TURN, text="One "))
    assert viewer.open
    assert not viewer.goes_on_with(piece(0, "One "), NOW)
    assert viewer.goes_on_with(piece(4, "two"), NOW)


def test_runs_are_followed() -> None:
    viewer = viewer_of(5)
    viewer.note(event("compression-started", 6, trigger="manual", at="2026-01-01T00:00:00+00:00"))
    assert viewer.agrees(6, running=True, opened=False)
    ended = {"running": False, "version": 1}
    viewer.note(event("compression-completed", 7, compression=ended))
    assert viewer.agrees(7, running=False, opened=False)


def test_a_run_that_a_state_shows_to_be_over_is_owed_its_end() -> None:
    viewer = viewer_of(5, running=True, trigger="manual", version=1)
    assert viewer.agrees(5, running=True, opened=False)
    viewer.shown(6, turn=None, compression=CompressionView(version=1), tell_by=NOW + 1)
    owed = viewer.compressions.owed
    assert owed is not None
    assert (owed.trigger, viewer.compressions.owed_at) == ("manual", NOW + 1)


@pytest.mark.parametrize("stored", [(6, False, False), (5, True, False), (5, False, True)])
def test_any_difference_to_what_is_stored_is_one(stored: tuple[int, bool, bool]) -> None:
    """Breaks when: number, run or turn is not compared."""
    event_no, running, opened = stored
    assert not viewer_of(5).agrees(event_no, running=running, opened=opened)


def test_who_saw_a_later_state_than_there_is_starts_over() -> None:
    viewer = viewer_of(5, replace(TURN, text="One two "))
    viewer.start_over()
    assert (viewer.seen, viewer.after) == (0, 0)
    assert viewer.at_least(replace(TURN, text="One ")) == replace(TURN, text="One ")


def test_the_reply_of_the_next_round_begins_anew() -> None:
    """Breaks when: text of a turn's second reply is taken for text that was lost."""
    viewer = answering()
    assert viewer.goes_on_with(piece(0, "I will look."), NOW)
    viewer.note(event("message-changed", 6, message={"seq": 2}))
    viewer.note(event("tool-started", 6))
    viewer.note(event("message-added", 7, message={"seq": 3, "status": "complete"}))
    viewer.note(event("message-added", 8, message={"seq": 4, "status": "streaming"}))
    assert not viewer.stands_still(0, NOW + 60)
    assert viewer.misses_text(piece(5, "late", seq=4))
    assert viewer.goes_on_with(piece(0, "It is sunny.", seq=4), NOW)
    assert not viewer.goes_on_with(piece(12, "more", seq=2), NOW)
