"""The rules of the house: who may import whom, where the database is touched, and how long is long.

Each test names what breaks the rule and where. A rule that a module has to break for a reason is
written down below with that reason.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("chatapp", "compression")
MODULE_LINES = 400
FUNCTION_LINES = 50
PACKAGE_MODULES = 15
CLASS_METHODS = 15

#: Where HTTP, sockets and the command line come in. Nothing else imports these.
ENTRANCES = (
    "chatapp.views",
    "chatapp.consumers",
    "chatapp.forms",
    "chatapp.urls",
    "chatapp.asgi",
    "chatapp.admin",
    "chatapp.management",
    "chatapp.deployment.daphne",
    "chatapp.deployment.entrance",
)
#: Data flows one way: who must not reach whom, directly or through others.
NEVER_REACHES = {
    "chatapp.turns.turn": ("chatapp.turns.runner", "chatapp.rendering", "chatapp.live.bus"),
    "chatapp.context": ("chatapp.turns", "chatapp.rendering", "chatapp.llm"),
    "chatapp.llm": (
        "chatapp.turns",
        "chatapp.context",
        "chatapp.live",
        "chatapp.rendering",
        "chatapp.conversations",
    ),
    "chatapp.live.events": (
        "chatapp.turns",
        "chatapp.context",
        "chatapp.llm",
        "chatapp.rendering",
        "chatapp.conversations",
    ),
    "chatapp.rendering": (
        "chatapp.turns",
        "chatapp.context",
        "chatapp.llm",
        "chatapp.conversations",
    ),
    "chatapp.conversations": ("chatapp.turns", "chatapp.actions", "chatapp.rendering"),
    "chatapp.text": ("chatapp.conversations", "chatapp.models"),
    "compression": ("chatapp",),
}
#: Foreign packages that a room must not know, even through others of ours.
NEVER_KNOWS = {
    "compression": ("channels", "openai", "httpx", "httpx2", "chatapp", "tests"),
    "chatapp.turns.turn": ("channels", "django.template", "django.http"),
    "chatapp.context": ("channels", "openai", "django"),
    "chatapp.llm": ("channels", "django.db", "django.http"),
    "chatapp.live.events": ("channels", "django", "openai"),
    "chatapp.text": ("channels", "django", "openai"),
    "chatapp": ("tests",),
}
PURE = (
    "compression.planning",
    "compression.ledger",
    "compression.judging.audit",
    "compression.judging.cues",
    "compression.judging.floor",
    "compression.judging.mentions",
    "compression.judging.redaction",
    "compression.judging.salience",
    "compression.judging.span_content",
    "compression.judging.verbatim",
    "compression.languages",
    "compression.recall",
    "compression.summarizers.quoting",
    "compression.types",
)
#: The rooms that touch the database.
DATABASE_ROOMS = {
    "chatapp.conversations": "the chat's one door",
    "chatapp.accounts.signin_links": "accounts are Django's; it reads no conversation",
    "compression.store": "compression's one door",
    "chatapp.admin": "Django's own review pages",
    "compression.admin": "Django's own review pages",
    "compression.review": "what those pages show",
    "chatapp.models": "the models themselves",
    "compression.models": "the models themselves",
    "compression.database": "the crossing that every unit of work goes through",
}
#: Single modules that name one thing of ``django.db``, or a thread for it, without touching rows.
DATABASE_NAMES_ALLOWED = {
    "chatapp.middleware": "hands the hook that stores a session to a thread",
    "chatapp.management.commands.serve": "asks whether migrations are due",
    "chatapp.views.health": "asks whether the database answers; reads no row",
}
MANAGERS = frozenset({"objects", "_default_manager", "_base_manager"})
QUERY_METHODS = re.compile(
    r"a?(filter|exclude|annotate|aggregate|values_list|select_related|prefetch_related"
    r"|all|first|last|order_by|only|defer|save|delete"
    r"|bulk_create|bulk_update|get_or_create|update_or_create|select_for_update"
    r"|refresh_from_db|in_bulk)"
)
# What queries, or hands a query to a thread, by another name.
DETOURS = frozenset(
    {"get_object_or_404", "get_list_or_404", "sync_to_async", "database_sync_to_async"}
)


def _name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def _text(path: Path) -> str:
    """The text of one file, which several rules look at."""
    return path.read_text("utf-8")


def _tree(path: Path) -> ast.Module:
    return ast.parse(_text(path), str(path))


@cache
def _python_files(*packages: str) -> tuple[Path, ...]:
    """Every module of these packages, migrations left out."""
    found = (path for package in packages for path in sorted((ROOT / package).rglob("*.py")))
    return tuple(path for path in found if "migrations" not in path.parts)


@cache
def modules() -> dict[str, ast.Module]:
    """Every module of the product by its dotted name, migrations left out."""
    return {_name(path): _tree(path) for path in _python_files(*PACKAGES)}


def within(name: str, room: str) -> bool:
    """Whether a module is a room or lies in it."""
    return name == room or name.startswith(f"{room}.")


def imports_of(tree: ast.Module, known: frozenset[str]) -> Iterator[str]:
    """Dotted names that a module imports, wherever in it; submodules by their own name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"relative import in line {node.lineno}"
            assert node.module is not None
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in known or node.module == "django" else node.module


