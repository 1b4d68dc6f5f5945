from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatapp.rendering.titles import first_words
from chatapp.text.lengths import AUTOMATIC_TITLE_LENGTH


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Plan a trip to Rome", "Plan a trip to Rome"),
        ("", ""),
        ("  \n\t ", ""),
        ("# Hello\n\nworld", "Hello world"),
        ("**Bold** and *soft* and `code`", "Bold and soft and code"),
        ("See [the page](https://x.example/a) now", "See the page now"),
        ("![a cat](https://x.example/cat.png)", "a cat"),
        ("```python\nprint(1)\n```\nWhy?", "print(1) Why?"),
        ("- one\n- two\n1. three", "one two three"),
        ("> quoted\n\n---\n\nanswer", "quoted answer"),
        ("what does snake_case mean in 2 * 3?", "what does snake_case mean in 2 3?"),
        ("__init__ of a class", "init of a class"),
        ("a\u202eb\x1b[0m\u200b", "ab␛[0m"),
        ("<b>1 < 2</b>", "<b>1 < 2</b>"),
        ("nul\x00 and \ud800", "nul� and �"),
    ],
)
def test_it_works(text: str, title: str) -> None:
    assert first_words(text) == title


def test_a_long_message_is_cut_between_words() -> None:
    title = first_words("one two three four five six seven eight nine ten, eleven twelve thirteen")
    assert title == "one two three four five six seven eight nine ten, eleven…"


def test_a_long_word_is_cut_within() -> None:
    title = first_words("x" * 100)
    assert title == "x" * 59 + "…"


@given(st.text(alphabet=st.characters(), max_size=300))
def test_a_title_is_short_one_line_and_storable(text: str) -> None:
    title = first_words(text)
    assert len(title) <= AUTOMATIC_TITLE_LENGTH
    assert title == " ".join(title.split())
    assert title.encode().decode() == title
    assert "\x00" not in title


@pytest.mark.parametrize("unit", ["[", "![", "](", "*", "_", "`", "> ", "- ", "a_", "---", " \t"])
def test_a_hostile_message_takes_no_time(unit: str) -> None:
    assert len(first_words(unit * 100_000)) <= AUTOMATIC_TITLE_LENGTH
