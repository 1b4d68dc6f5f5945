"""Which messages of one conversation a question is about, best first. Pure.

BM25 with the document frequencies and lengths of this conversation alone. A short message is
scored together with its neighbours, because a question and its answer share few words; a long one
by its best stretch. Where answers are long, the ranking is fused with one of the user's messages.
The figures behind the weights are in the decision record on recall.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from compression.recall.ports import Heading, History
from compression.recall.quoting import MOST_OF_ONE
from compression.recall.terms import Terms, pattern_of, stem

#: Characters of a ruler token, roughly: to guess a text's length before it is read.
_CHARACTERS: Final = 4
#: Characters of all texts that one search reads; the rest keep their places by the index alone.
MOST_READ: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """The constants of the ranking."""

    saturation: float = 0.8
    """BM25's k1: how much more a term counts that occurs again."""
    length: float = 0.3
    """BM25's b: how much longer texts are held back."""
    neighbours: tuple[float, ...] = (0.4, 0.2, 0.1)
    """The weight of a term that stands only in the message before or after, two away, and so on."""
    stretch: int = 800
    """Characters of the stretch by which a long message is scored."""
    short: int = 600
    """Characters up to which a message and its neighbours belong together."""
    candidates: int = 150
    """Messages that are read."""
    long_answers: float = 3.0
    """Answers that are so many times as long as the user's messages are long."""
    fusion: int = 60
    """The constant of reciprocal rank fusion."""


WEIGHTS: Final = Weights()
#: For messages that do not follow each other.
ALONE: Final = replace(WEIGHTS, neighbours=())


def ranked(history: History, terms: Terms, *, own_words: bool = False) -> list[int]:
    """Seqs of the messages that the terms point to, best first; empty if none has any of them.

    With ``own_words``, without those that only their neighbours' words point to.
    """
    having = history.having(terms)
    if not any(having.values()):
        return []
    return ranked_among(history.headings(), having, history, terms, own_words=own_words)


def ranked_among(
    headings: Sequence[Heading],
    having: Mapping[str, Collection[int]],
    history: History,
    terms: Terms,
    *,
    own_words: bool = False,
    weights: Weights = WEIGHTS,
) -> list[int]:
    """The same among these messages; ``having``: term → seqs of those that contain it."""
    known = {one.seq: place for place, one in enumerate(headings)}
    places_of = _once(terms, having, known)
    if not places_of:
        return []
    search = _Search(headings, terms, places_of, weights)
    places = search.shortlist()
    texts = _read(history, [headings[place].seq for place in search.to_read(places)], known)
    order = [one for one in search.order(places, texts) if not headings[one].quoted]
    if own_words:
        own = set().union(*places_of.values())
        order = [place for place in order if place in own]
    return [headings[place].seq for place in order]


def _once(
    terms: Terms, having: Mapping[str, Collection[int]], known: Mapping[int, int]
) -> Mapping[str, Collection[int]]:
    """Term → places of the messages that contain it or another of its forms.

    "paint" and "painting" are one term, the first of them, so that a message does not count twice
    for having one of them.
    """
    forms = {stem(word): word for word in reversed(terms.words)}
    found: dict[str, set[int]] = {}
    for term, seqs in having.items():
        first = forms.get(stem(term), term) if term in terms.words else term
        places = {known[seq] for seq in seqs if seq in known}
        if places:
            found.setdefault(first, set()).update(places)
    return found


def _read(history: History, seqs: Sequence[int], known: Mapping[int, int]) -> dict[int, str]:
    """Place → text of the messages with these seqs, the first ones first, while there is room.

    How long a text is was only guessed before: spaces have few tokens.
    """
    texts = {one.seq: one.text[:MOST_OF_ONE] for one in history.originals(seqs)}
    read: dict[int, str] = {}
    left = MOST_READ
    for seq in seqs:
        if seq in texts and seq in known:
            left -= len(texts[seq])
            if left < 0:
                break
            read[known[seq]] = texts[seq]
    return read


