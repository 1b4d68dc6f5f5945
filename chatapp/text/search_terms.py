"""Search terms, and the passage of a text that contains them. Pure: no database, no HTML."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from chatapp.text.safety import visible

#: Characters of a passage, roughly, since it begins and ends between words.
PASSAGE: Final = 240
# More terms than anyone types, so that a pasted page does not become a query of a thousand words.
MOST_TERMS: Final = 16
MOST_TERM_LENGTH: Final = 64
# Characters of a text that are searched; PostgreSQL's index ends there too.
MOST_CHARACTERS: Final = 100_000

_WORD = re.compile(r"\w+")
_SPACES = re.compile(r"\s+")
# Scripts written without spaces, in which an index of words does not find a word.
_RUNS = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
)
# The endings that both databases' English stemmers remove most often.
_ENDINGS = ("ings", "ing", "edly", "ed", "ies", "es", "s", "ly", "y", "e")
STOP_WORDS: Final = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be but by did do does for from had has have how i if in into is it its "
        "me my no not of on or our she he so such than that the their them then there these they "
        "this to up us was we were what when where which who will with would you your",
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The terms of a search."""

    words: tuple[str, ...]
    """Lower-case words, each once, without stop words; the last one may be only a beginning."""
    runs: tuple[str, ...] = ()
    """Strings to be found anywhere in a text, as they are."""

    @property
    def all(self) -> tuple[str, ...]:
        """Words and runs."""
        return self.words + self.runs


def terms_of(query: str) -> Terms:
    """The terms in a person's query. Both tuples are empty if it has no word.

    A query of stop words only is searched as one string.
    """
    found = [word[:MOST_TERM_LENGTH] for word in _WORD.findall(query.lower())]
    runs = [word for word in found if _RUNS.search(word)]
    words = [word for word in found if not _RUNS.search(word) and word not in STOP_WORDS]
    # "it's" leaves an s, which is dropped unless the query has nothing longer.
    longer = [word for word in words if len(word) > 1 or not word.isascii()]
    if not words and not runs and found:
        runs = [_SPACES.sub(" ", query.strip())[:MOST_TERM_LENGTH]]
    unique = list(dict.fromkeys(longer or words))[:MOST_TERMS]
    return Terms(words=tuple(unique), runs=tuple(dict.fromkeys(runs))[:MOST_TERMS])


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A piece of a passage."""

    text: str
    marked: bool = False
    """Whether this part matches the search."""


def stem(word: str) -> str:
    """The beginning that a word's forms share; used to mark them, not to find them."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def pattern_of(terms: Terms) -> re.Pattern[str] | None:
    """The pattern of what is marked: the words in all their forms. None if there are no terms."""
    beginnings = [rf"(?<!\w){re.escape(stem(word))}\w*" for word in terms.words]
    found = [*beginnings, *(re.escape(run) for run in terms.runs)]
    return re.compile("|".join(found), re.IGNORECASE) if found else None


def passage(text: str, terms: Terms, *, length: int = PASSAGE) -> tuple[Part, ...]:
    """The part of ``text`` with the most different terms, with matches marked.

    It is on one line, about ``length`` characters long, with ellipses for what was left out. If no
    term is found (the database's stemmer finds more), it is the beginning of the text. Hidden
    characters are made visible, since the parts no longer tell which of them are needed.
    """
    searched = visible(text[:MOST_CHARACTERS])
    pattern = pattern_of(terms)
    spans = [match.span() for match in pattern.finditer(searched)] if pattern else []
    start, end = _window(searched, spans, length)
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


def _window(text: str, spans: Sequence[tuple[int, int]], length: int) -> tuple[int, int]:
    """The begin and end of the passage: the first stretch with the most different terms."""
    if len(text) <= length:
        return 0, len(text)
    if not spans:
        return 0, _between_words(text, min(length, len(text)), forward=True)
    best, most = spans[0][0], 0
    left = 0
    counts: dict[str, int] = {}
    folded = [text[first:last].casefold()[:4] for first, last in spans]
    for right, (_, last) in enumerate(spans):
        counts[folded[right]] = counts.get(folded[right], 0) + 1
        while left < right and last - spans[left][0] > length * 2 // 3:
            counts[folded[left]] -= 1
            if not counts[folded[left]]:
                del counts[folded[left]]
            left += 1
        if len(counts) > most:
            best, most = spans[left][0], len(counts)
    start = _between_words(text, max(0, best - length // 3), forward=False)
    first_end = next(last for first, last in spans if first == best)
    end = max(min(len(text), start + length), first_end)
    return start, _between_words(text, end, forward=True)


def _between_words(text: str, at: int, *, forward: bool) -> int:
    """The nearest position between two words, at most 20 characters away; else ``at`` itself."""
    step = 1 if forward else -1
    for moved in range(21):
        place = at + step * moved
        if place <= 0 or place >= len(text):
            return max(0, min(place, len(text)))
        if text[place - 1].isspace() or text[place].isspace():
            return place
    return at
