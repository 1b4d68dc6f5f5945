"""An HTML page as text."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatapp.tools.pages import MOST_CHARACTERS, MOST_NESTED, TooDeep, page_text


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>one</p><p>two</p>", "one\n\ntwo"),
        ("<h2>Hours</h2>", "## Hours"),
        ("<ul><li>a<li>b</ul>", "- a\n\n- b"),
        ("a<br>b", "a\nb"),
        ("<table><tr><th>a<td>b</table>", "| a | b"),
        ("<pre>a\n  b</pre>", "a\n  b"),
        ("a  \n b", "a b"),
        ('<a href="https://example.org/x">x</a>', "x (https://example.org/x)"),
        ('<a href="/x">x</a>', "x"),
        ('<a href="javascript:alert(1)">x</a>', "x"),
        ("<script>a</script><style>b</style><!-- c -->d", "d"),
        ("&lt;b&gt; &amp; &#8364;", "<b> & €"),
        ("", ""),
    ],
)
def test_it_works(html: str, text: str) -> None:
    assert page_text(html) == text


@given(st.text(st.sampled_from("<>/a bp!-&;\"'=") | st.characters(), max_size=200))
def test_whatever_is_sent_is_read(html: str) -> None:
    page_text(html)


@pytest.mark.parametrize("piece", ["<div>", "<b>", "<b><i></b>", "<table><td>"])
def test_t04_elements_in_each_other(piece: str) -> None:
    """T04.

    Breaks when: the depth is not looked at before nh3 reads the page.
    """
    with pytest.raises(TooDeep):
        page_text(piece * (MOST_CHARACTERS // len(piece)))
    begun = time.thread_time()
    page_text((piece + "x") * (MOST_NESTED // 2))
    assert time.thread_time() - begun < 5


@pytest.mark.parametrize("piece", ["<!--", "<p>", "<!", "&", "<", "</p>", "<![CDATA["])
def test_t04_pages_that_cost_a_parser_much(piece: str) -> None:
    """T04: as much of it as is read.

    Breaks when: the standard library's parser reads a page as it came.
    """
    begun = time.thread_time()
    page_text(piece * (MOST_CHARACTERS // len(piece)))
    assert time.thread_time() - begun < 15
