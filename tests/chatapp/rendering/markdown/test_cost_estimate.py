"""What rendering may take at most, whatever a text is made of."""

from __future__ import annotations

import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from chatapp.rendering.markdown import StreamRenderer, blocks, render
from chatapp.rendering.markdown.blocks import Environment, _parser, render_piece
from chatapp.rendering.markdown.cost_estimate import MESSAGE_BUDGET, TooMuchWork, Work, estimate
from chatapp.rendering.markdown.sanitise import sanitise
from tests.chatapp.rendering.inert import assert_inert
from tests.growth import cost

COMMON = "A **common** paragraph with `code`, [a link](https://x.example) and words.\n\n"
#: What Markdown, formulas, code, HTML and links are made of, and what browsers and parsers trip on.
SIGNS = [
    *"[]()!*_~<>:@&\\`|#$-+=.\"'{}^ \n\t1aé😀\r\x00\u200b\u202e\u3164",
    *(
        "\n\n",
        "](",
        "![",
        "$$",
        "$${",
        "\\(",
        "\\)",
        "\\[",
        "\\]",
        "```",
        "~~~",
        "    ",
        "> ",
        "- ",
    ),
    *("1. ", "&amp;", "&#x", "http://a", "https://", "|-", "\n|", "[a]", "[a]:", "(x", "**", "__"),
    *("<a", "<http://a>", "<a@b>", "<!--", "x^{", "\\frac{", "\n---\n", "\n===\n", "# ", "- [ ] "),
    *("a\n", "> a\n", "># ", "  - a\n", "| a | b |\n", "|---|---|\n", "[a]: http://b\n", "a  \n"),
]
UNITS = st.lists(st.sampled_from(SIGNS), min_size=1, max_size=6).map("".join)
#: Times the share of its estimate that common text takes. What was found to be dear and not
#: foreseen took 6 to 40 times that.
ROOM = 4.0


def longest_within_budget(unit: str) -> str:
    """As many of ``unit`` as the budget allows, at most a long message of them."""
    low, high = 1, 200_000 // len(unit)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (
            (middle, high) if estimate(unit * middle) <= MESSAGE_BUDGET else (low, middle - 1)
        )
    return unit * low


def share(text: str) -> float:
    """CPU seconds that rendering takes, for each microsecond of the estimate, or of a short one."""
    return cost(lambda: render(text)) / max(estimate(text), MESSAGE_BUDGET / 5)


@pytest.fixture(scope="module")
def common_share() -> float:
    return share(longest_within_budget(COMMON))


@pytest.mark.parametrize(
    "unit",
    [
        *(
            "$${",
            "$",
            "$$a",
            "$$ a",
            "\r(",
            "\r|-",
            "|-\r",
            "')\r",
            "+",
            "=",
            "}",
            "^",
            "{=",
            "- +",
        ),
        *("[ ] \\]\n===\n># ", "># \na\n", "> - \na\n", "\u202e", "a\u200b", '"', "\\(a\\) "),
        *("https://a.b ", "~~a~~ ", "_a_ ", "1. a\n", "<http://a>", "<b@c.d> ", "a  \n", "![", "["),
        *("[a](x) ", "[a]: http://b\n", "| a | b |\n|---|---|\n", "&amp;", "`a ", "\\\\frac{"),
    ],
)
def test_x10_n02_what_is_rendered_takes_what_was_estimated(unit: str, common_share: float) -> None:
    """X10, N02: a text within the budget costs about what common text of that estimate does.

    Breaks when: the parser stops at each sign again, ``Work`` is not spent, or carriage returns
    are no ends of lines to ``estimate``.
    """
    assert share(longest_within_budget(unit)) < ROOM * common_share


@pytest.mark.soak
@pytest.mark.timeout(900)
@given(unit=UNITS)
# To explain a failure, Hypothesis would trace every line, and so change what is measured.
@settings(
    max_examples=200,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
)
def test_x10_n02_of_any_pattern(common_share: float, unit: str) -> None:
    """X10, N02: the same for patterns that nobody thought of."""
    assert share(longest_within_budget(unit)) < ROOM * common_share


@given(UNITS, st.integers(2, 8))
@settings(max_examples=60)
def test_an_estimate_grows_as_its_text(unit: str, times: int) -> None:
    """No pattern is cheaper for being long: what is cut in two costs no less in one."""
    text = unit * 50
    assert estimate(text * times) >= 0.7 * times * (estimate(text) - 100)


