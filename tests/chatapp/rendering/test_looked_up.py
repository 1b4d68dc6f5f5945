"""What was looked up for a message, as its article shows it."""

from __future__ import annotations

import re

import pytest

from chatapp.rendering.articles import article_of, render_article
from compression.recall.ports import Original
from compression.recall.quoting import quoted
from tests.chatapp.rendering.samples import message

PAYLOAD = "<img src=x onerror=alert(1)><a href='#m-9' hx-get='/x'>"


def excerpt(*seqs: int, text: str = "The ferry leaves at nine.") -> str:
    return quoted([(Original(seq=seq, role="user", text=text), text) for seq in seqs])


def html_of(**fields: object) -> str:
    one = message(12, **{"role": "user", **fields})  # type: ignore[arg-type]
    return str(render_article(article_of(one)))


def links(html: str) -> list[str]:
    return re.findall(r'<a href="(#m-\d+)">', html)


def test_it_is_shown_folded_with_links_to_the_messages() -> None:
    """Breaks when: what was sent with a message is shown nowhere, or as the person's own words."""
    html = html_of(added_context=excerpt(3, 7))
    folded = html.partition('<details class="result looked-up">')[2].partition("</details>")[0]
    assert "Looked up in this conversation" in folded
    assert links(folded) == ["#m-3", "#m-7"]
    assert "The ferry leaves at nine." in folded
    assert "ferry" not in html.partition("<details")[0]


def test_nothing_is_shown_where_nothing_was_looked_up() -> None:
    assert "<details" not in html_of()


@pytest.mark.parametrize(
    ("name", "found"), [("search_history", ["#m-3", "#m-7"]), ("read_messages", ["#m-3", "#m-7"])]
)
def test_a_result_of_recall_links_to_its_messages(name: str, found: list[str]) -> None:
    assert links(html_of(role="tool", tool_name=name, text=excerpt(3, 7))) == found


def test_another_tool_s_result_has_no_such_links() -> None:
    """Breaks when: any tool can make links by writing headings as recall does."""
    assert links(html_of(role="tool", tool_name="server__search", text=excerpt(3, 7))) == []


def test_i22_what_is_quoted_is_inert() -> None:
    """I22. Breaks when: excerpts are not escaped."""
    html = html_of(added_context=excerpt(3, text=PAYLOAD))
    assert "<img" not in html
    assert links(html) == ["#m-3"]
    assert "&lt;img" in html
