"""Code blocks: highlighting by CSS classes, and the frame around them."""

from __future__ import annotations

import re
from functools import lru_cache
from html import escape
from typing import Final

import pygments
from pygments import highlight
from pygments.formatters.html import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name

from chatapp.rendering.markdown.lexing import Stack, lexed
from chatapp.rendering.markdown.sanitise import HIGHLIGHT_PREFIX

#: Characters of highlighted code in one message, at 6 µs each if it is dense; later blocks are not
#: highlighted.
HIGHLIGHT_MESSAGE: Final = 20_000
#: Characters of a line; longer ones are minified or data, and some lexers are quadratic in them.
HIGHLIGHT_LINE: Final = 1_000
_LABEL_LENGTH = 40

# Only these, since for an unknown name Pygments would search the installed packages for plugins.
_NAMES = (
    "bash c c# c++ clojure cmake cpp cs csharp css dart diff docker dockerfile elixir erlang go"
    " golang graphql haskell html hs http ini java javascript jinja js json jsx julia kotlin latex"
    " less lua make makefile markdown md nginx nix objective-c ocaml perl php powershell proto ps1"
    " py python r rb rs ruby rust sass scala scss sh shell sql swift terraform tex toml ts"
    " tsx typescript vim vue xml yaml yml zig zsh"
)
_LANGUAGES = frozenset(_NAMES.split())

_formatter = HtmlFormatter(nowrap=True, classprefix=HIGHLIGHT_PREFIX)
_long_line = re.compile(rf"[^\n]{{{HIGHLIGHT_LINE + 1}}}")


def language_of(info: str) -> str:
    """The label of a fence: the first word of its info string, at most 40 characters."""
    words = info.split(maxsplit=1)
    return words[0][:_LABEL_LENGTH] if words else ""


def is_highlighted(code: str, language: str) -> bool:
    """Whether ``code`` is small enough and its language is known."""
    return (
        language.lower() in _LANGUAGES
        and len(code) <= HIGHLIGHT_MESSAGE
        and not _long_line.search(code)
    )


def highlighted(code: str, language: str) -> str:
    """A whole block of code as HTML."""
    return str(highlight(code, _lexer(language.lower()), _formatter))


def highlighted_part(code: str, language: str, stack: Stack) -> tuple[str, Stack]:
    """A part of a block as HTML, lexed on from ``stack``; and the stack at its end."""
    tokens, stack = lexed(_lexer(language.lower()), code, stack)
    return str(pygments.format(tokens, _formatter)), stack


def code_figure(inner: str, language: str, *, continued: bool) -> str:
    """A block of code, already HTML, in its frame; ``continued``: a later part of a long block."""
    kind = "code continued" if continued else "code"
    return (
        f'<figure class="{kind}"><figcaption>{escape(language)}</figcaption>'
        f"<pre><code>{inner}</code></pre></figure>\n"
    )


@lru_cache(maxsize=len(_LANGUAGES))
def _lexer(language: str) -> Lexer:
    # Cached, since finding a lexer searches a table of 500. A lexer keeps no state between texts.
    return get_lexer_by_name(language, stripnl=False, ensurenl=False)
