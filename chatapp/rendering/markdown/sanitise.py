"""The second line of defence: only HTML on this list reaches a page.

The renderer already escapes all HTML. This list is enforced by another program (nh3, which parses
HTML into a tree as browsers do), so that a mistake in one of the two does no harm.
"""

from __future__ import annotations

from typing import Final

import nh3
from pygments.token import STANDARD_TYPES

from chatapp.text.safety import clean, visible

HIGHLIGHT_PREFIX: Final = "hl-"
LINK_SCHEMES: Final = frozenset({"http", "https", "mailto"})
TASK_CLASS: Final = "task"
LONG_CELL_CLASS: Final = "long"

_TAG_NAMES = (
    "a blockquote br code del div em figcaption figure h1 h2 h3 h4 h5 h6 hr li ol p pre s span"
    " strong table tbody td th thead tr ul"
)
#: The part of MathML that formulas need; none of it loads, links or runs anything.
_MATH_NAMES = (
    "math mfrac mi mn mo mover mphantom mroot mrow mspace msqrt msub msubsup msup mtable mtd mtext"
    " mtr munder munderover"
)
_STYLE = {"displaystyle", "scriptlevel"}
_MATH_ATTRIBUTES = {
    "math": {"alttext", "display", *_STYLE},
    "mfrac": {"linethickness", *_STYLE},
    "mi": {"mathvariant"},
    "mo": {
        *("accent", "form", "lspace", "maxsize", "minsize", "movablelimits", "rspace"),
        *("scriptlevel", "stretchy", "symmetric"),
    },
    "mover": {"accent"},
    "mrow": _STYLE,
    "mspace": {"width"},
    "mtable": _STYLE,
    "munder": {"accent"},
    "munderover": {"accent"},
}
_CELLS = {"align-left", "align-center", "align-right", LONG_CELL_CLASS}
_CLASSES = {
    "code": {"formula"},
    "div": {"table"},
    "figure": {"code", "continued"},
    "li": {TASK_CLASS},
    "p": {"plain"},
    "mrow": {"boxed"},
    "mtable": {"ams-align", "cases"},
    "span": {"formula"} | {HIGHLIGHT_PREFIX + name for name in STANDARD_TYPES.values() if name},
    "td": _CELLS,
    "th": _CELLS,
}

#: Elements whose layout (bullets, lines, columns) follows the direction of their first letter.
_DIRECTED = ("blockquote", "ol", "table", "ul")

_cleaner = nh3.Cleaner(
    tags={*_TAG_NAMES.split(), *_MATH_NAMES.split()},
    clean_content_tags={"script", "style"},
    attributes={"a": {"href", "title"}, "ol": {"start"}, **_MATH_ATTRIBUTES},
    allowed_classes=_CLASSES,
    url_schemes=set(LINK_SCHEMES),
    url_relative="deny",
    link_rel="noopener noreferrer nofollow",
    set_tag_attribute_values={"a": {"target": "_blank"}}
    | {name: {"dir": "auto"} for name in _DIRECTED},
    strip_comments=True,
)


def sanitise(html: str) -> str:
    """``html`` reduced to the allow-list, with deceptive characters made visible.

    This comes after the decoding of character references, so that ``&#x202e;`` is caught too.
    """
    return visible(_cleaner.clean(clean(html)))