class _Search:
    """One search; messages are known by their places among the headings."""

    def __init__(
        self,
        headings: Sequence[Heading],
        terms: Terms,
        having: Mapping[str, Collection[int]],
        weights: Weights,
    ) -> None:
        self.headings = headings
        self.having = having
        self.weights = weights
        self.pattern = pattern_of(terms)
        count = len(headings)
        # The idf of Lucene's BM25, which is never negative.
        self.worth = {
            term: math.log(1 + (count - len(found) + 0.5) / (len(found) + 0.5))
            for term, found in having.items()
        }
        # Longer beginnings first: "reporter" is not a form of "report" if both were asked for.
        self.beginnings = sorted(
            ((stem(term) if term in terms.words else term.casefold(), term) for term in having),
            key=lambda pair: -len(pair[0]),
        )
        self.lengths = [max(1, one.tokens * _CHARACTERS) for one in headings]
        short = sum(one <= weights.short for one in self.lengths) / count
        self.mean = sum(min(one, weights.stretch) for one in self.lengths) / count
        self.mean *= 1 + 2 * sum(weights.neighbours) * short
        self.answers_are_long = self._answers_are_long()

    def shortlist(self) -> list[int]:
        """All places that the terms point to, best first by what the index alone tells."""
        scores: dict[int, float] = {}
        for term, found in self.having.items():
            for place in found:
                scores[place] = scores.get(place, 0.0) + self.worth[term]
        for place in scores:
            held_back = self._held_back(min(self.lengths[place], 8 * self.weights.stretch))
            scores[place] *= (self.weights.saturation + 1) / (1 + held_back)
        near: dict[int, float] = {}
        for place, score in scores.items():
            for other, weight in self._neighbours(place):
                near[other] = near.get(other, 0.0) + weight * score
        for place, score in near.items():
            scores[place] = scores.get(place, 0.0) + score
        return sorted(scores, key=lambda place: (-scores[place], -place))

    def to_read(self, places: Sequence[int]) -> list[int]:
        """The best of these places, first, and their neighbours: as many as may be read.

        Where answers are long, half of them are the user's messages.
        """
        most = self.weights.candidates
        best = list(places[:most])
        if self.answers_are_long:
            users = (place for place in places if self.headings[place].role == "user")
            best = [*islice(users, most // 2), *places[: most // 2]]
        wanted: dict[int, None] = {}
        left = MOST_READ
        for place in best:
            for one in (place, *(other for other, _ in self._neighbours(place))):
                if one in wanted:
                    continue
                left -= min(self.lengths[one], MOST_OF_ONE)
                if left < 0:
                    return list(wanted)
                wanted[one] = None
        return list(wanted)

    def order(self, places: Sequence[int], texts: Mapping[int, str]) -> list[int]:
        """The places, best first, by the texts that were read; then the others as they came."""
        found = {place: self._found(place, text) for place, text in texts.items()}
        read = [place for place in places if place in texts]
        scores = {place: self._score(place, texts, found) for place in read}
        best = sorted(read, key=lambda place: (-scores[place], -place))
        if self.answers_are_long:
            best = self._fused(best)
        return [*best, *(place for place in places if place not in texts)]

    def _fused(self, order: Sequence[int]) -> list[int]:
        """Reciprocal rank fusion of a ranking with that of the user's messages in it."""
        scores: dict[int, float] = {}
        users = [place for place in order if self.headings[place].role == "user"]
        for ranking in (order, users):
            for rank, place in enumerate(ranking):
                scores[place] = scores.get(place, 0.0) + 1 / (self.weights.fusion + rank)
        return sorted(scores, key=lambda place: (-scores[place], -place))

    def _answers_are_long(self) -> bool:
        asked = [o.tokens for o in self.headings if o.role == "user"]
        said = [o.tokens for o in self.headings if o.role == "assistant"]
        if not asked or not said:
            return False
        answer = sum(said) / len(said)
        long = answer * _CHARACTERS > self.weights.short
        return long and answer > self.weights.long_answers * sum(asked) / len(asked)

    def _neighbours(self, place: int) -> list[tuple[int, float]]:
        """The messages around a short one that are short too, each with its weight."""
        short = self.weights.short
        if self.lengths[place] > short:
            return []
        return [
            (one, weight)
            for away, weight in enumerate(self.weights.neighbours, start=1)
            for one in (place - away, place + away)
            if 0 <= one < len(self.headings) and self.lengths[one] <= short
        ]

    def _held_back(self, length: float) -> float:
        """BM25's denominator for a length in characters, without the term's frequency."""
        share = self.weights.length
        return self.weights.saturation * (1 - share + share * length / self.mean)

    def _found(self, place: int, text: str) -> list[tuple[int, str]]:
        """Where in a text which term stands. Whether it does is the index's word."""
        here = {term for term, found in self.having.items() if place in found}
        if not here or self.pattern is None:
            return []
        found: list[tuple[int, str]] = []
        for match in self.pattern.finditer(text):
            word = match.group().lower()
            for beginning, term in self.beginnings:
                if word.startswith(beginning):
                    if term in here:
                        found.append((match.start(), term))
                    break
        # The index knows more forms of a word than share its beginning.
        found += [(0, term) for term in sorted(here - {term for _, term in found})]
        found.sort()
        return found

    def _score(
        self,
        place: int,
        texts: Mapping[int, str],
        found: Mapping[int, Sequence[tuple[int, str]]],
    ) -> float:
        """The score of the message's best stretch; a short one has its neighbours' words too."""
        weights = self.weights
        length = float(min(len(texts[place]), weights.stretch))
        beside: dict[str, float] = {}
        for other, weight in self._neighbours(place):
            length += weight * len(texts.get(other, ""))
            for _, term in found.get(other, ()):
                beside[term] = beside.get(term, 0.0) + weight
        return max(
            self._stretch_score(stretch, beside, length)
            for stretch in _stretches(found[place], weights.stretch)
        )

    def _stretch_score(
        self, stretch: Sequence[tuple[int, str]], beside: Mapping[str, float], length: float
    ) -> float:
        counts = dict(beside)
        for _, term in stretch:
            counts[term] = counts.get(term, 0.0) + 1
        held_back = self._held_back(length)
        return sum(
            self.worth[term] * count * (self.weights.saturation + 1) / (count + held_back)
            for term, count in counts.items()
        )


def _stretches(found: Sequence[tuple[int, str]], length: int) -> list[Sequence[tuple[int, str]]]:
    """The found terms of overlapping stretches of a text; one empty stretch if there are none."""
    if not found or found[-1][0] - found[0][0] <= length:
        return [found]
    places = [at for at, _ in found]
    result: list[Sequence[tuple[int, str]]] = []
    begun = -length
    for first, at in enumerate(places):
        # A quarter on, so that a text full of terms has no more stretches than a long one.
        if at >= begun + length // 4:
            result.append(found[first : bisect_left(places, at + length)])
            begun = at
    return result
