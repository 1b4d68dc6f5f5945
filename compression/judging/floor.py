"""The floor: the least that a draft must say of its messages. Code completes a thin draft. Pure.

An empty summary is the commonest way to lose a conversation: ``{"narrative": "ok"}`` is valid and
short, and frees everything. So each draft is compared with the deterministic extract of the same
messages: the facts that both contain (numbers, names, paths, identifiers, addresses), and the
thirds of the span that both speak of. A draft far below the extract is refused; a thin draft gets
lines of the extract for what it left out. Only new lines count, so that operations without effect
gain nothing. Time is linear in the text.

Figures for drafts on both sides of the floor: ``tests/benchmarks/README.md``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property

from compression.exceptions import DraftRejected
from compression.judging.cues import stems, telling
from compression.judging.salience import normalise
from compression.judging.span_content import SpanContent, weight
from compression.ledger.ledger import VISIBLE, Addition, Delta, apply_delta, evict
from compression.ledger.markdown import render
from compression.summarizers.extractive import Found, Room, line_for
from compression.types import Entry, EntryState, Item, Ledger, NarrativeLine, Section

LEAST = 0.2
"""Share of the facts that an extract of the draft's own size keeps; a draft with fewer is refused.
Good drafts keep at least 0.33 of them, filler of 200 words at most 0.15."""
ENOUGH = 0.5
"""Share of the facts that a full extract keeps; a draft with fewer is filled up to this share."""
SMALLEST_ROOM = 100
"""Ruler tokens that a draft counts as having at least, so that one word gains nothing."""
LEAST_WORDS, OF_WORDS = 3.0, 0.1
"""Different words of the messages that a draft must contain: this many, or, of a short span, this
share of its words."""
LEAST_SHARE, A_WORD, MOST_SHARE = 0.35, 1 / 4000, 0.6
"""Share of the draft's words that must come from the messages: the least, what each different word
of the messages adds (a long span contains many words by chance), and the most."""
FEW_WORDS = 12
"""Different words of the messages; with fewer, nothing much was said."""
SAYS_NOTHING = (
    "The summary says nothing of these messages: it adds no line, and closing or repeating notes "
    "does not count."
)
PART_SHARE = 0.2
"""Share of a part's tokens that an extract of the part may use."""
SPREAD_TOKENS, SPREAD_MESSAGES = 500, 6
"""Ruler tokens and messages of a span; a smaller one is not divided into thirds."""
FILLED = (Section.DECISIONS, Section.FILES, Section.CONTEXT)
"""Sections that code may fill. Constraints have their own rule (see ``standing_rules``), and code
cannot know whether something is still to be done."""

