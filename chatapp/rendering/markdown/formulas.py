"""Mathematics in LaTeX as MathML, which every present browser shows without a script.

docutils reads the LaTeX: it is linear enough, has no macros and refuses what it does not know.
(Looked at beside it: latex2mathml writes text through as HTML and expands macros without bound;
math-core takes 2^n steps for n open parentheses and overflows its stack.) What is refused, too long
or nested too deep is shown as its source.
"""

from __future__ import annotations

import re
from functools import lru_cache
from html import escape
from typing import Final

from docutils.utils.math import toplevel_code
from docutils.utils.math.latex2mathml import parse_latex_math
from docutils.utils.math.mathml_elements import MathElement, math

#: Characters a formula may have to be set; the longest derivations of models have a third of it.
FORMULA_LENGTH: Final = 2_000
#: Characters of formulas that are set in one message: about 10 µs each.
FORMULA_MESSAGE: Final = 8_000
#: Elements within each other: browsers lay each of them out several times.
_DEPTH: Final = 30

#: Commands that models write and docutils does not know (or, as ``boldsymbol``, does not end), and
#: what says nearly the same.
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
#: A width of any size would push the page about; an optional argument with ``\]`` in it takes the
#: reader 2^n steps.
_refused = re.compile(r"\\[hm]space|\\\]")


@lru_cache(maxsize=256)
def formula(source: str, *, display: bool) -> str:
    """MathML of LaTeX, not yet sanitised; empty when it cannot be set. Remembers the last ones,
    since a block that is being written is rendered again and again."""
    if len(source) > FORMULA_LENGTH or _refused.search(source):
        return ""
    root = math(alttext=source.strip())
    if display:
        root.set("display", "block")
    try:
        parse_latex_math(root, _in_known_words(source.strip(), display=display))
        if not len(root) or _depth(root) > _DEPTH:
            return ""
        html: str = root.toxml()
    except Exception:
        # It raises many kinds, as an AttributeError for a brace too much; each says the same.
        return ""
    # An element that only Firefox knows, whose box the style sheet draws for all.
    return html.replace('<menclose notation="box" ', "<mrow ").replace("</menclose>", "</mrow>")


def source_of(source: str) -> str:
    """A formula that is not set, as HTML: its LaTeX with the signs around it, untouched."""
    return f'<code class="formula">{escape(source)}</code>'


def _in_known_words(source: str, *, display: bool) -> str:
    source = _single_row.sub("", source)
    source = _rows.sub(r"\\\1{aligned}", source)
    if r"\begin{array}" in source:
        source = _array.sub(r"\\begin{matrix}", source).replace(r"\end{array}", r"\end{matrix}")
    source = _synonym.sub(lambda match: _SYNONYMS[match[1]], source)
    source = _digits.sub(r"\1{\2}{\3}", source)
    if display and r"\\" in toplevel_code(source):
        source = rf"\begin{{aligned}}{source}\end{{aligned}}"
    return source.replace("\t", " ")


def _depth(root: MathElement) -> int:
    depth, level = 0, [root]
    while level and depth <= _DEPTH:
        depth += 1
        level = [child for element in level for child in element]
    return depth
