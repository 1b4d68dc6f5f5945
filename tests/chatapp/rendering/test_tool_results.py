"""The line of a tool's result while it is folded."""

from __future__ import annotations

import pytest

from chatapp.rendering.articles import LONGEST_FAILURE, article_of, render_article
from tests.chatapp.rendering.samples import message


def line_of(text: str, seconds: float | None = 2.0) -> str:
    """The line, its words one blank apart."""
    one = message(12, role="tool", tool_name="notes__add", text=text, seconds=seconds)
    line = str(render_article(article_of(one))).partition("<summary>")[2].partition("</summary>")[0]
    return " ".join(line.split())


def test_a_result_says_whose_it_is_and_how_long_it_took() -> None:
    """Breaks when: several results in a row, whose headings are hidden, cannot be told apart."""
    took = '<span class="figures">after 2.0 s</span>'
    assert line_of("3 notes") == f"Result from notes__add {took}"
    assert line_of("3 notes", None) == "Result from notes__add"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("error: The tool took longer than 30 s.", "The tool took longer than 30 s."),
        ("error: It broke.\nTraceback", "It broke."),
        ("error: <img src=x>", "&lt;img src=x&gt;"),
        ("error: " + "x" * 500, "x" * LONGEST_FAILURE + "…"),
    ],
)
def test_a_call_without_a_result_says_why(text: str, said: str) -> None:
    """Breaks when: what was refused or failed is folded under the words of a success."""
    assert line_of(text) == f"No result from notes__add: {said}"


def test_what_only_speaks_of_errors_is_a_result() -> None:
    assert line_of("errors: 0", None) == "Result from notes__add"