@given(st.lists(st.sampled_from(SIGNS), max_size=30).map("".join))
@example("$$$x$$")
@example("a!")
@example("![a](b) !\\[a]")
@example("5 &lt; 6 & 7 &amp &#65;")
@example("x://a http://a https://b.c/:d")
def test_the_parser_stops_only_where_a_rule_begins(text: str) -> None:
    """Breaks when: ``_terminator`` leaves out a sign that a rule reacts to."""
    full = blocks._Parser()
    full.inline.terminator_re = MarkdownIt("commonmark").inline.terminator_re
    assert _html(full, text) == _html(_parser, text)


def _html(parser: blocks._Parser, text: str) -> str:
    environment = Environment()
    environment.work = Work(text)
    return sanitise(parser.render(text, {"environment": environment}))


def test_work_is_bounded_by_the_lines_of_a_text() -> None:
    """Breaks when: ``spend`` never raises."""
    work = Work("a\nb")
    work.spend(200)
    with pytest.raises(TooMuchWork):
        work.spend(1_000)


@pytest.mark.parametrize("unit", ["[ ] \\]\n===\n># ", "># \na\n", "> 1. \na\n", "> ```\na\n"])
def test_x10_lines_that_are_walked_over_again_and_again_are_plain_text(unit: str) -> None:
    """X10: told by counting while the parser works, so the same on a busy machine.

    Breaks when: the rule ``work`` is not asked, or does not look ahead of a quotation.
    """
    text = longest_within_budget(unit)
    assert estimate(text) <= MESSAGE_BUDGET
    looks = _looks_at(text)
    assert looks <= 10 * (text.count("\n") + 1) + 1_000
    assert_inert(render(text))


def _looks_at(text: str) -> int:
    counted: list[int] = []

    class Counting(Work):
        def spend(self, looks: int) -> None:
            counted.append(looks)
            super().spend(looks)

    environment = Environment()
    environment.work = Counting(text)
    try:
        _parser.render(text, {"environment": environment})
    except TooMuchWork:
        counted.append(0)
    return sum(counted)


def test_nested_lists_and_quotations_of_people_are_within_the_count() -> None:
    items = "".join("  " * (depth % 5) + f"- item {depth}\n" for depth in range(200))
    mail = "> he wrote\n> > she wrote\n> > more\n>\n> again\n\nreply\n\n" * 50
    lazily = "> a quotation\nthat goes on\nand on\n\n" * 100
    for text in (items, mail, lazily, COMMON * 100):
        assert not render(text).startswith('<p class="plain">')


def test_code_and_formulas_share_what_parsing_leaves() -> None:
    """Breaks when: highlighting or setting a formula spends nothing of ``time_left``."""
    code = "```python\n" + "x = f(1)\n" * 800 + "```\n\n"
    formulas = ("\\(" + "x+" * 490 + "x\\) and\n\n") * 8
    assert render(code * 2).count("hl-") > render(formulas).count("<math") > 4
    costly = "- [a](b) *c* _d_\n" * 480
    assert estimate(costly) < MESSAGE_BUDGET
    html = render(costly + code * 2 + formulas)
    lit = sum("hl-" in figure for figure in html.split("<figure")[1:])
    assert (lit, html.count("<math")) < (2, 4)


def test_a_stream_is_plain_from_where_its_whole_would_be() -> None:
    """X10, I25: closed blocks together cost a stream no more than a whole message.

    Breaks when: each closed block has a budget of its own only.
    """
    block = "*a* _b_ [c](d) " * 60 + "\n\n"
    renderer = StreamRenderer()
    updates = [renderer.feed(block) for _ in range(80)]
    html = "".join(update.closed_html for update in updates)
    assert "<em>" in html
    assert '<p class="plain">' in html
    closed = html.count("<em>")
    assert closed * estimate(block) / 120 <= 160_000
    assert renderer.finish().startswith('<p class="plain">')
    assert StreamRenderer.split(block * 80)[0] == html


def test_a_piece_whose_parsing_is_given_up_is_plain() -> None:
    text = "># \na\n" * 2_000
    assert render_piece(text, Environment(), 1e12).startswith('<p class="plain">')
