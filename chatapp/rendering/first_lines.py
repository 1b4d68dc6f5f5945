"""The first lines of a summary, for a preview, and how many lines it has of each kind. Pure.

The text may be a model's or a person's, of any length: every function takes linear time and raises
nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from compression.ledger.markdown import HEADINGS
from compression.ledger.newest import shortened

#: Lines of a preview.
LINES = 3
_SOURCES = frozenset("0123456789, –-")


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a summary."""

    section: str
    """``summary`` for the narrative, else the section's name."""
    text: str


def first_lines(summary: str) -> tuple[Line, ...]:
    """At most three lines: the first of each section before the second of any, in their order."""
    found = list(enumerate(_lines(summary)))
    seen: Counter[str] = Counter()
    ranks = []
    for place, line in found:
        ranks.append((seen[line.section], place))
        seen[line.section] += 1
    chosen = sorted(place for _, place in sorted(ranks)[:LINES])
    return tuple(
        Line(section=found[place][1].section, text=shortened(_said(found[place][1].text)))
        for place in chosen
    )


def counted(summary: str) -> dict[str, int]:
    """The number of lines by section, in the order of the sections."""
    counts = Counter(line.section for line in _lines(summary))
    return {name: counts[name] for name in HEADINGS if counts[name]}


def _lines(summary: str) -> Iterator[Line]:
    """Each entry's first line; further ones are indented."""
    section = ""
    for line in summary.split("\n"):
        if line.startswith("#"):
            name = line.strip("#* \t:").casefold()
            section = name if name in HEADINGS else ""
        elif section and line.startswith("- ") and line[2:].strip():
            yield Line(section=section, text=line[2:])


def _said(text: str) -> str:
    """A line without the numbers of its messages."""
    body, bracket, sources = text.rstrip().rpartition(" [")
    if bracket and sources.endswith("]") and _SOURCES.issuperset(sources[:-1]):
        return body
    return text
