"""What stands for a masked tool result, and which are masked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compression.planning.masking import maskable, maskable_share, placeholder
from compression.types import Item, Sizes

SIZES = Sizes(window=8192, reserve=2048)


def result(text: str, *, seq: int = 1, name: str = "shell") -> Item:
    return Item(
        seq=seq, role="tool", text=text, tokens=len(text) // 3 + 8, tool_call_id="c", tool_name=name
    )


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (result("ok\n" * 213, name="read"), "[read result masked: 214 lines, starts with: ok]"),
        (result('{"exit": 0}' + "x" * 1193), "[shell result masked: exit code 0, 1,204 bytes]"),
        (result("é" * 100, name="search"), "[search result masked: 200 bytes]"),
        (result("x", name=""), "[tool result masked: 1 bytes]"),
        (result("x", name="a]\nb"), "[a_b result masked: 1 bytes]"),
    ],
)  # fmt: skip
def test_it_says_what_was_there(item: Item, expected: str) -> None:
    assert placeholder(item) == expected


def test_a_long_result_keeps_its_beginning() -> None:
    text = "".join(str(n % 10) for n in range(3000))
    assert placeholder(result(text)).endswith("3,000 bytes]\n" + text[:200])


def transcript() -> list[Item]:
    return [result("line of output\n" * 40, seq=n) for n in range(1, 11)]


def test_a_batch_leaves_the_last_six_alone() -> None:
    assert maskable(transcript(), SIZES) == (1, 2, 3, 4)
    assert maskable_share(transcript(), SIZES) >= 0.05


def test_too_small_a_batch_waits() -> None:
    assert maskable(transcript()[:7], SIZES) == ()
    assert maskable_share(transcript()[:7], SIZES) == 0.0
    assert maskable(transcript()[:3], SIZES) == ()


def test_nothing_is_masked_twice() -> None:
    items = transcript()
    items[0] = replace(items[0], masked=True)
    items[1] = replace(items[1], text=placeholder(items[1]), tokens=500)
    items[2] = replace(items[2], pinned=True)
    large = replace(items[3], text="row\n" * 900, tokens=1200)
    items[3] = large
    assert maskable(items, SIZES) == (4,)
