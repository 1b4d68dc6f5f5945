"""The passage of a text that contains the terms of a search. Pure: no database, no HTML."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from chatapp.text.safety import visible
from compression.recall.terms import Terms, pattern_of, window

#: Characters of a passage, roughly, since it begins and ends between words.
PASSAGE: Final = 240
# Characters of a text that are searched; PostgreSQL's index ends there too.
MOST_CHARACTERS: Final = 100_000

_SPACES = re.compile(r"\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A piece of a passage."""

    text: str
    marked: bool = False
    """Whether this part matches the search."""


def passage(text: str, terms: Terms, *, length: int = PASSAGE) -> tuple[Part, ...]:
    """The part of ``text`` with the most different terms, with matches marked.

    It is on one line, about ``length`` characters long, with ellipses for what was left out. If no
    term is found (the database's stemmer finds more), it is the beginning of the text. Hidden
    characters are made visible, since the parts no longer tell which of them are needed.
    """
    searched = visible(text[:MOST_CHARACTERS])
    pattern = pattern_of(terms)
    spans = [match.span() for match in pattern.finditer(searched)] if pattern else []
    start, end = window(searched, spans, length)
    parts: list[Part] = [Part(text="… ")] if start else []
    at = start
    for first, last in spans:
        if first < at or last > end:
            continue
        parts += [Part(text=searched[at:first]), Part(text=searched[first:last], marked=True)]
        at = last
    parts.append(Part(text=searched[at:end]))
    if end < len(searched) or len(text) > MOST_CHARACTERS:
        parts.append(Part(text=" …"))
    flat = [Part(text=_SPACES.sub(" ", one.text), marked=one.marked) for one in parts]
    return tuple(one for one in flat if one.text)
