"""Mathematics: what is set, what is shown as its source, and at what cost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatapp.rendering.markdown import StreamRenderer, render
from chatapp.rendering.markdown.cost_estimate import MESSAGE_BUDGET, estimate
from chatapp.rendering.markdown.formulas import FORMULA_LENGTH, FORMULA_MESSAGE, formula
from chatapp.rendering.markdown.unfinished import HELD_DISPLAY
from tests.chatapp.rendering.inert import assert_inert
from tests.growth import cost

SQUARE = "<msup><mi>a</mi><mn>2</mn></msup></math>"


def test_it_works() -> None:
    assert render(r"So \(a^2\).") == f'<p>So <math alttext="a^2">{SQUARE}.</p>\n'
    displayed = f'<span class="formula"><math alttext="a^2" display="block">{SQUARE}</span>'
    assert render(r"So \[a^2\].") == f"<p>So {displayed}.</p>\n"
    for block in ("\\[\na^2\n\\]", "$$\na^2\n$$", "$$a^2$$", r"\[ a^2 \]"):
        assert render(f"So\n{block}\nand") == f"<p>So</p>\n<p>{displayed}</p>\n<p>and</p>\n"


@pytest.mark.parametrize(
    ("source", "elements"),
    [
        (r"\hat{y}_i", "<msub><mover"),
        (r"\bar x_{ij}", "<msub><mover"),
        (r"\tilde{a}_k^2", "<msubsup><mover"),
        (r"\sum^n_i x", "<munderover><mo"),
        (r"\overset{!}{=}_k", "<munderover><mo"),
    ],
)
def test_the_index_of_an_accented_letter_stands_beside_it(source: str, elements: str) -> None:
    """Breaks when: an index is set as a limit below the letter, or the limits of a sum are not."""
    html = formula(source, display=True)
    assert elements in html
    assert ("munderover" in html) == ("munderover" in elements)


def test_a_function_has_a_space_before_it_and_before_its_argument() -> None:
    """Breaks when: the invisible sign that docutils puts there is shown as a code in brackets."""
    html = render(r"\(n \log m + \sin(x)\)")
    thin = '<mspace width="0.17em"></mspace>'
    assert "U+2061" not in html
    assert f"<mi>n</mi>{thin}<mi>log</mi>{thin}<mi>m</mi>" in html
    assert '<mo>+</mo><mi>sin</mi><mspace width="0"></mspace><mo' in html


@pytest.mark.parametrize(
    "text",
    [
        *(
            "It costs $5 or $6.",
            "I pay $$ for it, you $$$.",
            "I pay $$ for it, you $$ too.",
            r"\\(a\\)",
            r"`\(a\)`",
            r"\(\)",
            "$$$$",
        ),
        *("```\n\\[a\\]\n```", "    $$a$$", "\\[\n\na\n\\]", r"\(a", "$$", "\\[\na"),
    ],
)
def test_what_is_no_formula_stays_text(text: str) -> None:
    """Breaks when: a single dollar opens a formula, or a blank line does not end one."""
    html = render(text)
    assert "<math" not in html
    assert 'class="formula"' not in html


@pytest.mark.parametrize(
    "text",
    [
        "1. a\n   \\[\n   {}\n   \\]\n2. b",
        "> $$\n> {}\n> $$",
        "| a |\n|---|\n|\\({}\\)|",
        "*a \\({}\\)*",
    ],
)
def test_a_formula_may_stand_within_other_blocks(text: str) -> None:
    assert render(text.replace("{}", "a^2")).count(SQUARE) == 1


def test_a_line_that_is_deep_in_goes_on_with_its_quotation() -> None:
    """Breaks when: ``_block`` takes a line that four spaces make no block of its own."""
    html = render("> a\n    $$a^2$$")
    assert html.index("<math") < html.index("</blockquote>")


def test_markdown_means_nothing_within_a_formula() -> None:
    """Breaks when: the rule of formulas comes after that of lists or of escapes."""
    html = render("\\[\na\n- b_1 *c* d_2\n+ e\n\\]")
    assert html.count("<math") == 1
    assert "<em>" not in html
    assert "<li>" not in html


@pytest.mark.parametrize(
    "source",
    [
        *(r"\dfrac12 + \tfrac{1}{2}", r"x_1, \dots, x_n", r"a \iff b", r"\big( x \big)", r"\bm{x}"),
        *(r"\begin{align*} a &= b \\ c &= d \end{align*}", r"a &= b \\ c &= d", r"\textbf{if } x"),
        *(r"\begin{array}{lc} 1 & 2 \\ 3 & 4 \end{array}", r"\begin{equation}x\end{equation}"),
        *(r"\begin{cases} 1 & x<0 \\ 0 & \text{else} \end{cases}", r"\boxed{x}", r"P(A \mid B)"),
        *(
            r"\operatorname{softmax}(x)",
            r"\lim_{x \to 0}",
            r"\left\{ \frac{a}{b} \right\}",
            "f'(x)",
        ),
    ],
)
def test_what_models_write_is_set(source: str) -> None:
    html = render(f"\\[{source}\\]")
    assert "<math" in html
    assert_inert(html)


@pytest.mark.parametrize(
    "source",
    [
        *(
            r"\unknown{x}",
            r"\def\a{\a\a}\a",
            r"\newcommand{\a}{b}\a",
            r"\href{https://x.example}{x}",
        ),
        *(r"\frac{1}", "x} y", r"\begin{tikz}a\end{tikz}", r"\hspace{999em}x", r"\require{x}", "^"),
        *(
            "x+" * FORMULA_LENGTH,
            "x^{" * 100 + "y" + "}" * 100,
            r"\sqrt" * 200 + "x",
            r"\sqrt[" + r"\]" * 60,
        ),
    ],
)
def test_what_cannot_be_set_is_shown_as_its_source(source: str) -> None:
    """Breaks when: ``formula`` lets an exception out, or looks at neither length nor depth."""
    shown = source.replace("&", "&amp;")
    for text in (f"a \\({source}\\) b", f"a $${source}$$ b"):
        html = render(text)
        assert f'<code class="formula">{text[2:-2].replace(source, shown)}</code>' in html
        assert "<math" not in html


def test_the_source_stands_beside_the_formula() -> None:
    html = render(r"\(a < \text{\"x}\)")
    assert r'alttext="a &lt; \text{\&quot;x}"' in html


def test_formulas_are_bounded_for_a_message() -> None:
    """Breaks when: ``formulas_left`` is never spent."""
    formulas = FORMULA_MESSAGE // 1_000
    text = "\\(" + "x+" * 499 + "xy\\) and\n\n"
    html = render(text * (formulas + 3))
    assert html.count("<math") == formulas
    assert html.count("<code") == 3


def test_an_unfinished_formula_is_held_back_and_changes_nothing_else() -> None:
    """Breaks when: ``completed`` passes over displayed formulas, or reads on within one."""
    text = "Some *words*:\n\\[\na_1\n- *b*\n\\]\nand \\(c_1 + d_2\\) more"
    first, second = text.index("\\["), text.index("\\(")
    for offset in range(len(text) + 1):
        html = "".join(StreamRenderer.split(text[:offset]))
        if offset > len("Some *words*:"):
            assert "Some <em>words</em>:" in html
        if first + 2 < offset < text.index("\\]") + 2:
            assert html.endswith(":</p>\n<p>…</p>\n")
        if second + 2 < offset < text.index("\\)") + 2:
            assert html.endswith("<p>and</p>\n")
    assert html == render(text)


def test_an_unfinished_formula_that_grows_too_long_is_its_source() -> None:
    """Breaks when: ``for_open_block`` does not say that the block is open."""
    displayed = "\\[" + "x + " * (HELD_DISPLAY // 4)
    assert "".join(StreamRenderer.split(displayed)) == (
        f'<p><code class="formula">{displayed.strip()}</code></p>\n'
    )


UNITS = [
    *(
        "{",
        "}",
        r"\frac{",
        r"\frac",
        r"\sqrt[",
        r"\sqrt[\}",
        "x^{",
        r"\left(",
        "(",
        "\\",
        r"\\",
        "&",
    ),
    *(r"\begin{matrix}", r"\end{matrix}", r"\text{", r"\text{$", r"\hat", r"\mathbf{", r"\not{"),
    *(
        r"\xrightarrow[",
        r"\pmod{",
        r"\def\a{\a\a}",
        "^",
        "_",
        "'",
        "1,",
        "\n",
        "é",
        "\x00",
        '"',
        "<",
    ),
]


@pytest.mark.parametrize("unit", UNITS)
def test_x10_a_hostile_formula_takes_a_bounded_time(unit: str) -> None:
    """X10: at the length that is set at most."""
    common = (r"\frac{-b \pm \sqrt{b^2 - 4ac}}{2a} + " * 100)[: FORMULA_LENGTH - 20]
    common = common[: common.rindex("+")] + "x"
    hostile = (unit * FORMULA_LENGTH)[:FORMULA_LENGTH]
    set_anew = formula.__wrapped__
    assert set_anew(common, display=True)
    assert cost(lambda: set_anew(hostile, display=True)) < 10 * cost(
        lambda: set_anew(common, display=True)
    )


@pytest.mark.parametrize(
    "unit",
    [
        *(
            "\\[\n",
            "$$\n",
            r"\(",
            r"\[",
            "$$ ",
            "$$a",
            "- \\[\n",
            "> $$\n",
            r"\(a\)",
            "\\\\",
            "![\\(",
        ),
        *("\\[\n\n", "$$a\n", "\\[a\\] b\n"),
    ],
)
def test_x10_what_opens_formulas_takes_a_linear_time(unit: str) -> None:
    """X10. Breaks when: each opening sign looks for its end anew."""
    short, long = unit * (2_000 // len(unit)), unit * (16_000 // len(unit))
    assert estimate(short) < MESSAGE_BUDGET
    assert cost(lambda: render(long)) < 40 * cost(lambda: render(short)) + 0.01
    assert render("\\" * 100_000)


@given(
    st.lists(st.sampled_from([*UNITS, r"\(", r"\)", r"\[", r"\]", "$$", "\n", "\n\n", "- ", "> "]))
)
def test_any_mixture_renders_inert(parts: list[str]) -> None:
    text = "".join(parts)
    assert_inert(render(text))
    assert_inert("".join(StreamRenderer.split(text)))


@pytest.mark.parametrize(
    ("text", "formulas"),
    [
        *((f"a ${source}$ b", 1) for source in ("x", "x_1 * y_2", r"\frac{a}{b}", r"a \$ b", "5")),
        *((text, 0) for text in ("$5 and $10", "$5 and US$ 7", "$ x$", "$x $", "$x$5", "a\\$x$")),
        *((text, 0) for text in ("$5/$10", "$5–$7", "US$x$", "$5 million and $", "$a\n\nb$")),
        ("the $n$th of $x$-axis ($y$).", 3),
        ("**$5**–**$6** and `$x$`", 0),
    ],
)
def test_single_dollars_enclose_a_formula_but_prices_are_text(text: str, formulas: int) -> None:
    """Breaks when: blanks beside the dollars, or a digit behind, are not looked at."""
    assert render(text).count("<math") == formulas


def test_backslashes_of_a_formula_are_kept() -> None:
    """Breaks when: the rule for escapes comes first."""
    assert r'alttext="\{x\} \, y"' in render(r"So $\{x\} \, y$.")
    assert "\\\\" in render(r"$a \\ b$")


@pytest.mark.parametrize("unit", ["$a ", "$a", "a$", "$1 ", "\\$", "$`", "$a$ "])
def test_x10_dollars_are_linear(unit: str) -> None:
    """X10."""
    assert cost(lambda: render(unit * (20_000 // len(unit)))) < 3.0
