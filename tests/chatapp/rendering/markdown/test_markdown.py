"""What a whole message becomes."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chatapp.rendering.markdown import render
from chatapp.rendering.markdown.blocks import _LINE, Environment, _parser, render_piece
from chatapp.rendering.markdown.cost_estimate import LARGE, MESSAGE_BUDGET, estimate
from chatapp.rendering.markdown.highlight import (
    _LANGUAGES,
    HIGHLIGHT_LINE,
    HIGHLIGHT_MESSAGE,
    code_figure,
    highlighted,
)
from chatapp.rendering.markdown.sanitise import TASK_CLASS, sanitise
from tests.chatapp.rendering.inert import PAYLOADS, assert_inert
from tests.growth import cost

LINK = 'target="_blank" rel="noopener noreferrer nofollow"'


def test_it_works() -> None:
    assert render("A *b* **c** `d` ~~e~~\n") == (
        "<p>A <em>b</em> <strong>c</strong> <code>d</code> <s>e</s></p>\n"
    )


@given(
    st.lists(st.from_regex(_LINE, fullmatch=True).filter(lambda line: "_" not in line), min_size=1),
    st.sampled_from(["\n\n", "\n\n\n"]),
    st.sampled_from(["", "\n", "\n\n"]),
)
@example(["A line that ends with spaces.  ", "Zero\u200awidth\u3164"], "\n\n", "\n")
@example(["a: http://x.example", 'b "c" (d) e-f -- g... h!'], "\n\n", "")
def test_prose_takes_a_short_way_to_the_same_html(lines: list[str], between: str, end: str) -> None:
    """I22. Breaks when: a sign that means something to the parser counts as prose."""
    text = between.join(lines) + end
    parsed = sanitise(_parser.render(text, {"environment": Environment()}))
    assert render_piece(text, Environment(), MESSAGE_BUDGET) == parsed


@pytest.mark.parametrize(
    "text",
    [
        "a *b* c",
        "a __b__ c",
        "a `b` c",
        "a ~~b~~ c",
        "a \\! b",
        "a <https://x.example>",
    ],
)
def test_what_means_something_to_the_parser_is_no_prose(text: str) -> None:
    """Breaks when: such a sign is allowed in a line of prose."""
    parsed = sanitise(_parser.render(text, {"environment": Environment()}))
    assert render_piece(text, Environment(), MESSAGE_BUDGET) == parsed != f"<p>{text}</p>\n"


@pytest.mark.parametrize("blank", ["", " ", "\n\n", "\t\n"])
def test_nothing_becomes_nothing(blank: str) -> None:
    assert render(blank) == ""


@pytest.mark.parametrize("target", ["https://x.example/a?b=1", "http://x.example", "mailto:a@b.c"])
def test_links_open_elsewhere_and_tell_nothing(target: str) -> None:
    assert render(f"[a]({target})") == f'<p><a href="{target}" {LINK}>a</a></p>\n'


@pytest.mark.parametrize("address", ["https://x.example/a_b_c?d=e*f", "http://x.example:8000/"])
@pytest.mark.parametrize("text", ["<{}>", "{}", "({})", "See {}.", "**{}**", "- {}, and"])
def test_an_address_of_the_web_is_a_link(address: str, text: str) -> None:
    """Breaks when: ``_Parser`` leaves ``web_address`` out."""
    assert f'<a href="{address}" {LINK}>{address}</a>' in render(text.format(address))


@pytest.mark.parametrize(
    "text",
    [
        *("x.example", "www.example.com", "192.0.2.1", "//x.example", "a@x.example"),
        *(
            "ftp://x.example/a",
            "mailto:a@x.example",
            "javascript://x.example",
            "`https://x.example`",
        ),
        *("http\\://x.example", "https://", "https://_x", "xhttps://x.example"),
    ],
)
def test_what_only_might_be_an_address_is_text(text: str) -> None:
    """Breaks when: ``_scheme`` takes any letters, or letters before them."""
    assert "href" not in render(text)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("(see https://x.example/a_(b))", "https://x.example/a_(b)"),
        ("https://x.example/a)))", "https://x.example/a"),
        ("“https://x.example/ä”", "https://x.example/ä"),
        ("请看https://x.example。然后", "https://x.example"),
        ("| a |\n|---|\n| https://x.example/?a|", "https://x.example/?a"),
        ("![a https://x.example/b](https://y.example)", "a https://x.example/b"),
    ],
)
def test_an_address_ends_where_its_sentence_goes_on(text: str, address: str) -> None:
    assert f">{address}</a>" in render(text)


def test_an_address_within_a_link_makes_no_second_one() -> None:
    html = render("[https://x.example](https://y.example)")
    assert html == f'<p><a href="https://y.example" {LINK}>https://x.example</a></p>\n'


def test_an_image_is_a_link_with_its_text() -> None:
    html = render('![a *b*](https://x.example/p.png "t")')
    assert html == f'<p><a href="https://x.example/p.png" title="t" {LINK}>a b</a></p>\n'


def test_an_image_without_text_still_has_a_name() -> None:
    assert f"{LINK}>image</a>" in render("![](https://x.example/p.png)")


def test_an_image_within_a_link_is_the_links_text() -> None:
    html = render("[![a](https://x.example/p.png)](https://y.example)")
    assert html == f'<p><a href="https://y.example" {LINK}>a</a></p>\n'


def test_code_stands_in_a_figure_with_its_language() -> None:
    html = render("```python\nx = 1\n```\n")
    assert html.startswith('<figure class="code"><figcaption>python</figcaption><pre><code>')
    assert '<span class="hl-mi">1</span>' in html
    assert "style=" not in html


def test_code_of_an_unknown_language_is_plain() -> None:
    html = render("```klingon <b>\nx < 1\n```\n")
    assert html == (
        '<figure class="code"><figcaption>klingon</figcaption>'
        "<pre><code>x &lt; 1\n</code></pre></figure>\n"
    )


def test_indented_code_has_an_empty_caption() -> None:
    assert render("    a\n").startswith(
        '<figure class="code"><figcaption></figcaption><pre><code>a'
    )


def test_a_language_is_escaped_and_cut() -> None:
    html = render('```"><script>' + "x" * 100 + "\na\n```\n")
    assert_inert(html)
    assert len(html) < 200


@pytest.mark.parametrize("language", sorted(_LANGUAGES))
def test_each_known_language_has_a_lexer(language: str) -> None:
    code = "a = 1 # é\n"
    assert_inert(sanitise(code_figure(highlighted(code, language), language, continued=False)))


@pytest.mark.parametrize(
    "code", ["x = 1\n" * (HIGHLIGHT_MESSAGE // 6 + 1), "x" * (HIGHLIGHT_LINE + 1) + "\n"]
)
def test_code_too_long_or_too_wide_stays_plain(code: str) -> None:
    assert "hl-" not in render(f"```python\n{code}```\n")


def test_highlighting_is_bounded_for_a_message() -> None:
    block = "```python\n" + "x = 1\n" * 1000 + "```\n\n"
    figures = render(block * 6).split("<figure")[1:]
    lit = [("hl-" in figure) for figure in figures]
    assert lit == [True] * (HIGHLIGHT_MESSAGE // 6000) + [False] * (6 - HIGHLIGHT_MESSAGE // 6000)


@pytest.mark.parametrize("bullet", ["-", "*", "7."])
def test_a_task_has_a_box(bullet: str) -> None:
    marks = {"[ ] a": "☐ a", "[x] *b*": "☑ <em>b</em>", "[X] [c](https://x.example)": "☑ <a"}
    for text, shown in marks.items():
        assert f'<li class="task">{shown}' in render(f"{bullet} {text}\n")


@pytest.mark.parametrize("text", ["[ ] a", "- a [ ] b", "- [ ]", "- [y] a", "- [ ]a", "- `[ ] a`"])
def test_what_only_looks_like_a_task_stays_as_it_is(text: str) -> None:
    html = render(text)
    assert "[" in html
    assert TASK_CLASS not in html


@pytest.mark.parametrize(
    ("text", "element"),
    [("- a", "ul"), ("3. a", "ol"), ("> a", "blockquote"), ("|a|\n|-|\n", "table")],
)
def test_what_has_marks_runs_the_way_of_its_first_letter(text: str, element: str) -> None:
    (opening,) = re.findall(f"<{element}[^>]*>", render(text))
    assert 'dir="auto"' in opening


def test_a_table_scrolls_and_aligns_by_class() -> None:
    html = render("| a | b | c | d |\n|:--|:-:|--:|---|\n| 1 | 2 | 3 | 4 |\n")
    assert html.startswith('<div class="table"><table dir="auto">\n')
    assert html.endswith("</table></div>\n")
    for side in ("left", "center", "right"):
        assert f'<td class="align-{side}">' in html
    assert "<td>4</td>" in html


def test_a_cell_of_many_words_is_marked() -> None:
    html = render(f"| a | b |\n|--:|---|\n| {'word ' * 9}| {'word ' * 8}|\n")
    assert '<td class="align-right long">' in html
    assert html.count("long") == 1


@pytest.mark.parametrize("payload", PAYLOADS)
def test_i22_a_payload_is_inert(payload: str) -> None:
    """I22, X01, X02, X03, X04, X06: elements, schemes, pictures, htmx attributes, breaking out.

    Breaks when: ``_Parser`` is built with ``html=True`` and ``sanitise`` returns its input.
    """
    for text in (
        payload,
        f"a {payload} b",
        f"- {payload}\n- b",
        f"> {payload}",
        f"| {payload} |\n|-|",
    ):
        assert_inert(render(text))


@pytest.mark.parametrize("payload", PAYLOADS)
def test_i22_the_sanitiser_alone_lets_nothing_through(payload: str) -> None:
    """I22: the second wall holds if the first one falls.

    Breaks when: ``sanitise`` allows an element more, such as ``img``, or any ``data-`` attribute.
    """
    assert_inert(sanitise(payload))


@pytest.mark.parametrize("payload", [p for p in PAYLOADS if "script:" in p.lower()])
def test_i22_the_parser_alone_makes_no_script_link(payload: str) -> None:
    """I22: the first wall.

    Breaks when: ``_Parser.validateLink`` returns True.
    """
    assert "<a " not in render(payload)


def test_the_sanitiser_removes_ids_and_foreign_classes() -> None:
    given = '<p id="composer" class="plain toast" data-x="1" hx-get="/x">a</p>'
    assert sanitise(given) == '<p class="plain">a</p>'


@pytest.mark.parametrize("bidi", ["\u202e", "&#x202e;", "&#8238;"])
def test_x09_a_direction_override_is_shown(bidi: str) -> None:
    html = render(f"a{bidi}b `c\u202e` [d](https://x.example 'e\u2066')")
    assert "\u202e" not in html
    assert "\u2066" not in html
    assert "⟦U+202E⟧" in html


def test_x09_hidden_characters_are_shown() -> None:
    """X09, N07."""
    hidden = "".join(chr(0xE0000 + ord(sign)) for sign in "obey")
    assert render(f"a\u200b{hidden}b \x1b[31mred") == "<p>a⟦U+200B and 4 more⟧b ␛[31mred</p>\n"


@given(st.text(alphabet=st.characters(), max_size=200))
def test_any_text_renders_inert(text: str) -> None:
    assert_inert(render(text))


@given(st.lists(st.sampled_from([*PAYLOADS, "\n", "\n\n", "- ", "> ", "```", "|", "[", "](", "*"])))
def test_any_mixture_of_payloads_renders_inert(parts: list[str]) -> None:
    assert_inert(render("".join(parts)))


HOSTILE = {
    "brackets": "[" * 50_000,
    "images": "![](x" * 20_000,
    "links": "[a](x" * 20_000,
    "ampersands": "&" * 100_000,
    "a line of 5 MB": "word " * 1_000_000,
    "table": "| a | b |\n|---|---|\n" + "| x | y |\n" * 10_000,
    "table of cells not written": "|" * 500 + "\n" + "|-" * 500 + "|\n" + "a\n" * 500,
    "list of 100 kB": "- item with words\n" * 6_000,
    "emphasis": "*a _b " * 20_000,
    "addresses": "<http://a> " * 20_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_x10_what_would_take_long_is_plain(name: str) -> None:
    """X10: told from the structure, so the same on a busy machine.

    Breaks when: ``render_piece`` does not ask ``estimate``.
    """
    text = HOSTILE[name]
    assert estimate(text) > MESSAGE_BUDGET
    html = render(text)
    assert html.startswith('<p class="plain">')
    assert html.count("<") == 2


@pytest.mark.parametrize(
    "text",
    [
        "> " * 20_000,
        "- " * 20_000,
        "\n".join("  " * depth + "- a" for depth in range(200)),
        "\n".join("> " * depth + "a" for depth in range(100)),
        "*" * 10_000 + "a" + "*" * 10_000,
        "(" * 20_000,
        "".join("`" * count + " " for count in range(1, 250)),
        "```python\n" + "x = f(1)\n" * 5_000 + "```\n",
        "https://x.example/" + "a" * 100_000,
        "https://x.example/" + ")," * 50_000,
        "https://x.example/a " * 5_000,
        "http://a" * 4_000,
        "://" * 6_000,
        "[https://a" * 4_000,
    ],
)
def test_x10_deep_and_long_texts_take_a_bounded_time(text: str) -> None:
    common = "A **common** paragraph with `code`, [a link](https://x.example) and words.\n\n" * 300
    assert cost(lambda: render(text)) < 10 * cost(lambda: render(common))
    assert_inert(render(text))


def test_an_estimate_is_linear() -> None:
    text = "- a [b](https://x.example) | *c*\n" * 100
    assert estimate(text * 10) == pytest.approx(10 * estimate(text), rel=0.01)


def test_code_is_cheap_unless_its_fence_cannot_be_trusted() -> None:
    inside = "```\n" + "[" * 20_000 + "\n```\n"
    assert estimate(inside) < MESSAGE_BUDGET
    assert estimate("   ```\n```\n" + "[" * 20_000 + "\n```\n") > MESSAGE_BUDGET
    assert estimate("``` `\n" + "[" * 20_000) > MESSAGE_BUDGET


def test_a_common_reply_is_far_from_the_limit() -> None:
    paragraph = "A paragraph with **bold** words, `code` and a [link](https://x.example).\n\n"
    reply = (paragraph * 3 + "- one\n- two\n\n```python\nx = [1, 2]\n```\n\n") * 60
    assert len(reply) > 5 * LARGE
    assert estimate(reply) < MESSAGE_BUDGET


def test_a_budget_of_nothing_is_plain_text() -> None:
    assert render_piece("*a*\n  b", Environment(), 0) == '<p class="plain">*a*\n  b</p>\n'


@pytest.mark.parametrize("unit", ["[", "![](x", "[a](x", "<http://a> ", "*a ", "1. a\n", "&"])
def test_a_text_that_is_not_large_may_be_rendered_on_the_event_loop(unit: str) -> None:
    assert estimate((unit * LARGE)[:LARGE]) < 75_000  # microseconds; a handler has 100 ms
