"""What the style sheet may ask of a browser while text streams in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.servers import ROOT

SHEETS = [ROOT / "static/css" / name for name in ("app.css", "code.css")]
# A few stand on a page, and none in what a model writes.
FEW = {"footer", "nav"}


def selectors(sheet: Path) -> Iterator[str]:
    """Each selector of a style sheet, lists taken apart."""
    text = re.sub(r"/\*.*?\*/", "", sheet.read_text(), flags=re.DOTALL)
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
        (selector, apart(selector, " >~+")) for sheet in SHEETS for selector in selectors(sheet)
    ]
    beneath = [
        (selector, parts[-1])
        for selector, parts in found
        if any(":has(" in one for one in parts[:-1])
    ]
    assert len(beneath) > 5
    named = re.compile(r"[.#]|:is\([.#]")
    assert [one for one, last in beneath if not named.match(last) and last not in FEW] == []
