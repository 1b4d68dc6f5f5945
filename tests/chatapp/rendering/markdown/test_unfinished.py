"""What is shown of Markdown that is half written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatapp.rendering.markdown import StreamRenderer
from chatapp.rendering.markdown.unfinished import HELD, completed
from tests.chatapp.rendering.inert import PAYLOADS, assert_inert
from tests.growth import cost

SIGNS = st.text(alphabet="*_~`[]()!$\\|<>#-:.= \n1ax", max_size=60)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("a **bo", "a **bo**"),
        ("a **bold*", "a **bold**"),
        ("a **bold**", "a **bold**"),
        ("a **", "a"),
        ("***both", "***both***"),
        ("*one **two", "*one **two***"),
        ("~~gone~", "~~gone~~"),
        ("> **quoted", "> **quoted**"),
        ("**first\n", "**first**"),
        ("这是**重", "这是**重**"),
        ("a `co", "a `co`"),
        ("a ``co`", "a ``co``"),
        ("a `", "a"),
        ("the [do", "the do"),
        ("the [docs](htt", "the docs"),
        ("**[docs](htt", "**docs**"),
        ("![a pic](ht", "a pic"),
        ("<https://a.b", ""),
        ("a [1] no", "a [1] no"),
        ("a \\(x + ", "a"),
        ("a $x + ", "a"),
        ("$$\nx +", "\n\n…"),
        ("text\n--", "text"),
        ("text\n##", "text"),
        ("text\n``", "text"),
        ("- one\n- [", "- one"),
        ("- [x] *do", "- [x] *do*"),
        ("| Na", "| Na |\n|---|"),
        ("| Na | **b", "| Na | **b** |\n|---|---|"),
        ("| Na |\n|:-", "| Na |\n|---|"),
        ("Text:\n| a | b", "Text:\n| a | b |\n|---|---|"),
        ("| a |\n|---|\n| *b", "| a |\n|---|\n| *b*"),
        ("```py\nx\n``", "```py\nx\n"),
        ("a \\", "a"),
    ],
)
def test_it_is_completed_or_held_back(written: str, shown: str) -> None:
    assert completed(written) == shown


@pytest.mark.parametrize(
    "text",
    [
        *("2*3 = 6", "x**2 + y", "snake_case_name", "a * b", "**** stars", "costs $5 and", "US$"),
        *("```py\nf(**kw", "- a\n  ```\n  **x\n  ```", "a\n\n    code **x", "***\n", "a | b", "~5"),
        *("[x] " + "word " * HELD, "\\(" + "x" * HELD, "[a](" + "x" * HELD),
    ],
)
def test_what_is_no_half_of_anything_stays(text: str) -> None:
    """Breaks when: a sign of arithmetic, code or a price is taken for Markdown."""
    assert completed(text).rstrip() == text.rstrip()


@given(SIGNS)
def test_it_never_fails_and_takes_no_words_away_for_long(text: str) -> None:
    """Breaks when: an offset is taken in a text that has become shorter."""
    shown = completed(text)
    assert len(shown) <= 4 * len(text) + 20
    assert "end" in completed(f"{text}\n\nthe end")


@pytest.mark.parametrize(
    "unit",
    [
        *("**a]", "[", "`a``b", "$a ", "*a ", "[a](", "|", "| a\n", "> ", " ", "\\(", "_a*", "- "),
        *(
            "<http:",
            "x\n",
            "$$",
            "\\[\n",
            "```\n",
            "a [b] **",
            "![",
            "|:-",
            "$a$ ",
            "~~",
            "``` `\n",
        ),
    ],
)
def test_x10_time_is_linear(unit: str) -> None:
    """X10: an open block is at most 3,000 characters long; ten times that takes ten times as long.

    Breaks when: a bracket that closes looks through all that is open.
    """
    long = 30_000 // len(unit)
    assert cost(lambda: completed(unit * long + "**a")) < 0.15


@pytest.mark.parametrize("payload", PAYLOADS)
def test_i22_what_is_completed_is_inert(payload: str) -> None:
    """I22: completing adds only signs of Markdown, before the parser and the sanitiser.

    Breaks when: ``render_piece`` is passed over for the open block.
    """
    for before in ("**", "[a](", "| ", "$", "`", "```js\n"):
        text = before + payload
        for offset in range(0, len(text) + 1, 3):
            assert_inert(StreamRenderer.split(text[:offset])[1])
