"""The words of a search in safe HTML."""

from __future__ import annotations

import pytest

from chatapp.rendering.search_highlight import mark
from compression.recall.terms import terms_of


@pytest.mark.parametrize(
    ("html", "query", "expected"),
    [
        ("<p>A quetzal.</p>", "quetzal", "<p>A <mark>quetzal</mark>.</p>"),
        ("<p>Costs rose.</p>", "cost", "<p><mark>Costs</mark> rose.</p>"),
        ('<a href="/amp/">x</a>', "amp href", '<a href="/amp/">x</a>'),
        ('<a title="a > b">b</a>', "b", '<a title="a > b"><mark>b</mark></a>'),
        ("you &amp; me &lt;b&gt;", "amp lt", "you &amp; me &lt;b&gt;"),
        ("<p>Nothing of it.</p>", "", "<p>Nothing of it.</p>"),
        ("<p>鳥を見た</p>", "見た", "<p>鳥を<mark>見た</mark></p>"),
    ],
)
def test_words_are_marked_and_markup_is_left_alone(html: str, query: str, expected: str) -> None:
    """Breaks when: tags or character references are searched as well."""
    assert mark(html, terms_of(query)) == expected
