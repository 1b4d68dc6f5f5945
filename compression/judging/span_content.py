"""The facts and words of a span's messages, by thirds of the span, to compare a draft with.

Pure, and linear in the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from compression.judging.cues import telling
from compression.judging.redaction import redacted
from compression.judging.salience import facts, holds, normalise, quotations
from compression.summarizers.extractive import thirds_of
from compression.types import Entry, Item, NarrativeLine

COPIED = 30
"""Characters: a line at least this long that is in a message word for word is copied from it."""


class SpanContent:
    """The messages of a span, with those of their facts that the earlier summary lacks."""

    def __init__(self, items: Sequence[Item], *, standing: str) -> None:
        """``standing``: the text of the earlier summary."""
        self._items = items
        self.third_of = thirds_of(items)
        """By seq."""
        self._plain = {
            item.seq: " ".join(item.text.split()) for item in items if item.role != "tool"
        }
        self._words_said: dict[int, frozenset[str]] = {}
        before = normalise(standing)
        found = [_told_by(part) for part in self._thirds()]
        self._facts = tuple(
            frozenset(one for one in told if not holds(before, one)) for told, _ in found
        )
        self.salient: frozenset[str] = frozenset().union(*(one for pair in found for one in pair))
        """Items a reviewer would look for, see :func:`compression.judging.salience.salient`."""

    @cached_property
    def words(self) -> tuple[frozenset[str], ...]:
        """The words of the messages, by thirds."""
        return tuple(
            frozenset().union(*(self._telling(item.seq) for item in part if item.role != "tool"))
            for part in self._thirds()
        )

    @cached_property
    def vocabulary(self) -> float:
        """The number of different words, weighted by :func:`weight`."""
        return weight(frozenset().union(*self.words))

    def _telling(self, seq: int) -> frozenset[str]:
        """The words of a message. Many entries cite the same one, so they are looked for once."""
        if seq not in self._words_said:
            self._words_said[seq] = telling(self._plain[seq])
        return self._words_said[seq]

    def _thirds(self) -> Iterator[list[Item]]:
        for third in range(3):
            yield [item for item in self._items if self.third_of[item.seq] == third]

    def span_of(self, third: int) -> tuple[int, int]:
        """The first and last ``seq`` of a third."""
        seqs = [seq for seq, of in self.third_of.items() if of == third]
        return min(seqs), max(seqs)

    def held(self, text: str) -> frozenset[str]:
        """The facts of the messages that a text contains."""
        text = normalise(text)
        return frozenset(one for facts in self._facts for one in facts if holds(text, one))

    def spoken_of(
        self, narrative: Iterable[NarrativeLine], entries: Iterable[Entry]
    ) -> frozenset[int]:
        """The thirds that an entry cites or that the narrative tells of."""
        found: set[int] = set()
        for line in narrative:
            found |= self._told_in(line.text)
        for entry in entries:
            cited = {self.third_of[seq] for seq in entry.sources if self._bears_out(seq, entry)}
            found |= cited or self._told_in(entry.text, most=1)
        return frozenset(found)

    def _told_in(self, text: str, *, most: int = 3) -> frozenset[int]:
        """The ``most`` likeliest thirds among those that share a fact or two words with a text.

        A text copied from a message tells of that message alone.
        """
        copied = " ".join(text.split())
        if len(copied) >= COPIED:
            where = {self.third_of[seq] for seq, said in self._plain.items() if copied in said}
            if where:
                return frozenset(where)
        words, plain = telling(text), normalise(text)
        shared = {}
        for third, (known, stated) in enumerate(zip(self.words, self._facts, strict=True)):
            shared[third] = weight(words & known)
            shared[third] += 2 * sum(holds(plain, one) for one in stated)
        ranked = sorted(shared, key=lambda third: -shared[third])
        return frozenset(third for third in ranked[:most] if shared[third] >= 2)

    def _bears_out(self, seq: int, entry: Entry) -> bool:
        """Whether an entry has anything in common with a message that it cites."""
        if seq not in self.third_of:
            return False
        said = self._plain.get(seq)
        if said is None:
            # A tool's result has no words to compare; its facts were checked entry by entry.
            return True
        if telling(entry.text) & self._telling(seq):
            return True
        text = normalise(entry.text)
        return any(holds(text, one) for one in facts(said))


def _told_by(items: Iterable[Item]) -> tuple[frozenset[str], frozenset[str]]:
    """The facts and the quotations of the items, without secrets."""
    parts = [part for item in items for part in redacted(item.text)]
    return frozenset().union(*map(facts, parts)), frozenset().union(*map(quotations, parts))


def weight(words: Iterable[str]) -> float:
    """The number of words; a pair of characters counts half, since such pairs recur by chance."""
    return sum(0.5 if len(word) == 2 else 1.0 for word in words)
