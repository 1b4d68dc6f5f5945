"""The documents tell the truth: what they name is there, and every code of a test is explained."""

from __future__ import annotations

import ast
import html
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.documents import documents, in_backticks
from tests.test_architecture import ROOT, modules

DOCS = sorted((ROOT / "docs").rglob("*.md"))
ARCHITECTURE = ROOT / "docs" / "architecture.md"
CODES = ROOT / "docs" / "test-codes.md"
# What the page of the API names are addresses and fields: a test of its own runs it.
NAMING = [path for path in DOCS if path.name != "api.md"]
LINKING = documents()
FILE_ENDINGS = (
    "css",
    "html",
    "js",
    "md",
    "py",
    "service",
    "target",
    "template",
    "toml",
    "txt",
    "yml",
)
"""A name that ends so is a file's, with its folders before it."""
INVARIANTS = 32

_PATH = re.compile(r"[\w.@-]+(/[\w.@-]+)*/?")
_DOTTED = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+)(?:\(\))?")
_LINK = re.compile(r"\]\((?![a-z]+:)([^)#\s]*)(?:#([^)\s]+))?\)")
_CODE_IN_NAME = re.compile(r"([a-z]\d{1,2})(?=_)")
_CODE_IN_TEXT = re.compile(r"\b([A-Z]\d{1,2})\b")


def _named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _paths(path: Path) -> set[str]:
    return {
        text
        for text in in_backticks(path)
        if _PATH.fullmatch(text)
        and ("/" in text or text.rpartition(".")[2] in FILE_ENDINGS)
        # What running makes is not in the repository.
        and not text.startswith("var/")
    }


def _dotted(path: Path) -> set[str]:
    found = (_DOTTED.fullmatch(text) for text in in_backticks(path))
    return {match[1] for match in found if match} - _paths(path)


def _members(body: list[ast.stmt]) -> Iterator[tuple[str, ast.stmt]]:
    """The names that these statements define or import, each with its statement."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, node
        elif isinstance(node, ast.Assign):
            yield from ((name.id, node) for name in node.targets if isinstance(name, ast.Name))
        elif isinstance(node, ast.ImportFrom):
            yield from ((alias.asname or alias.name, node) for alias in node.names)


@cache
def _source() -> dict[str, ast.Module]:
    """Every module of the product and of the tests by its dotted name."""
    tests = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): ast.parse(path.read_text("utf-8"))
        for path in sorted((ROOT / "tests").rglob("*.py"))
    }
    return {**modules(), **tests}


@cache
def _defined(tree: ast.Module | ast.ClassDef) -> dict[str, ast.stmt]:
    """What a module or class defines or imports, by its name."""
    return dict(_members(tree.body))


def _holds(tree: ast.Module | ast.ClassDef, names: list[str]) -> bool:
    """Whether ``names`` lead from a module or class to a definition."""
    found = _defined(tree).get(names[0])
    if found is None or len(names) == 1:
        return found is not None
    return isinstance(found, ast.ClassDef) and _holds(found, names[1:])


@cache
def _places(dotted: str) -> list[str]:
    """The modules in which a name such as ``sending.accept`` or ``Turn.status`` is defined."""
    parts = dotted.split(".")
    if dotted in _source():
        return [dotted]
    if parts[0][0].isupper():
        return [
            name
            for name, tree in _source().items()
            if any(
                isinstance(node, ast.ClassDef) and node.name == parts[0] and _holds(node, parts[1:])
                for node in tree.body
            )
        ]
    return [
        name
        for name, tree in _source().items()
        for cut in range(1, len(parts))
        if f".{name}".endswith("." + ".".join(parts[:cut])) and _holds(tree, parts[cut:])
    ]


@cache
def _tests() -> dict[str, set[str]]:
    """Every test by its name, with its codes; two of one name have theirs together."""
    found: dict[str, set[str]] = {}
    for name, tree in _source().items():
        if not name.startswith("tests."):
            continue
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if node.name.startswith("test_"):
                codes = _codes_of(node.name, ast.get_docstring(node) or "")
                found.setdefault(node.name, set()).update(codes)
    return found


def _codes_of(name: str, docstring: str) -> set[str]:
    """``I5`` and ``N02`` of ``test_i5_n02_…`` and of the head of its docstring."""
    leading = re.match(r"test_((?:[a-z]\d{1,2}_)+)", name)
    in_name = {code.upper() for code in _CODE_IN_NAME.findall(leading[1])} if leading else set()
    head = docstring.partition("Breaks when")[0]
    return in_name | {code for code in _CODE_IN_TEXT.findall(head) if _is_ours(code)}


def _is_ours(code: str) -> bool:
    letter, number = code[0], code[1:]
    return number[0] != "0" if letter == "I" else len(number) == 2


def _rows(path: Path) -> dict[str, str]:
    """The rows of a document's tables that begin with a code -> the rest of the row."""
    rows = re.findall(r"^\| \*\*([A-Z]\d+)\*\* \|(.+)\|$", path.read_text("utf-8"), re.MULTILINE)
    assert len(rows) == len(dict(rows)), "a code has two rows"
    return dict(rows)


