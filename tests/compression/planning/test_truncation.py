"""Leaving turns out, and shortening a giant one."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from compression.planning.planner import usage
from compression.planning.truncation import shorten_giant, truncate
from compression.types import Item, Sizes

SIZES = Sizes(window=4096, reserve=1024, fixed=100)


def talk(turns: int, tokens: int) -> list[Item]:
    return [
        Item(seq=n + 1, role="assistant" if n % 2 else "user", text="x", tokens=tokens)
        for n in range(turns * 2)
    ]


def test_it_works() -> None:
    items = talk(14, 100)
    through = truncate(items, SIZES, truncated_through=0)
    sent = [item for item in items if item.seq > through]
    assert sent[0].role == "user"
    assert usage(sent, SIZES).share <= 0.45
    assert truncate(items, SIZES, truncated_through=through, target=0.45) > through


def test_a_small_target_still_moves_by_a_whole_step() -> None:
    items = talk(14, 100)
    through = truncate(items, SIZES, truncated_through=0, target=0.99)
    assert SIZES.share(sum(item.tokens for item in items if item.seq <= through)) >= 0.20


def test_less_than_a_step_goes_only_when_the_request_does_not_fit() -> None:
    """Breaks when: every turn at the threshold may move the request's beginning."""

    def last_turn_of(tokens: int) -> list[Item]:
        return [*talk(2, 100), Item(seq=5, role="user", text="x", tokens=tokens)]

    assert 0.8 < usage(last_turn_of(2000), SIZES).share < 1.0
    assert truncate(last_turn_of(2000), SIZES, truncated_through=0) == 0
    assert usage(last_turn_of(2300), SIZES).share > 1.0
    assert truncate(last_turn_of(2300), SIZES, truncated_through=0) == 4


def test_reasoning_that_is_sent_counts() -> None:
    """Breaks when: turns full of reasoning take no room."""
    items = [replace(one, reasoning=400) for one in talk(4, 20)]
    assert truncate(talk(4, 20), SIZES, truncated_through=0) == 0
    assert usage(items, SIZES).share > 1.0
    assert truncate(items, SIZES, truncated_through=0) > 0
    assert shorten_giant(items, SIZES) is None


def test_nothing_can_go_from_a_single_turn() -> None:
    assert truncate(talk(1, 5000), SIZES, truncated_through=0) == 0
    assert truncate(talk(3, 5000), SIZES, truncated_through=4) == 4
    assert truncate([], SIZES, truncated_through=7) == 7


@given(st.lists(st.integers(1, 900), max_size=30), st.integers(0, 30), st.booleans())
def test_i15_whole_turns_go_and_the_last_stays(
    tokens: list[int], old: int, last_open: bool
) -> None:
    """I15: what is sent begins at a user turn, and the last turn is in it.

    Breaks when: ``truncate`` moves past a message that does not end a turn.
    """
    items = [
        Item(
            seq=n + 1,
            role="assistant" if n % 3 else "user",
            text="x",
            tokens=count,
            open=last_open and n >= (len(tokens) - 1) // 3 * 3,
        )
        for n, count in enumerate(tokens)
    ]
    old -= old % 3
    through = truncate(items, SIZES, truncated_through=old)
    assert through >= old
    sent = [item for item in items if item.seq > through]
    if through > old:
        assert sent
        assert sent[0].role == "user"
    assert all(item.seq > through for item in items if item.open and item.seq > old)


def test_a_giant_turn_is_cut_to_head_and_tail() -> None:
    items = [
        Item(seq=1, role="user", text="look", tokens=5),
        Item(seq=2, role="tool", text="a" * 3000 + "END", tokens=1010, tool_call_id="1"),
        Item(seq=3, role="tool", text="b" * 9000, tokens=3010, tool_call_id="2"),
    ]
    shortened = shorten_giant(items, SIZES)
    assert shortened is not None
    assert usage(shortened, SIZES).share <= 1.0
    assert shortened[0] == items[0]
    assert "left out" in shortened[1].text
    assert shortened[1].text.endswith("END")


def test_what_fits_is_not_touched() -> None:
    items = talk(2, 10)
    assert shorten_giant(items, SIZES) == tuple(items)


def test_c14_a_giant_question_is_not_cut() -> None:
    question = Item(seq=1, role="user", text="a" * 30_000, tokens=10_000)
    assert shorten_giant([question], SIZES) is None
