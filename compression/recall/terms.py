"""The terms of a search, and the stretch of a text that they point to. Pure.

Stop words are data: ``[stop]`` in each file of :mod:`compression.languages`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from compression.languages.phrases import every_language

# More terms than anyone types, so that a pasted page does not become a query of a thousand words.
MOST_TERMS: Final = 16
MOST_TERM_LENGTH: Final = 64

_WORD = re.compile(r"\w+")
_SPACES = re.compile(r"\s+")
# Scripts written without spaces, in which an index of words does not find a word.
_RUNS = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
)
# The endings that both databases' English stemmers remove most often.
_ENDINGS = ("ings", "ing", "edly", "ed", "ies", "es", "s", "ly", "y", "e")
# A query is taken for another language than English from so many of its stop words on: "hat" and
# "war" alone are English words, "was hat er gesagt" is German.
_SURE: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The terms of a search."""

    words: tuple[str, ...]
    """Lower-case words, each once, without stop words."""
    runs: tuple[str, ...] = ()
    """Strings to be found anywhere in a text, as they are."""

    @property
    def all(self) -> tuple[str, ...]:
        """Words and runs."""
        return self.words + self.runs


@cache
def _stop_words() -> dict[str, frozenset[str]]:
    """Language → the words that a search in it leaves out."""
    languages = every_language().languages
    listed = {one.code: one.tables.get("stop", {}).get("words", ()) for one in languages}
    return {code: frozenset(words) for code, words in listed.items() if words}


def stop_words(words: Sequence[str]) -> frozenset[str]:
    """The stop words of the language that a query's lower-case words are most likely of."""
    known = _stop_words()
    found = {code: sum(word in listed for word in words) for code, listed in known.items()}
    best = max(found, key=lambda code: (found[code], code == "en"))
    return known[best if found[best] >= _SURE else "en"]


def terms_of(query: str) -> Terms:
    """The terms in a query. Both tuples are empty if it has no word.

    A query of stop words only is searched as one string.
    """
    found = [word[:MOST_TERM_LENGTH] for word in _WORD.findall(query.lower())]
    runs = [word for word in found if _RUNS.search(word)]
    words = [word for word in found if not _RUNS.search(word)]
    stop = stop_words(words)
    words = [word for word in words if word not in stop]
    # "it's" leaves an s, which is dropped unless the query has nothing longer.
    longer = [word for word in words if len(word) > 1 or not word.isascii()]
    if not words and not runs and found:
        runs = [_SPACES.sub(" ", query.strip())[:MOST_TERM_LENGTH]]
    unique = list(dict.fromkeys(longer or words))[:MOST_TERMS]
    return Terms(words=tuple(unique), runs=tuple(dict.fromkeys(runs))[:MOST_TERMS])


def in_pairs(terms: Terms) -> Terms:
    """The terms with pairs of characters in place of runs without spaces.

    A question in such a script is one run, which stands in no message; its pairs do.
    """
    pairs = [pair for run in terms.runs for pair in _pairs(run)]
    return replace(terms, runs=tuple(dict.fromkeys(pairs))[:MOST_TERMS])


def _pairs(run: str) -> Iterator[str]:
    if len(run) <= 2 or not _RUNS.search(run):
        yield run
        return
    yield from (run[at : at + 2] for at in range(len(run) - 1))


def stem(word: str) -> str:
    """The beginning that a word's forms share; used to mark and count them, not to find them."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def stems_of(text: str) -> frozenset[str]:
    """The beginnings of all words of a text, lower case: an index of one message."""
    return frozenset(map(stem, _WORD.findall(text.lower())))


def pattern_of(terms: Terms) -> re.Pattern[str] | None:
    """The pattern of what is marked: the words in all their forms. None if there are no terms."""
    beginnings = [rf"(?<!\w){re.escape(stem(word))}\w*" for word in terms.words]
    found = [*beginnings, *(re.escape(run) for run in terms.runs)]
    return re.compile("|".join(found), re.IGNORECASE) if found else None


def window(text: str, spans: Sequence[tuple[int, int]], length: int) -> tuple[int, int]:
    """The begin and end of the first stretch with the most different terms.

    ``spans``: where :func:`pattern_of` was found. The stretch is about ``length`` characters long
    and ends between words.
    """
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
