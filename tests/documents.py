"""The documents of the repository: their pieces of code, and the tables written from the code.

``python -m tests.documents`` writes the tables anew.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from compression.exceptions import UserFacingError
from tests.servers import ROOT

README = ROOT / "README.md"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
OPERATIONS = ROOT / "docs" / "operations.md"
API = ROOT / "docs" / "api.md"
COMPRESSION = ROOT / "docs" / "compression.md"
#: Where errors may be defined.
MODULES = ("compression.exceptions", "chatapp.errors", "chatapp.llm.errors")
# Markdown that is no document: what a model is told, and what the environment brings.
_NOT_READ = {".venv", ".git", "var", "prompts", "node_modules"}
_ERRORS = re.compile(r"(<!-- errors: [^>]*-->\n).*?(<!-- end of errors -->)", re.DOTALL)
_FENCED = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@cache
def documents() -> tuple[Path, ...]:
    """Every document, those of the project's page included."""
    return tuple(
        path
        for path in sorted(ROOT.rglob("*.md"))
        if not _NOT_READ & set(path.relative_to(ROOT).parts)
        and not any(part.endswith("_cache") for part in path.relative_to(ROOT).parts)
    )


@dataclass(frozen=True, kw_only=True)
class Block:
    """A fenced piece of code."""

    heading: str
    """The last heading before it."""
    language: str
    """What stands behind the fence, ``sh`` for commands."""
    text: str


def blocks(document: Path, language: str | None = None) -> Iterator[Block]:
    """The fenced pieces of a document, in its order; of one language, if one is given."""
    text = document.read_text("utf-8")
    headings = [
        (found.start(), found[1]) for found in re.finditer(r"^#+ (.+)$", text, re.MULTILINE)
    ]
    for found in _FENCED.finditer(text):
        if language is None or found[1] == language:
            heading = next((one for at, one in reversed(headings) if at < found.start()), "")
            yield Block(heading=heading, language=found[1], text=found[2])


def in_backticks(document: Path) -> Iterator[str]:
    """What a document has in backticks, fenced pieces aside."""
    yield from re.findall(r"`([^`\n]+)`", _FENCED.sub("", document.read_text("utf-8")))


def rows(document: Path) -> dict[str, list[str]]:
    """The rows of its tables that begin with a name in capitals -> their other cells."""
    found = re.findall(r"^\| `([A-Z_]+)` \|(.+)\|$", document.read_text("utf-8"), re.MULTILINE)
    assert len(found) == len(dict(found)), "a name has two rows"
    return {name: [cell.strip() for cell in rest.split(" | ")] for name, rest in found}


def _tree(error: type[UserFacingError]) -> Iterator[type[UserFacingError]]:
    for child in error.__subclasses__():
        if child.__module__.partition(".")[0] in {"chatapp", "compression"}:
            yield child
            yield from _tree(child)


def _place(error: type[UserFacingError]) -> tuple[int, int]:
    return MODULES.index(error.__module__), inspect.getsourcelines(error)[1]


def errors_table() -> str:
    """One line of Markdown for each code of the tree of errors, in the order of the source."""
    for module in MODULES:
        importlib.import_module(module)
    lines = ["| code | HTTP | may be retried | what is said |", "|---|---|---|---|"]
    # A class without a code of its own is a room's own affair: its reader sees the parent's.
    coded = {error for error in _tree(UserFacingError) if "code" in vars(error)}
    for error in sorted(coded, key=_place):
        retryable = "yes" if error.retryable else "no"
        lines.append(f"| `{error.code}` | {error.status} | {retryable} | {error.default_message} |")
    return "\n".join(lines) + "\n"


def written_errors() -> str:
    """The table as the page of the API has it."""
    found = _ERRORS.search(API.read_text("utf-8"))
    assert found is not None, f"{API.name} has lost the comments around the table of errors"
    return found[0][len(found[1]) : -len(found[2])]


def main() -> None:
    """Write the table into the page of the API."""
    text = API.read_text("utf-8")
    API.write_text(_ERRORS.sub(lambda m: m[1] + errors_table() + m[2], text), "utf-8")


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    importlib.import_module("django").setup()
    main()
