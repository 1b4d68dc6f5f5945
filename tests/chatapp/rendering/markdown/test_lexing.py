"""Code that is highlighted in parts."""

from __future__ import annotations

import pytest
from pygments.lexers import get_lexer_by_name
from pygments.token import Comment, String, _TokenType

from chatapp.rendering.markdown import StreamRenderer, render
from chatapp.rendering.markdown.highlight import _LANGUAGES
from chatapp.rendering.markdown.lexing import BEGINNING, lexed
from tests.growth import cost

SAMPLES = {
    "python": 'def f(a: int) -> str:\n    """One.\n\n    Two "x"."""\n    return f"{a!r} {a}"\n'
    * 6,
    "javascript": "const a = `one\n${b + 1} two`;\nfunction f() { return /x+/.test(a); }\n" * 6,
    "html": '<div class="a">\n<p>Text &amp; more</p>\n</div>\n' * 6,
    "bash": 'for f in *.py; do\n  echo "$f is\n here"\ndone\n' * 6,
    "css": "@media print {\n  a > b { color: red; }\n}\n" * 6,
}


def alike(one: tuple[_TokenType, str], other: tuple[_TokenType, str]) -> bool:
    """Whether a sign looks the same. A docstring is told from other strings by its end only."""
    return one == other or not one[1].strip() or (one[0] in String and other[0] in String)


@pytest.mark.parametrize("language", SAMPLES)
def test_parts_are_lexed_as_the_whole(language: str) -> None:
    """Breaks when: a part begins anew, in the midst of a string."""
    lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    lines, stack, found = SAMPLES[language].splitlines(keepends=True), BEGINNING, []
    for line in lines:
        tokens, stack = lexed(lexer, line, stack)
        found += [(kind, sign) for kind, value in tokens for sign in value]
    whole = [(kind, sign) for kind, value in lexer.get_tokens(SAMPLES[language]) for sign in value]
    different = [one for one, other in zip(found, whole, strict=True) if not alike(one, other)]
    assert different == []


def test_a_comment_goes_on_in_the_next_part() -> None:
    """Breaks when: the beginning of a comment that is not closed yet is taken for code."""
    lexer = get_lexer_by_name("java", stripnl=False, ensurenl=False)
    first, stack = lexed(lexer, "int a;\n/* It says\n", BEGINNING)
    second, stack = lexed(lexer, " * class int\n", stack)
    third, stack = lexed(lexer, " */ int b;\n", stack)
    assert first[-1] == (Comment.Multiline, "/* It says\n")
    assert second == [(Comment.Multiline, " * class int\n")]
    assert third[0] == (Comment.Multiline, " */")
    assert [kind for kind, value in third if value == "int"] == [
        kind for kind, value in first if value == "int"
    ]
    assert stack == BEGINNING


@pytest.mark.parametrize("language", sorted(_LANGUAGES))
def test_nothing_of_the_code_is_lost(language: str) -> None:
    """Breaks when: a rule's action without a value is passed over, or a lexer of another kind is
    run by rules."""
    lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
    code, stack = "{\"a\": [1, 'b' # c\n/* d\n<e> $f @g %} ` \\\n\n\tend */ é", BEGINNING
    for part in code.splitlines(keepends=True):
        tokens, stack = lexed(lexer, part, stack)
        assert "".join(value for _, value in tokens) == part


def test_what_streams_looks_as_what_is_loaded() -> None:
    code = SAMPLES["javascript"] * 5
    closed, opened = StreamRenderer.split(f"```js\n{code}```\n")
    assert closed.count("<figure") > 2
    parts = (closed + opened).split("<code>")[1:]
    joined = "".join(part.partition("</code>")[0] for part in parts)
    assert joined == render(f"```js\n{code}```").partition("<code>")[2].partition("</code>")[0]


def test_x10_long_code_streams_in_linear_time() -> None:
    """X10. Breaks when: all of an open fence is highlighted at each flush."""
    code = f"```python\n{SAMPLES['python'] * 8}"
    pieces = [code[start : start + 20] for start in range(0, len(code), 20)]

    def stream(parts: list[str]) -> None:
        renderer = StreamRenderer()
        for part in parts:
            renderer.feed(part)

    half = pieces[: len(pieces) // 2]
    assert cost(lambda: stream(pieces)) < 3.5 * cost(lambda: stream(half))
