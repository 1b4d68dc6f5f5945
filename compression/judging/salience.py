"""Items of a text that must be right: numbers, names, paths, URLs, identifiers, quotations.

Pure, and linear in the text: every repetition of the patterns is bounded.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator

URL = re.compile(r"\b[a-z][a-z0-9+.-]{1,15}://[^\s<>\"'`)\]}，。]{1,500}", re.IGNORECASE)
PATH = re.compile(
    r"(?<![\w/.:\\])(?:[A-Za-z]:\\|~?/|\.{1,2}/)?(?:[\w@+-][\w.@+-]{0,80}[/\\]){1,12}[\w.@+-]{1,80}"
    r"|(?<![\w/.])[\w-]{1,60}\.(?:py|js|ts|tsx|jsx|md|txt|json|ya?ml|toml|html?|css|sql|sh|go|rs|java"
    r"|c|h|cpp|rb|php|csv|xml|ini|cfg|conf|lock|log|pdf|docx?|xlsx?|ipynb|png|jpe?g|svg)\b"
)
IDENTIFIER = re.compile(
    r"\b(?:[A-Za-z]\w{0,60}(?:_\w{1,60})+|[a-z]{1,40}\d{0,5}(?:[A-Z][a-z0-9]{1,40})+"
    r"|(?:[A-Z][a-z0-9]{1,40}){2,6}|[A-Z]{2,10}-\d{1,8}|(?=[a-f]{0,39}\d)[0-9a-f]{7,40})\b"
    r"|(?<!\w)--?[a-z][\w-]{1,40}(?==|\s|$)"
)
NUMBER = re.compile(r"(?<![\w.])[-+v]?\d{1,20}(?:[.,:/-]\d{1,20}){0,6}")
QUOTATION = re.compile(r"\"([^\"\n]{2,80})\"|“([^”\n]{2,80})”|«([^»\n]{2,80})»|`([^`\n]{2,80})`")
NAME = re.compile(r"(?<=[a-z,;] )[A-Z][a-zà-ÿ]{2,30}(?: [A-Z][a-zà-ÿ]{2,30}){0,3}")

#: Characters searched at once.
SLICE = 8000

_QUOTES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "«": '"', "»": '"', "`": '"',
                         "–": "-", "—": "-", "\u00a0": " "})  # fmt: skip
_TRAILING = ".,;:!?)'\"*"

_SCRIPTS = {
    "latin": re.compile("[A-Za-zÀ-ɏḀ-ỿ]"),
    "greek": re.compile("[Ͱ-Ͽἀ-῿]"),
    "cyrillic": re.compile("[Ѐ-ԯ]"),
    "hebrew": re.compile("[\u0590-\u05ff]"),
    "arabic": re.compile("[\u0600-\u06ff\u0750-\u077f]"),
    "indic": re.compile("[\u0900-\u0dff]"),
    "thai": re.compile("[\u0e00-\u0e7f]"),
    "hangul": re.compile("[가-힣ᄀ-ᇿ]"),
    "cjk": re.compile("[\u3040-\u30ff\u3400-\u9fff]"),
}


def normalise(text: str) -> str:
    """The text for comparing: one form of letters, quotes and dashes, single blanks, no case."""
    text = unicodedata.normalize("NFKC", text).translate(_QUOTES)
    return " ".join(text.split()).casefold()


def evidence(text: str) -> frozenset[str]:
    """The URLs, paths, identifiers and numbers of a text, normalised."""
    found: set[str] = set()
    rest = text
    for pattern in (URL, PATH, IDENTIFIER, NUMBER):
        found.update(normalise(match.rstrip(_TRAILING)) for match in pattern.findall(rest))
        rest = pattern.sub(" ", rest)
    return frozenset(one for one in found if one)


def facts(text: str) -> frozenset[str]:
    """Items that no summary contains by chance: evidence, names, quotations of several words.

    Normalised. Single digits are left out, since they are too common.
    """
    found = {one for one in evidence(text) if len(one) > 1}
    found.update(normalise(match) for match in NAME.findall(text))
    found.update(one for one in quotations(text) if " " in one)
    return frozenset(found)


def salient(text: str) -> frozenset[str]:
    """All items that a reviewer would look for: facts, dates and all quotations, normalised."""
    return facts(text) | quotations(text)


def quotations(text: str) -> frozenset[str]:
    """The texts between quotation marks, normalised."""
    return frozenset(
        normalise(group) for groups in QUOTATION.findall(text) for group in groups if group.strip()
    )


def holds(text: str, one: str) -> bool:
    """Whether a normalised text contains this, and not within a longer word or number."""
    start = text.find(one)
    while start >= 0:
        end = start + len(one)
        if not (_joined(text, start) or _joined(text, end)):
            return True
        start = text.find(one, start + 1)
    return False


def _joined(text: str, at: int) -> bool:
    """Whether a word or a number continues across this position."""
    sides = text[at - 1 : at + 1] if at else ""
    return len(sides) == 2 and sides.isascii() and sides.isalnum()


def slices(text: str) -> Iterator[str]:
    """The text in slices of at most 8,000 characters, cut at a blank where there is one.

    A pattern's search keeps every other thread of the process waiting; over 400,000 characters at
    once that was measured as a pause of 300 ms.
    """
    start = 0
    while start < len(text):
        end = min(len(text), start + SLICE)
        if end < len(text):
            cut = max(text.rfind("\n", start, end), text.rfind(" ", start, end))
            end = cut if cut > start + SLICE // 2 else end
        yield text[start:end]
        start = end


def scripts(text: str) -> Counter[str]:
    """The number of letters of each script in a text's first 20,000 characters.

    A CJK character says as much as two letters and counts as two.
    """
    sample = text[:20_000]
    counted = Counter({name: len(pattern.findall(sample)) for name, pattern in _SCRIPTS.items()})
    counted["cjk"] *= 2
    return +counted
