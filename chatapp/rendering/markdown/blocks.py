"""The Markdown engine: safe HTML of one piece of text.

CommonMark with tables, strikethrough, bare web addresses as links, and formulas as MathML. No HTML;
links only to the web and to mail addresses. Images become links and are never loaded, since loading
one tells its server what is being read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from typing import Any, Final
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.ruler import RuleOptionsType
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from chatapp.rendering.markdown.autolink import web_address
from chatapp.rendering.markdown.cost_estimate import (
    FORMULA_CHARACTER,
    HIGHLIGHT_CHARACTER,
    MESSAGE_BUDGET,
    TOTAL_BUDGET,
    TooMuchWork,
    Work,
    estimate,
)
from chatapp.rendering.markdown.formula_rules import add_formulas
from chatapp.rendering.markdown.formulas import FORMULA_MESSAGE, formula, source_of
from chatapp.rendering.markdown.highlight import (
    HIGHLIGHT_MESSAGE,
    code_figure,
    highlighted,
    highlighted_part,
    is_highlighted,
    language_of,
)
from chatapp.rendering.markdown.lexing import BEGINNING
from chatapp.rendering.markdown.sanitise import LINK_SCHEMES, LONG_CELL_CLASS, TASK_CLASS, sanitise
from chatapp.text.safety import visible

#: Lines that begin with a letter, separated by blank ones, and contain no sign that means anything
#: to the parser.
_LINE: Final = r"""[^\W\d_][\w ,.;:?!()'"-]*"""
_prose = re.compile(rf"{_LINE}(?:\n\n+{_LINE})*\n*")
#: Characters up to which a text is compared with ``_prose``.
_PROSE_LENGTH: Final = 3_000

#: The beginning of an item in a task list, and the box that is shown for it.
_task = re.compile(r"\[([ xX])\]\s+(?=\S)")
_BOXES: Final = {" ": "☐ ", "x": "☑ "}

#: Where plain text may end: only where one of our rules may begin, or a link's text end. The
#: parser's own list stops at every sign, and asking all rules there costs as much as a word.
_terminator = re.compile(r"[\n\\`*_~\[\]<]|!(?=\[)|&(?=[#A-Za-z])|:(?=//)|(?<!\$)\$(?=\S)")

_ALIGNMENTS: Final = {f"text-align:{side}": f"align-{side}" for side in ("left", "center", "right")}


#: Characters above which the text of a table's cell counts as long.
_LONG_CELL: Final = 40


class Environment:
    """State shared by the blocks of one message.

    It holds link definitions, and how many characters may still be highlighted or set as formulas.

    ``time_left``, in microseconds, limits both together; ``work`` limits the parsing of a piece.
    ``continued``: the piece is a later part of one long fence, which the lexer begins with
    ``stack``. ``open_block``: the piece is still being written. ``in_parts``: the text is a stream.
    """

    def __init__(self) -> None:
        self.references: dict[str, Any] = {}
        self.highlight_left = HIGHLIGHT_MESSAGE
        self.formulas_left = FORMULA_MESSAGE
        self.time_left = TOTAL_BUDGET
        self.work = Work("")
        self.continued = False
        self.open_block = False
        self.in_parts = False
        self.stack = BEGINNING

    def for_open_block(self) -> Environment:
        """A copy for a block that is rendered repeatedly; rendering with it changes nothing."""
        copy = Environment()
        copy.references = dict(self.references)
        copy.highlight_left = self.highlight_left
        copy.in_parts = self.in_parts
        copy.stack = self.stack
        copy.formulas_left = self.formulas_left
        copy.time_left = self.time_left
        copy.open_block = True
        copy.continued = self.continued
        return copy

    def may_highlight(self, code: str) -> bool:
        """Whether ``code`` is within what is left, which is then reduced."""
        time = len(code) * HIGHLIGHT_CHARACTER
        if len(code) > self.highlight_left or time > self.time_left:
            return False
        self.highlight_left -= len(code)
        self.time_left -= time
        return True

    def may_set(self, source: str) -> bool:
        """Whether a formula is within what is left, which is then reduced."""
        time = len(source) * FORMULA_CHARACTER
        if len(source) > self.formulas_left or time > self.time_left:
            return False
        self.formulas_left -= len(source)
        self.time_left -= time
        return True


def render_message(text: str) -> str:
    """Safe HTML of a whole message; call it in a thread above ``cost_estimate.LARGE`` characters.

    The text may be anyone's. The HTML has no element that loads or runs anything, and no attributes
    except ``class`` and ``dir`` (ours), ``href``, ``title``, ``start``, ``rel``, ``target`` and
    those of MathML that only place signs. It links only to http, https and mailto. A text that
    would take more than about 200 ms becomes one plain paragraph.
    """
    return render_piece(with_newlines(text), Environment(), MESSAGE_BUDGET)


def render_piece(text: str, environment: Environment, budget: float) -> str:
    """Safe HTML of ``text``; as plain text if parsing it would take more than ``budget`` (µs)."""
    if not text.strip():
        return ""
    if len(text) <= _PROSE_LENGTH and "_" not in text and _prose.fullmatch(text):
        # Most of what models write, and rendered again at each flush: no parsing is needed.
        lines = (line.rstrip(" ") for line in text.split("\n") if line)
        return visible("".join(f"<p>{line}</p>\n" for line in lines))
    time = estimate(text)
    budget = min(budget, environment.time_left)
    # Also spent on a piece shown as plain text, so that the rest of a stream is too, as the whole.
    environment.time_left -= time
    if time > budget:
        return plain(text)
    environment.work = Work(text)
    shared: EnvType = {"references": environment.references, "environment": environment}
    try:
        return sanitise(_parser.render(text, shared))
    except TooMuchWork:
        return plain(text)


def with_newlines(text: str) -> str:
    """``text`` with each CR LF and CR replaced by LF, as the parser does."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def plain(text: str) -> str:
    """``text`` as one paragraph without markup; the style sheet keeps its white space."""
    return sanitise(f'<p class="plain">{escape(text)}</p>\n')


class _Renderer(RendererHTML):
    """HTML of tokens: code in figures, tables in containers that scroll."""

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        token = tokens[idx]
        return _figure(token.content, language_of(token.info), env["environment"])

    def code_block(
        self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType
    ) -> str:
        return _figure(tokens[idx].content, "", env["environment"])

    def table_open(
        self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType
    ) -> str:
        return '<div class="table"><table>\n'

    def table_close(
        self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType
    ) -> str:
        return "</table></div>\n"

    def formula(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        display = bool(tokens[idx].meta["display"])
        return _formula(tokens[idx], env["environment"], display=display)

    def formula_block(
        self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType
    ) -> str:
        return f"<p>{_formula(tokens[idx], env['environment'], display=True)}</p>\n"

    def formula_source(
        self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType
    ) -> str:
        return f"<p>{source_of(tokens[idx].markup)}</p>\n"


def _formula(token: Token, environment: Environment, *, display: bool) -> str:
    html = formula(token.content, display=display) if environment.may_set(token.content) else ""
    if not html:
        return source_of(token.markup)
    return f'<span class="formula">{html}</span>' if display else html


def _figure(code: str, language: str, environment: Environment) -> str:
    if not (is_highlighted(code, language) and environment.may_highlight(code)):
        inner = escape(code)
    elif environment.in_parts:
        stack = environment.stack if environment.continued else BEGINNING
        inner, environment.stack = highlighted_part(code, language, stack)
    else:
        inner = highlighted(code, language)
    return code_figure(inner, language, continued=environment.continued)


class _Parser(MarkdownIt):
    """CommonMark with our list of link schemes."""

    def __init__(self) -> None:
        super().__init__("commonmark", {"html": False}, renderer_cls=_Renderer)
        self.inline.terminator_re = _terminator
        self.enable(["table", "strikethrough"])
        everywhere: RuleOptionsType = {"alt": ["paragraph", "reference", "blockquote", "list"]}
        self.block.ruler.before("table", "work", _spend, everywhere)
        self.inline.ruler.after("text", "web_addresses", web_address)
        add_formulas(self)
        self.core.ruler.push("images_to_links", _images_to_links)
        self.core.ruler.push("cell_classes", _cell_classes)
        # Before the inline rules, which could take "[x]" for a link.
        self.core.ruler.before("inline", "task_boxes", _task_boxes)

    def validateLink(self, url: str) -> bool:
        """Whether a target is absolute and its scheme allowed; otherwise the source is shown."""
        try:
            return urlsplit(url.strip()).scheme.lower() in LINK_SCHEMES
        except ValueError:  # such as an unclosed bracket in the host
            return False


def _spend(state: StateBlock, line: int, limit: int, silent: bool) -> bool:
    """Count one look at a line; a block rule that never applies and is asked before all others.

    To find the end of a quotation, the parser reads all lines up to the next blank one. If the
    quotation ends at the second line, it reads the others again.
    """
    last = line + 1
    if not silent and state.src.startswith(">", state.bMarks[line] + state.tShift[line]):
        while last < limit and not state.isEmpty(last):
            last += 1
    state.env["environment"].work.spend(last - line)
    return False


def _images_to_links(state: StateCore) -> None:
    for token in state.tokens:
        if token.children and any(child.type == "image" for child in token.children):
            token.children = _without_images(token.children, state)


def _without_images(tokens: list[Token], state: StateCore) -> list[Token]:
    """``tokens`` with each image replaced by a link with its text, or within a link by the text."""
    result: list[Token] = []
    depth = 0
    for token in tokens:
        depth += {"link_open": 1, "link_close": -1}.get(token.type, 0)
        if token.type != "image":
            result.append(token)
            continue
        alternative = _plain_words(token.children or [])
        text = Token("text", "", 0, content=alternative or "image")
        if depth:
            result.append(text)
            continue
        attributes = {"href": token.attrs["src"]}
        if "title" in token.attrs:
            attributes["title"] = token.attrs["title"]
        opening = Token("link_open", "a", 1, attrs=attributes)
        result += [opening, text, Token("link_close", "a", -1)]
    return result


def _plain_words(tokens: list[Token]) -> str:
    """The text of an image without markup."""
    words = []
    for token in tokens:
        if token.type in ("softbreak", "hardbreak"):
            words.append(" ")
        elif token.type == "image":
            words.append(_plain_words(token.children or []))
        else:
            words.append(token.content)
    return "".join(words)


def _cell_classes(state: StateCore) -> None:
    """Align columns by class, since the page's policy refuses style attributes.

    A cell with a long text gets a class too, so that it gets enough room before the table scrolls.
    """
    for number, token in enumerate(state.tokens):
        if token.type not in ("th_open", "td_open"):
            continue
        classes = [_ALIGNMENTS[str(token.attrs["style"])]] if "style" in token.attrs else []
        if len(state.tokens[number + 1].content) > _LONG_CELL:
            classes.append(LONG_CELL_CLASS)
        token.attrs = {"class": " ".join(classes)} if classes else {}


def _task_boxes(state: StateCore) -> None:
    """Replace [ ] or [x] at the start of an item by a box, which can be read aloud and copied."""
    for number, item in enumerate(state.tokens):
        if item.type != "list_item_open" or state.tokens[number + 1].type != "paragraph_open":
            continue
        inline = state.tokens[number + 2]
        if found := _task.match(inline.content):
            item.attrSet("class", TASK_CLASS)
            inline.content = _BOXES[found[1].lower()] + inline.content[found.end() :]


def _build() -> _Parser:
    parser = _Parser()
    # The first use compiles the rules, which two threads must not do at the same time.
    parser.render("*a*", {"environment": Environment()})
    return parser


_parser: Final = _build()
