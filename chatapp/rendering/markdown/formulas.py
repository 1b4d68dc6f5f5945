"""Mathematics in LaTeX as MathML, which browsers show without a script.

docutils reads the LaTeX: it is nearly linear, has no macros and refuses what it does not know.
(Also considered: latex2mathml passes text through as HTML and expands macros without limit;
math-core takes 2^n steps for n open parentheses and overflows its stack.) A formula that is
refused, too long or nested too deeply is shown as its source.
"""

from __future__ import annotations

import re
from functools import lru_cache
from html import escape
from typing import TYPE_CHECKING, Final

# Imported with the first formula.
if TYPE_CHECKING:
    from docutils.utils.math.mathml_elements import MathElement

#: Characters of a formula; the longest derivations that models write have a third of that.
FORMULA_LENGTH: Final = 2_000
#: Characters of all formulas in one message, at about 10 µs each.
FORMULA_MESSAGE: Final = 8_000
#: Nested elements; browsers lay each level out several times.
_DEPTH: Final = 30

#: Commands that models write but docutils does not know (or, for ``boldsymbol``, does not end),
#: each with a near equivalent.
_SYNONYMS: Final = {
    **dict.fromkeys(("big", "Big", "bigg", "Bigg", "displaystyle", "nonumber", "notag"), ""),
    **dict.fromkeys(("textbf", "textit", "textsf", "texttt", "mathop"), r"\text"),
    **dict.fromkeys(("dots", "dotsc", "dotso"), r"\ldots "),
    **dict.fromkeys(("bm", "boldsymbol", "pmb"), r"\mathbf"),
    **{"iff": r"\Longleftrightarrow ", "middle": "", "dotsb": r"\cdots "},
}
_synonym = re.compile(rf"\\({'|'.join(sorted(_SYNONYMS, key=len, reverse=True))})(?![a-zA-Z]) ?")
_single_row = re.compile(r"\\(?:begin|end)\{(?:equation|math|displaymath)\*?\}")
_rows = re.compile(r"\\(begin|end)\{(?:align|gather|split|gathered|multline|eqnarray)\*?\}")
_array = re.compile(r"\\begin\{array\} *\{[lcr ]*\}")
_digits = re.compile(r"(\\[dt]?frac) ?(\d) ?(\d)")
#: The invisible sign between a function and its argument: a thin space, but none before a bracket.
_application = re.compile(r"<mo>&ApplyFunction;</mo>(<mo|<mrow><mo)?")
#: Before a function there is one too, after a letter or a number.
_function = re.compile(r"(?<=</m[in]>)(?=<mi[^>]*>[a-z]+</mi><mo>&ApplyFunction;)")
_THIN: Final = '<mspace width="0.17em"></mspace>'
#: A space of any width could push the page apart; an optional argument that contains ``\]`` takes
#: docutils 2^n steps.
_refused = re.compile(r"\\[hm]space|\\\]")


@lru_cache(maxsize=256)
def formula(source: str, *, display: bool) -> str:
    """MathML of LaTeX, not yet sanitised; empty if it cannot be set. Cached, since a block that is
    being written is rendered repeatedly."""
    if len(source) > FORMULA_LENGTH or _refused.search(source):
        return ""
    from docutils.utils.math.latex2mathml import parse_latex_math
    from docutils.utils.math.mathml_elements import math

    root = math(alttext=source.strip())
    if display:
        root.set("display", "block")
    try:
        parse_latex_math(root, _in_known_words(source.strip(), display=display))
        if not len(root) or _depth(root) > _DEPTH:
            return ""
        _index_accented(root)
        html = _application.sub(_spaced, _function.sub(_THIN, root.toxml()))
    except Exception:
        # It raises many kinds of errors, such as an AttributeError for a brace too many.
        return ""
    # Only Firefox knows this element; the style sheet draws its box in all browsers.
    return html.replace('<menclose notation="box" ', "<mrow ").replace("</menclose>", "</mrow>")


def source_of(source: str) -> str:
    """A formula that is not set, as HTML: its unchanged LaTeX with the signs around it."""
    return f'<code class="formula">{escape(source)}</code>'


def _in_known_words(source: str, *, display: bool) -> str:
    from docutils.utils.math import toplevel_code

    source = _single_row.sub("", source)
    source = _rows.sub(r"\\\1{aligned}", source)
    if r"\begin{array}" in source:
        source = _array.sub(r"\\begin{matrix}", source).replace(r"\end{array}", r"\end{matrix}")
    source = _synonym.sub(lambda match: _SYNONYMS[match[1]], source)
    source = _digits.sub(r"\1{\2}{\3}", source)
    if display and r"\\" in toplevel_code(source):
        source = rf"\begin{{aligned}}{source}\end{{aligned}}"
    return source.replace("\t", " ")


def _spaced(application: re.Match[str]) -> str:
    bracket = application[1]
    return f'<mspace width="0"></mspace>{bracket}' if bracket else _THIN


def _index_accented(root: MathElement) -> None:
    """Set the index of a letter with an accent beside it: docutils puts it below, as a limit."""
    from docutils.utils.math.mathml_elements import mover

    for parent in list(root.iter()):
        for element in parent:
            if element.tag != "munderover" or element[0].tag == "mo" or element[2].tag != "mo":
                continue
            base, index, accent = element
            accented = mover(base, accent, accent=True)
            if parent.tag == "msup" and element is parent[0]:
                # An exponent stands above the index.
                _become(parent, "msubsup", accented, index, parent[1])
            else:
                _become(element, "msub", accented, index)


def _become(element: MathElement, tag: str, *children: MathElement) -> None:
    element.clear()
    element.tag, element.nchildren = tag, len(children)
    element.extend(children)


def _depth(root: MathElement) -> int:
    depth, level = 0, [root]
    while level and depth <= _DEPTH:
        depth += 1
        level = [child for element in level for child in element]
    return depth