def test_there_is_something_to_check() -> None:
    assert {"architecture.md", "test-codes.md"} <= {path.name for path in DOCS}
    assert len(_paths(ARCHITECTURE)) > 20
    assert len(_dotted(ARCHITECTURE)) > 40


@pytest.mark.parametrize("path", NAMING, ids=_named)
def test_files_that_are_named_exist(path: Path) -> None:
    """Breaks when: a file is moved and a document still says where it was."""
    assert [one for one in sorted(_paths(path)) if not (ROOT / one).exists()] == []


@pytest.mark.parametrize("path", NAMING, ids=_named)
def test_functions_that_are_named_exist(path: Path) -> None:
    """Each in one place: ``messages.send`` would be a view and an action.

    Breaks when: a function is renamed and a document still has its old name.
    """
    wrong = {name: _places(name) for name in _dotted(path) if len(_places(name)) != 1}
    assert wrong == {}


@pytest.mark.parametrize("path", DOCS, ids=_named)
def test_tests_that_are_named_exist(path: Path) -> None:
    """Breaks when: a test is renamed and a document still has its old name."""
    named = {text for text in in_backticks(path) if re.fullmatch(r"test_\w+", text)}
    assert named - set(_tests()) == set()


def _anchors(path: Path) -> set[str]:
    """The places in a document that a link may lead to."""
    headings = re.findall(r"^#+ (.+)$", path.read_text("utf-8"), re.MULTILINE)
    shown = (html.unescape(one).lower() for one in headings)
    return {re.sub(r"[^\w\- ]", "", one).replace(" ", "-") for one in shown}


@pytest.mark.parametrize("path", LINKING, ids=_named)
def test_links_lead_somewhere(path: Path) -> None:
    """Breaks when: a file is moved, or a heading reworded, that another document links to."""
    wrong = []
    for target, anchor in _LINK.findall(path.read_text("utf-8")):
        there = (path.parent / target) if target else path
        if not there.exists() or (anchor and anchor not in _anchors(there)):
            wrong.append(f"{target}#{anchor}" if anchor else target)
    assert wrong == []


def test_every_invariant_names_tests_that_hold_it() -> None:
    """Each test of a row says by its name or in its docstring which invariant it is for.

    Breaks when: an invariant is left out of the table, or its test is renamed or taken away.
    """
    rows = _rows(ARCHITECTURE)
    assert list(rows) == [f"I{number}" for number in range(1, INVARIANTS + 1)]
    wrong = []
    for code, row in rows.items():
        named = re.findall(r"`(test_\w+)`", row)
        wrong += [code] if not named else []
        wrong += [f"{code}: {test}" for test in named if code not in _tests().get(test, set())]
    assert wrong == []


def test_every_code_of_a_test_is_explained() -> None:
    """And nothing is explained that no test has.

    Breaks when: a test gets a new code and ``docs/test-codes.md`` no row for it.
    """
    used = set().union(*_tests().values())
    explained = {**_rows(ARCHITECTURE), **_rows(CODES)}
    assert {code[0] for code in used} > {"I", "N", "X"}
    assert used ^ set(explained) == set()
