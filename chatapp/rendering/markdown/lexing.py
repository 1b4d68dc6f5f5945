"""Code in parts: the lexer goes on in a later part as it stood at the end of the one before.

Pygments lexes whole texts. While a long block streams, its finished parts are on the screen
already, and lexing them again at each flush would take quadratic time. So this runs a lexer's rules
itself, as ``RegexLexer`` does, and keeps the stack of states.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from pygments.lexer import Lexer, RegexLexer
from pygments.token import Comment, Error, Whitespace, _TokenType

Stack = tuple[str, ...]
Tokens = list[tuple[_TokenType, str]]

BEGINNING: Final[Stack] = ("root",)
#: States within each other, of which the outermost are kept.
_DEEPEST: Final = 50
#: A comment that goes on: lexers match it whole, and would take its beginning for code.
_COMMENT: Final = "/*"


def lexed(lexer: Lexer, code: str, stack: Stack) -> tuple[Tokens, Stack]:
    """The tokens of ``code``, and the stack at its end.

    A lexer that is more than rules begins anew with each part.
    """
    before: Tokens = []
    if stack[-1] == _COMMENT:
        end = code.find("*/") + 2
        if end < 2:
            return [(Comment.Multiline, code)], stack
        before, code, stack = [(Comment.Multiline, code[:end])], code[end:], stack[:-1]
    begin = _open_comment(code) if _has_comments(lexer) else len(code)
    if _is_rules_only(lexer):
        tokens, stack = _run(lexer, code[:begin], stack)
    else:
        tokens, stack = list(lexer.get_tokens(code[:begin])), BEGINNING
    if begin == len(code):
        return before + tokens, stack
    return [*before, *tokens, (Comment.Multiline, code[begin:])], (*stack, _COMMENT)


def _open_comment(code: str) -> int:
    """Where a comment begins on a line of its own that does not end in ``code``, or its length."""
    begin = code.rfind("/*")
    line = code.rfind("\n", 0, begin) + 1 if begin >= 0 else 0
    if begin < 0 or code[line:begin].strip() or code.find("*/", begin + 2) >= 0:
        return len(code)
    return begin


@lru_cache
def _has_comments(lexer: Lexer) -> bool:
    """Whether the language has comments between ``/*`` and ``*/``."""
    return any(kind in Comment for kind, _ in lexer.get_tokens("/* */\n"))


def _is_rules_only(lexer: Lexer) -> bool:
    own = getattr(type(lexer), "get_tokens_unprocessed", None)
    return own is RegexLexer.get_tokens_unprocessed


def _run(lexer: Any, text: str, stack: Stack) -> tuple[Tokens, Stack]:
    """The tokens of a text by the rules of a lexer that begins with this stack."""
    found: Tokens = []
    states, position = [*stack], 0
    while position < len(text):
        for matches, action, change in lexer._tokens[states[-1]]:
            match = matches(text, position)
            if not match:
                continue
            if isinstance(action, _TokenType):
                found.append((action, match.group()))
            elif action is not None:
                found += [(kind, value) for _, kind, value in action(lexer, match)]
            position = match.end()
            if change is not None:
                _change(states, change)
            break
        else:
            if text[position] == "\n":
                states = [*BEGINNING]
            found.append((Whitespace if text[position] == "\n" else Error, text[position]))
            position += 1
    return found, tuple(states[:_DEEPEST])


def _change(states: list[str], change: tuple[str, ...] | int | str) -> None:
    """Change the stack as a rule demands; its first state stays."""
    if isinstance(change, int):
        del states[max(1, len(states) + change) :]
        return
    for one in change if isinstance(change, tuple) else (change,):
        if one == "#pop":
            del states[max(1, len(states) - 1) :]
        else:
            states.append(states[-1] if one == "#push" else one)