Count = Callable[[str], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """The comparison of a draft with the extract of the same messages."""

    held: int
    """Facts of the messages in the draft's new lines."""
    least: int
    """The least number of facts; a draft with fewer is refused."""
    extract: int
    """Facts in an extract that uses all the room."""
    words: float
    """Different words of the messages in the draft; a pair of characters counts as half a word."""
    words_share: float
    """Their share of all words of the draft."""
    least_words: float
    least_share: float
    """A draft below either of these, and with hardly a fact, is refused."""
    missing: tuple[tuple[int, int], ...] = ()
    """The first and last ``seq`` of each third that the extract speaks of and the draft does
    not."""
    thirds: int = 0
    """Number of thirds that the extract speaks of."""
    asked: bool = True
    """The extract has room for at least one line; if not, any line of the draft is enough."""
    says: bool = True
    """The draft's new lines have at least two words."""
    closes: bool = False
    """The draft resolves or lifts an earlier entry."""
    small_talk: bool = False
    """The messages contain hardly any words."""

    @property
    def enough(self) -> int:
        """Facts that a draft needs in order not to be thin."""
        return int(ENOUGH * self.extract)

    @property
    def refusal(self) -> str:
        """Why the draft is refused, in a sentence with figures; empty when it is not."""
        if not self.says:
            return "" if self.closes and self.small_talk else SAYS_NOTHING
        if not self.asked:
            return ""
        if self.held < self.least:
            return (
                f"The summary says too little: it keeps {self.held} of these messages' facts "
                f"(numbers, names, paths, identifiers); the plain extract keeps {self.extract}, "
                f"and at least {self.least} must be kept."
            )
        holds_facts = self.held >= max(2, self.least) or self.small_talk
        if not holds_facts and (
            self.words < self.least_words or self.words_share < self.least_share
        ):
            return (
                f"The summary says too little: {self.words:.0f} of its words, "
                f"{self.words_share:.0%} of them, have to do with these messages; at least "
                f"{self.least_words:.0f} and {self.least_share:.0%} are needed, in the language of "
                "the conversation."
            )
        if len(self.missing) > 1 or 0 < self.thirds == len(self.missing):
            parts = " and ".join(f"{first} to {last}" for first, last in self.missing)
            return f"The summary leaves out whole parts: it says nothing of messages {parts}."
        return ""

    @property
    def thin(self) -> bool:
        """Whether the draft lacks facts or a third, which code then fills in."""
        return self.held < self.enough or bool(self.missing)


class Floor:
    """The extract of the messages, added to ``before``: every draft is measured by it."""

    def __init__(self, before: Ledger, items: Sequence[Item], count: Count, *, room: Room) -> None:
        """``room``: ruler tokens, by ``count``, that an extract of the items may use."""
        self._before = before
        self._items = items
        self._count = count
        self._room, self._total = room.new, room.total
        self._content = SpanContent(items, standing=render(before))
        self.salient = self._content.salient
        """Items a reviewer would look for, see :func:`compression.judging.salience.salient`."""

    def findings(self, after: Ledger) -> Findings:
        """The comparison of the draft with the extract."""
        new = _NewLines.of(self._before, after)
        taken = max(SMALLEST_ROOM, self._count(new.text))
        words, share = self._words_of(new.text)
        # The extract itself must pass, though it may hold only one word of a few names.
        extract_words, extract_share = self._extract_words
        missing = self._needed - self._content.spoken_of(new.narrative, new.entries)
        return Findings(
            held=len(self._content.held(new.text)),
            least=int(
                LEAST * len(self._content.held(self._extracted(min(taken, self._room)).text))
            ),
            extract=len(self._content.held(self._extract.text)),
            words=words,
            words_share=share,
            least_words=min(LEAST_WORDS, OF_WORDS * self._content.vocabulary, extract_words),
            least_share=min(
                MOST_SHARE, LEAST_SHARE + A_WORD * self._content.vocabulary, extract_share
            ),
            missing=tuple(self._content.span_of(third) for third in sorted(missing)),
            thirds=len(self._needed),
            asked=_says(self._extract.text),
            says=_says(new.text),
            closes=_closed(self._before, after),
            small_talk=self._content.vocabulary < FEW_WORDS,
        )

    def filled(self, draft: Ledger, kept: Ledger) -> tuple[Ledger, tuple[str, ...]]:
        """A thin draft with those lines of the extract that it lacks, and these lines.

        ``kept`` is the part of the draft that has room in the summary. As many lines are added as
        are needed to reach ``ENOUGH`` and to speak of each third, within an extract's room.
        """
        new = _NewLines.of(self._before, kept)
        room = self._room - self._count(new.text)
        held = set(self._content.held(new.text))
        missing = set(self._needed - self._content.spoken_of(new.narrative, new.entries))
        enough = int(ENOUGH * len(self._content.held(self._extract.text)))
        chosen: list[Addition] = []
        for addition in self._candidates(missing):
            thirds = {self._content.third_of[seq] for seq in addition.sources}
            more = self._content.held(addition.text) - held
            if not missing & thirds and (not more or len(held) >= enough):
                continue
            room -= self._count(line_for(addition))
            if room < 0:
                break
            chosen.append(addition)
            held |= more
            missing -= thirds
        delta = Delta(add=tuple(sorted(chosen, key=lambda one: one.sources)))
        return self.applied(draft, delta), tuple(one.text for one in delta.add)

    def _candidates(self, missing: Set[int]) -> list[Addition]:
        """The extract's lines; first those of the thirds that the draft does not speak of."""
        lines = frozenset(self._chosen.add)
        ranked = [one for section in FILLED for one in self._found.ranked(section) if one in lines]
        return sorted(
            ranked,
            key=lambda one: not any(self._content.third_of[seq] in missing for seq in one.sources),
        )

    def applied(self, ledger: Ledger, delta: Delta) -> Ledger:
        """The ledger with a delta of these messages applied."""
        merged, _ = apply_delta(
            ledger,
            delta,
            first_seq=self._items[0].seq,
            through_seq=self._items[-1].seq,
            user_seqs=[item.seq for item in self._items if item.role == "user"],
        )
        return merged

    def _words_of(self, text: str) -> tuple[float, float]:
        """Number of different words of a text that are in the messages, and their share of it."""
        words = telling(text)
        known = weight(
            [word for word in words if any(word in part for part in self._content.words)]
        )
        whole = weight(words)
        return known, known / whole if whole else 0.0

    @cached_property
    def _extract_words(self) -> tuple[float, float]:
        return self._words_of(self._extract.text)

    @cached_property
    def _needed(self) -> frozenset[int]:
        """The thirds that a draft must speak of: those that the extract has a line from."""
        tokens = sum(item.tokens for item in self._items)
        short = tokens < SPREAD_TOKENS or len(self._items) < SPREAD_MESSAGES
        if short or self._content.vocabulary < FEW_WORDS:
            return frozenset()
        return self._content.spoken_of((), self._extract.entries)

    @cached_property
    def _found(self) -> Found:
        return Found(self._items)

    @cached_property
    def _chosen(self) -> Delta:
        return self._found.chosen(self._before, self._room, self._count)

    @cached_property
    def _extract(self) -> _NewLines:
        return self._merged(self._chosen)

    def _extracted(self, room: int) -> _NewLines:
        return self._merged(self._found.chosen(self._before, room, self._count))

    def _merged(self, delta: Delta) -> _NewLines:
        merged, _ = evict(self.applied(self._before, delta), self._total, self._count)
        return _NewLines.of(self._before, merged)


def check_part(before: Ledger, delta: Delta, items: Sequence[Item], count: Count) -> None:
    """Raise :class:`DraftRejected` if the answer for one part says next to nothing of its messages.

    A model that says nothing thus fails at its first call and is told why.
    """
    # The pieces of a huge message all carry the tokens of the whole one.
    items = [replace(item, tokens=count(item.text)) for item in items]
    tokens = sum(item.tokens for item in items)
    new = min(tokens // 2, max(2 * SMALLEST_ROOM, int(PART_SHARE * tokens)))
    room = Room(total=new + count(render(before)), new=new)
    floor = Floor(before, items, count, room=room)
    refusal = floor.findings(floor.applied(before, delta)).refusal
    if refusal:
        raise DraftRejected(refusal)


@dataclass(frozen=True, slots=True, kw_only=True)
class _NewLines:
    """The lines of a draft that were not in the summary before."""

    entries: tuple[Entry, ...] = ()
    narrative: tuple[NarrativeLine, ...] = ()

    @classmethod
    def of(cls, before: Ledger, after: Ledger) -> _NewLines:
        known = {_plain(entry.text) for entry in before.entries}
        return cls(
            entries=tuple(
                entry
                for entry in after.entries
                if entry.state in VISIBLE and _plain(entry.text) not in known
            ),
            narrative=tuple((Counter(after.narrative) - Counter(before.narrative)).elements()),
        )

    @property
    def text(self) -> str:
        """All lines, one below the other."""
        narrative = [line.text for line in self.narrative]
        return "\n".join([*narrative, *(entry.text for entry in self.entries)])


def _plain(text: str) -> str:
    """A line in the form in which lines are compared."""
    return normalise(text).rstrip(".。! ")


def _says(text: str) -> bool:
    """Whether a text has more than a word or two."""
    return weight(stems(text)) >= 2 or len(text.split()) > 2


def _closed(before: Ledger, after: Ledger) -> bool:
    """Whether an entry that was live before no longer is."""
    states = {entry.id: entry.state for entry in after.entries}
    return any(
        entry.state is EntryState.LIVE and states.get(entry.id) is not EntryState.LIVE
        for entry in before.entries
    )
