"""The rulers and the calibration."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compression.tokens import (
    CACHE_NAME,
    FIRST_CALIBRATION,
    CharacterCounter,
    DefaultCounter,
    TiktokenCounter,
    calibrate,
    default_counter,
)
from tests.growth import growth

COUNT_IN_A_NEW_PROCESS = (
    "import sys, socket\n"
    "def refuse(*a, **k): sys.exit('the network was asked')\n"
    "socket.socket.connect = refuse; socket.getaddrinfo = refuse\n"
    "from compression.tokens import default_counter\n"
    "counter = default_counter()\n"
    "print(counter.count('hello world'), counter.estimated)\n"
)


def run(environment: dict[str, str]) -> str:
    answer = subprocess.run(
        [sys.executable, "-c", COUNT_IN_A_NEW_PROCESS],
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return answer.stdout.strip()


@pytest.fixture(scope="module")
def ruler() -> TiktokenCounter:
    return TiktokenCounter()


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("hello world", 2),
        ("Привет, мир!", 5),
        ("你好，世界", 3),
        ("def f(x):\n    return x\n", 8),
        ("<|endoftext|>", 7),
    ],
)
def test_known_counts(ruler: TiktokenCounter, text: str, tokens: int) -> None:
    """Counts as tiktoken 0.14 gives for o200k_base with ``encode_ordinary``."""
    assert ruler.count(text) == tokens


def test_no_network_and_a_private_cache(tmp_path: Path) -> None:
    assert run({"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "c")}) == "2 False"
    folder = tmp_path / "c" / "palimpsest"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [file.name for file in folder.iterdir()] == [CACHE_NAME]


def test_a_damaged_cache_is_replaced(tmp_path: Path) -> None:
    (tmp_path / CACHE_NAME).write_bytes(b"IQ== 0\n")
    assert run({"TIKTOKEN_CACHE_DIR": str(tmp_path)}) == "2 False"
    assert (tmp_path / CACHE_NAME).stat().st_size > 3_000_000


def test_a_cache_that_cannot_be_written_costs_only_time(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert run({"TIKTOKEN_CACHE_DIR": str(tmp_path / "file" / "below")}) == "2 False"


@pytest.mark.parametrize(
    "text",
    ["a", " ", "\n", "漢", "=", "aB", "😀", "\ud800"],
    ids=["a", "space", "newline", "han", "equals", "mixed", "emoji", "surrogate"],
)
def test_hostile_texts_are_counted_in_linear_time(ruler: TiktokenCounter, text: str) -> None:
    """Breaks when: a long run of one character goes to the tokenizer in one piece."""
    assert growth(lambda size: ruler.count(text * size), 50_000, 4) < 10


def test_a_long_text_counts_as_the_sum_of_its_words(ruler: TiktokenCounter) -> None:
    words = "all these words stay whole " * 5000
    whole = ruler.count("all these words stay whole ") * 5000
    assert abs(ruler.count(words) - whole) <= whole * 0.17


@given(st.text())
def test_the_estimate_is_bytes_by_three(text: str) -> None:
    size = len(text.encode())
    assert size / 3 <= CharacterCounter().count(text) < size / 3 + 1


@given(st.text(st.characters(codec="utf-8"), max_size=200))
def test_any_text_counts_at_most_its_bytes(text: str) -> None:
    assert TiktokenCounter().count(text) <= len(text.encode())


def test_default_counter_is_made_once() -> None:
    assert default_counter() is default_counter()
    assert CharacterCounter().estimated


def test_the_ruler_is_loaded_by_the_first_count() -> None:
    """Breaks when: it is loaded as soon as it is made, 40 MB for whoever counts nothing."""
    counter = DefaultCounter()
    assert not counter.loaded
    assert counter.count("hello world") == 2
    assert counter.loaded


def test_calibration_settles_on_what_is_reported() -> None:
    value = FIRST_CALIBRATION
    for _ in range(20):
        value = calibrate(value, 1300, 1000)
    assert value == pytest.approx(1.3, abs=0.01)


@pytest.mark.parametrize(("reported", "counted"), [(0, 100), (100, 0), (-1, 5)])
def test_a_report_that_says_nothing_changes_nothing(reported: int, counted: int) -> None:
    assert calibrate(1.2, reported, counted) == 1.2


@given(st.floats(0.5, 2), st.integers(-10, 10**9), st.integers(-10, 10**9))
def test_calibration_is_clamped(old: float, reported: int, counted: int) -> None:
    assert 0.5 <= calibrate(old, reported, counted) <= 2.0
