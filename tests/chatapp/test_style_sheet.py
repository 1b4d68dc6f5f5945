"""The style sheets: their parts, and what they may ask of a browser while text streams in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.servers import ROOT

FOLDER = ROOT / "static" / "css"
PARTS = sorted((FOLDER / "app").glob("*.css"))
SHEETS = [*sorted(FOLDER.glob("*.css")), *PARTS]
STREAMED = [FOLDER / "code.css", *PARTS]
# A few stand on a page, and none in what a model writes.
FEW = {"footer", "nav"}


def rules(sheet: Path) -> str:
    """A style sheet without its comments."""
    return re.sub(r"/\*.*?\*/", "", sheet.read_text(), flags=re.DOTALL)


def selectors(sheet: Path) -> Iterator[str]:
    """Each selector of a style sheet, lists taken apart."""
    text = rules(sheet)
    for found in re.finditer(r"([^{};]+)\{", text):
        yield from apart(found[1].strip(), ",")


def apart(text: str, at: str) -> list[str]:
    """Split where one of these characters stands outside of all brackets."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "([") - (character in ")]")
        if character in at and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def test_what_stands_beneath_a_has_is_named_by_its_class() -> None:
    """Browsers keep one list of all that stands beneath any ``:has()``, and give each element of it
    its style anew in every place where one may have changed: with ``span`` in it, all of the code
    in a reply that streams.

    Breaks when: ``.links a:has(> .unseen)`` is written as ``.links li:has(.unseen) a``.
    """
    found = [
        (selector, apart(selector, " >~+")) for sheet in STREAMED for selector in selectors(sheet)
    ]
    beneath = [
        (selector, parts[-1])
        for selector, parts in found
        if any(":has(" in one for one in parts[:-1])
    ]
    assert len(beneath) > 5
    named = re.compile(r"[.#]|:is\([.#]")
    assert [one for one, last in beneath if not named.match(last) and last not in FEW] == []


def test_each_part_is_imported_once() -> None:
    """Breaks when: a part is added or renamed without its line in ``app.css``."""
    names = re.findall(r'^@import "(.+)";$', (FOLDER / "app.css").read_text(), re.MULTILINE)
    assert sorted(names) == sorted(
        ["theme.css", "fonts.css", *(f"app/{part.name}" for part in PARTS)]
    )
    # A browser passes over an import that comes after a rule.
    assert list(selectors(FOLDER / "app.css")) == []


def test_a_part_is_read_in_one_sitting() -> None:
    """Breaks when: a part grows beyond 300 lines, or does not begin by saying what it is."""
    texts = {sheet.name: sheet.read_text() for sheet in SHEETS}
    assert [name for name, text in texts.items() if not text.startswith("/* ")] == []
    assert [name for name, text in texts.items() if len(text.splitlines()) > 300] == []


def test_what_is_dark_is_said_once() -> None:
    """Beside what is light, and everything else asks for the colour by its name.

    Breaks when: a sheet has a list of dark colours of its own, or a rule a colour of its own.
    """
    asking = {sheet.name for sheet in SHEETS if "prefers-color-scheme" in rules(sheet)}
    assert asking == {"theme.css"}
    coloured = {part.name for part in PARTS if re.search(r"#[0-9a-f]{3,8}\b", rules(part))}
    assert coloured == {"tokens.css"}
    for name in ("app/tokens.css", "code.css"):
        lines = [line for line in rules(FOLDER / name).splitlines() if "#" in line]
        assert len(lines) > 10
        assert [one for one in lines if not re.search(r"var\(--light, .*var\(--dark, ", one)] == []
