"""What the README lists from the code. ``python -m tests.readme`` writes it there anew."""

from __future__ import annotations

import importlib
import inspect
import os
import re
from collections.abc import Iterator

from compression.exceptions import UserFacingError
from tests.servers import ROOT

#: Where errors may be defined.
MODULES = ("compression.exceptions", "chatapp.errors", "chatapp.llm.errors")
README = ROOT / "README.md"
_ERRORS = re.compile(r"(<!-- errors: [^>]*-->\n).*?(<!-- end of errors -->)", re.DOTALL)


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
    """The table as the README has it."""
    found = _ERRORS.search(README.read_text("utf-8"))
    assert found is not None, "README.md has lost the comments around the table of errors"
    return found[0][len(found[1]) : -len(found[2])]


def main() -> None:
    """Write the table into the README."""
    text = README.read_text("utf-8")
    README.write_text(_ERRORS.sub(lambda m: m[1] + errors_table() + m[2], text), "utf-8")


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    importlib.import_module("django").setup()
    main()