@cache
def graph() -> dict[str, frozenset[str]]:
    """Module -> everything that it imports itself."""
    known = frozenset(modules())
    return {name: frozenset(imports_of(tree, known)) for name, tree in modules().items()}


def reached(start: str) -> dict[str, str]:
    """Everything that a module imports, directly or through ours -> the module that imports it."""
    found: dict[str, str] = {}
    waiting = [start]
    while waiting:
        here = waiting.pop()
        for target in graph().get(here, ()):
            if target not in found:
                found[target] = here
                waiting.append(target)
    return found


def test_there_is_something_to_check() -> None:
    assert {"chatapp.accounts.signin_links", "compression.types"} <= set(modules())


def test_entrances_are_imported_by_entrances_only() -> None:
    wrong = [
        f"{name} imports {target}"
        for name, targets in graph().items()
        for target in targets
        if any(within(target, room) for room in ENTRANCES)
        and not any(within(name, room) for room in ENTRANCES)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("room", NEVER_REACHES)
def test_data_flows_one_way(room: str) -> None:
    wrong = [
        f"{name} reaches {target} through {through}"
        for name in modules()
        if within(name, room)
        for target, through in reached(name).items()
        if any(within(target, forbidden) for forbidden in NEVER_REACHES[room])
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("room", NEVER_KNOWS)
def test_what_a_room_does_not_know(room: str) -> None:
    wrong = [
        f"{through} imports {target}, which {name} must not know"
        for name in modules()
        if within(name, room)
        for target, through in reached(name).items()
        if any(within(target, forbidden) for forbidden in NEVER_KNOWS[room])
    ]
    assert not wrong, "\n".join(wrong)


def test_no_import_runs_in_a_circle() -> None:
    ours = {name: targets & graph().keys() for name, targets in graph().items()}
    done: set[str] = set()
    circles: list[str] = []

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            circles.append(" -> ".join((*path[path.index(name) :], name)))
        elif name not in done:
            for target in sorted(ours[name]):
                visit(target, (*path, name))
            done.add(name)

    for name in sorted(ours):
        visit(name, ())
    assert not circles, "\n".join(circles)


def test_pure_modules_import_the_standard_library_and_each_other() -> None:
    wrong = [
        f"{through} imports {target}, and {name} is pure"
        for name in modules()
        if any(within(name, pure) for pure in PURE)
        for target, through in reached(name).items()
        if target not in graph() and target.partition(".")[0] not in sys.stdlib_module_names
    ]
    assert not wrong, "\n".join(wrong)


def _called(node: ast.Call) -> str:
    """The name of the method that is called; empty for a plain function."""
    return node.func.attr if isinstance(node.func, ast.Attribute) else ""


def _database_marks(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and name of whatever looks like a query or a transaction."""
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "django.db":
            names = {alias.name for alias in node.names}
            for name in sorted(names & {"connection", "connections", "transaction"}):
                yield node.lineno, f"django.db.{name}"
        elif isinstance(node, ast.ImportFrom):
            for name in sorted({alias.name for alias in node.names} & DETOURS):
                yield node.lineno, f"{node.module}.{name}"
        elif isinstance(node, ast.Attribute):
            # A manager is not called; what is called ``objects()`` is none.
            if node.attr in MANAGERS and id(node) not in called:
                yield node.lineno, f".{node.attr}"
        elif isinstance(node, ast.Call) and QUERY_METHODS.fullmatch(_called(node)):
            yield node.lineno, f".{_called(node)}()"


def test_only_its_rooms_touch_the_database() -> None:
    wrong = [
        f"{name}:{line}: {mark}"
        for name, tree in modules().items()
        if not any(within(name, room) for room in DATABASE_ROOMS)
        for line, mark in _database_marks(tree)
        if not (name in DATABASE_NAMES_ALLOWED and not mark.startswith("."))
    ]
    assert not wrong, "\n".join(wrong)


def test_the_rooms_of_the_database_are_synchronous() -> None:
    """So no transaction can span an ``await``."""
    wrong = [
        f"{name}:{node.lineno}: {type(node).__name__}"
        for name, tree in modules().items()
        if any(within(name, room) for room in DATABASE_ROOMS) and name != "compression.database"
        for node in ast.walk(tree)
        if isinstance(node, ast.Await | ast.AsyncFunctionDef | ast.AsyncWith | ast.AsyncFor)
    ]
    assert not wrong, "\n".join(wrong)


def test_what_crosses_over_is_named_with_an_a() -> None:
    """``aname = in_database_thread(name)``: who awaits a unit of work sees it in its name."""
    wrong = []
    for name, tree in modules().items():
        named = {
            id(node.value): node.targets[0].id.removeprefix("_")
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        }
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)):
                continue
            if node.func.id != "in_database_thread":
                continue
            crossing = ast.unparse(node.args[0]).rpartition(".")[2].removeprefix("_")
            if named.get(id(node)) != f"a{crossing}":
                wrong.append(f"{name}:{node.lineno}: {ast.unparse(node)}")
    assert not wrong, "\n".join(wrong)


def test_no_module_is_too_long() -> None:
    """Tests are left out: they mirror a module, and a list of cases may be long."""
    long = [
        f"{path.relative_to(ROOT)}: {lines} lines"
        for path in _python_files(*PACKAGES)
        if (lines := len(_text(path).splitlines())) > MODULE_LINES
    ]
    assert not long, "a room is missing:\n" + "\n".join(long)


def _only_passes_on(tree: ast.Module) -> bool:
    """A module without anything of its own: imports, and ``__all__`` that names them."""
    return all(
        isinstance(node, ast.ImportFrom)
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        or (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__")
        for node in tree.body
    )


def test_no_package_has_too_many_modules() -> None:
    """More than that beside each other are not found at sight; an address for hosts is no room.

    Breaks when: a sixteenth module is put into a package.
    """
    packages: dict[Path, list[str]] = {}
    for path in _python_files(*PACKAGES):
        if path.stem != "__init__" and not _only_passes_on(modules()[_name(path)]):
            packages.setdefault(path.parent, []).append(path.stem)
    crowded = [
        f"{package.relative_to(ROOT)}: {len(names)} modules"
        for package, names in packages.items()
        if len(names) > PACKAGE_MODULES
    ]
    assert not crowded, "a package is missing:\n" + "\n".join(crowded)


def test_no_class_has_too_many_methods() -> None:
    """The tests of a class of tests are left out: a list of cases may be long.

    Breaks when: a sixteenth method is put into a class.
    """
    functions = ast.FunctionDef | ast.AsyncFunctionDef
    crowded = [
        f"{name}:{node.lineno}: {node.name}, {len(methods)} methods"
        for name, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        and (
            methods := [
                one
                for one in node.body
                if isinstance(one, functions) and not one.name.startswith("test_")
            ]
        )
        and len(methods) > CLASS_METHODS
    ]
    assert not crowded, "a class is missing:\n" + "\n".join(crowded)


def test_no_function_is_too_long() -> None:
    # Of the tests nothing else is asked: their trees are not kept.
    tests = ((_name(path), _tree(path)) for path in _python_files("tests"))
    long = [
        f"{name}:{node.lineno}: {node.name}, {lines} lines"
        for name, tree in chain(modules().items(), tests)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := (node.end_lineno or node.lineno) - node.lineno + 1) > FUNCTION_LINES
    ]
    assert not long, "a room is missing:\n" + "\n".join(long)


@cache
def _text_files() -> tuple[tuple[Path, str], ...]:
    """Every file that is a text, by its path in the project."""
    skipped = {".git", ".venv", "var", "node_modules", "__pycache__"}
    found = []
    for path in sorted(ROOT.rglob("*")):
        relative = path.relative_to(ROOT)
        if skipped & set(relative.parts) or relative.parts[0].endswith("_cache"):
            continue
        if relative.parts[0] == ".hypothesis" or not path.is_file():
            continue
        try:
            found.append((relative, _text(path)))
        except UnicodeDecodeError:
            continue  # not a text
    return tuple(found)


def test_the_project_speaks_of_no_machine_and_no_index() -> None:
    # In pieces, since this file is one of them.
    paths = ["/wo" + "rk/", "/tmp/br" + "ief", "/opt/wh" + "eels", "/opt/py" + "pi", "/ro" + "ot/"]
    words = [*paths, "pypi." + "org", "python" + "hosted"]
    options = re.compile(r"^--(extra-)?index-url|^--find-links|^-i ", re.MULTILINE)
    wrong = [f"{path}: {word}" for path, text in _text_files() for word in words if word in text]
    wrong += [str(path) for path, text in _text_files() if options.search(text)]
    assert not wrong, "\n".join(wrong)


def test_nothing_was_left_to_do_later() -> None:
    mark = re.compile(r"\b(" + "TO" + "DO|FIX" + "ME|X" + "XX)\\b")
    wrong = [
        f"{path}: {found[0]}"
        for path in _python_files(*PACKAGES, "tests")
        if (found := mark.search(_text(path)))
    ]
    assert not wrong, "\n".join(wrong)


def test_the_note_on_a_field_is_its_docstring() -> None:
    """A comment after a field seems to belong to the next one."""
    wrong = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in _python_files(*PACKAGES, "tests")
        for number, line in enumerate(_text(path).splitlines(), start=1)
        if re.match(r"\s+#:", line)
    ]
    assert not wrong, "\n".join(wrong)


def test_the_note_on_a_constant_stands_above_it() -> None:
    """A note below a constant and above the next seems to belong to either.

    Breaks when: a ``#:`` note moves below the last constant of a list.
    """
    below = re.compile(r"^#:.*\n(?!#:|\w+(?:: [^=\n]+)? = |\w+(?:, \w+)+ = |@|def |class )", re.M)
    wrong = [
        f"{path.relative_to(ROOT)}: {found[0].strip()}"
        for path in _python_files(*PACKAGES, "tests")
        if (found := below.search(_text(path)))
    ]
    assert not wrong, "\n".join(wrong)
