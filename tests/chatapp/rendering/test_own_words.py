"""A person's own messages, and what is told of a model's thoughts."""

from __future__ import annotations

import pytest

from chatapp.rendering.markdown import StreamRenderer, last_line
from chatapp.rendering.own_words import LONG, LONG_LINES, has_markup, is_long
from chatapp.rendering.words.labels import thought_for
from chatapp.turns.live_reply import Thinking
from tests.growth import cost


@pytest.mark.parametrize(
    "text",
    ["**a**", "a `b`", "- a", "a\n\n1. b", "# a", "> a", "```\na", "[a](b)", "https://a.b", "$x$"],
)
def test_signs_of_markdown_are_seen(text: str) -> None:
    assert has_markup(text)


@pytest.mark.parametrize("text", ["", "a - b", "5 * 3", "#1 of 3", "US$ 5", "a_b", "a\n   b  c"])
def test_plain_words_stay_as_they_were_written(text: str) -> None:
    """Breaks when: any text is taken for Markdown, which loses its line breaks and blanks."""
    assert not has_markup(text)


def test_what_is_long() -> None:
    assert not is_long("x" * LONG)
    assert is_long("x" * (LONG + 1))
    assert is_long("\n" * LONG_LINES)


@pytest.mark.parametrize("unit", ["$a", "`", " ", "*", "\n 1", "https:/", "\\", "_ "])
def test_x10_it_is_linear(unit: str) -> None:
    assert cost(lambda: has_markup(unit * (200_000 // len(unit)))) < 1.0


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, "Reasoning"),
        (0.2, "Thought for a moment"),
        (6.4, "Thought for 6 s"),
        (80.0, "Thought for 1 min 20 s"),
    ],
)
def test_how_long_it_thought(seconds: float | None, words: str) -> None:
    assert thought_for(seconds) == words


def test_the_last_line() -> None:
    assert last_line("one\ntwo\n\n ") == "two"
    assert last_line("") == ""
    assert last_line("word " * 100).startswith("…")
    assert len(last_line("word " * 100)) < 130


def test_a_stream_tells_the_last_line_as_a_page_does() -> None:
    """Breaks when: a stream keeps less of the thoughts than a page looks at."""
    thoughts, renderer = (
        "First this <b>.\nThen " + "on and " * 300 + "\nand that.",
        StreamRenderer(),
    )
    for end in range(0, len(thoughts), 7):
        update = renderer.feed("", thoughts[end : end + 7])
        shown = last_line(thoughts[: end + 7])
        assert update.last_line_html.replace("&lt;", "<").replace("&gt;", ">") == shown


def test_only_what_comes_before_the_text_is_thinking() -> None:
    thinking = Thinking()
    thinking.add("Text", "")
    thinking.add("", "A late thought")
    assert thinking.end() is None
    thinking = Thinking()
    thinking.add("", "A thought")
    assert thinking.seconds is None
    thinking.add("Text", "")
    assert thinking.seconds is not None
