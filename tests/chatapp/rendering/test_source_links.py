"""Source numbers of a summary become links, and nothing else changes."""

from __future__ import annotations

from chatapp.rendering import markdown
from chatapp.rendering.source_links import link_sources
from chatapp.text.earlier import mark_earlier
from tests.chatapp.rendering.samples import Elements


def test_it_works() -> None:
    assert link_sources("<p>Soup. [12, 15–18]</p>") == (
        '<p>Soup. [<a href="#m-12">12</a>, <a href="#m-15">15–18</a>]</p>'
    )


def test_other_brackets_stay() -> None:
    html = "<p>[a] [1 2] [] [12 x] list[3]</p>"
    assert link_sources(html) == html.replace("[3]", '[<a href="#m-3">3</a>]')


def test_code_and_links_stay() -> None:
    html = (
        '<p><code>x[1]</code> <a href="https://example.org">[2]</a></p><pre><code>[3]</code></pre>'
    )
    assert link_sources(html) == html


def test_references_stay_references() -> None:
    assert link_sources("<p>a &amp; b &lt; c &#39; [1]</p>") == (
        '<p>a &amp; b &lt; c &#39; [<a href="#m-1">1</a>]</p>'
    )


def test_i22_a_number_in_an_attribute_is_not_a_source() -> None:
    """I22: linking cannot open a tag from within an attribute's value.

    Breaks when: the numbers are replaced in the HTML as a string instead of in its text.
    """
    text = '[link](https://example.org/?q=1 "> [1] <img src=x onerror=alert(1)>") and [2]'
    html = link_sources(markdown.render(text))
    assert 'href="#m-1"' not in html
    assert 'href="#m-2"' in html
    assert "img" not in [tag for tag, _ in Elements(html).all]


def test_lines_of_an_earlier_conversation_lead_there() -> None:
    text = "- Soup. [12, 15–18]\n- Bread. [12]\n- Salt [7] and more."
    marked = mark_earlier(text, {"- Soup. [12, 15–18]", "- Salt [7] and more."})
    assert marked == "- Soup. [earlier 12, 15–18]\n- Bread. [12]\n- Salt [7] and more."
    assert link_sources("<p>[earlier 12, 15–18]</p>", earlier='/c/"x/') == (
        '<p>[earlier <a href="/c/&quot;x/?around=12#m-12">12</a>, '
        '<a href="/c/&quot;x/?around=15#m-15">15–18</a>]</p>'
    )
    assert link_sources("<p>[earlier 12] [3]</p>") == ('<p>[earlier 12] [<a href="#m-3">3</a>]</p>')
