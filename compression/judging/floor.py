"""The floor: a draft must say enough of its messages to stand for them; code adds to a thin one.

A summary that says nothing is the commonest way to lose a conversation: ``{"narrative": "ok"}`` is
valid, short, and frees everything. So each draft is compared with what the deterministic extract
keeps of the same messages for nothing: the facts (numbers, names, paths, identifiers, addresses)
that both hold, and the thirds of the span that both speak of. A draft far below the extract is
refused, a thin one gets the extract's lines for what it left out. Only what is new counts, so
operations that change nothing count as nothing. Pure, and linear in the text.

Both sides of the floor, with figures: ``tests/benchmarks/README.md``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property

from compression.exceptions import DraftRejected
from compression.judging.cues import stems, telling
from compression.judging.said import Said, weight
from compression.judging.salience import normalise
from compression.ledger.ledger import VISIBLE, Addition, Delta, apply_delta, evict
from compression.ledger.markdown import render
from compression.summarizers.extractive import Found, Room, line_for
from compression.types import Entry, EntryState, Item, Ledger, NarrativeLine, Section

LEAST = 0.2
"""Of the facts that the extract keeps in the room that the draft takes: fewer are refused. Good
drafts keep from 0.33 of them upwards, filler of 200 words at most 0.15."""
ENOUGH = 0.5
"""Of the facts that the extract keeps in the whole room: below it a draft is filled up to it."""
SMALLEST_ROOM = 100
"""Ruler tokens that a draft is held to have taken at least: a word in no room is no merit."""
LEAST_WORDS, OF_WORDS = 3.0, 0.1
"""Different words of the draft that the messages must hold: so many, or a tenth of all those that
were said where these are few."""
LEAST_SHARE, A_WORD, MOST_SHARE = 0.35, 1 / 4000, 0.6
"""Their share of all the draft's words: so much, and more for each different word that was said,
since a long span holds many words by chance."""
FEW_WORDS = 12
"""Of different words in what was said: where there are fewer, nothing much was said."""
SAYS_NOTHING = (
    "The summary says nothing of these messages: it adds no line, and closing or repeating notes "
    "does not count."
)
PART_SHARE = 0.2
"""Of a part's tokens: what an extract of it would have as room."""
SPREAD_TOKENS, SPREAD_MESSAGES = 500, 6
"""Ruler tokens and messages of a span below which it is not looked at in thirds."""
FILLED = (Section.DECISIONS, Section.FILES, Section.CONTEXT)
"""Sections that code may fill: rules are kept by another rule, and whether something is still to be
done no code knows."""

Count = Callable[[str], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """A draft beside the extract of the same messages."""

    held: int
    """Facts of the messages that the draft's new lines hold."""
    least: int
    """Fewer are refused."""
    extract: int
    """Facts that the extract holds in all the room that there is."""
    words: float
    """Different words of the draft that the messages hold; a pair of characters is half of one."""
    words_share: float
    """Of all its words."""
    least_words: float
    least_share: float
    """With less of either, and hardly a fact, a draft is refused."""
    missing: tuple[tuple[int, int], ...] = ()
    """The first and last ``seq`` of each third that the extract speaks of and the draft does
    not."""
    thirds: int = 0
    """Of which the extract speaks."""
    asked: bool = True
    """The extract has room to say anything; else a line of any kind is enough."""
    says: bool = True
    """The draft's new lines have two words between them."""
    closes: bool = False
    """The draft resolves or lifts what stood before."""
    small_talk: bool = False
    """The messages hold hardly any words."""

    @property
    def enough(self) -> int:
        """Facts below which a draft is thin."""
        return int(ENOUGH * self.extract)

    @property
    def refusal(self) -> str:
        """Why the draft may not stand for the messages, in a sentence with figures; or nothing."""
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
        """Whether code has something to fill."""
        return self.held < self.enough or bool(self.missing)


class Floor:
    """The extract of these messages beside ``before``: the measure of every draft."""

    def __init__(self, before: Ledger, items: Sequence[Item], count: Count, *, room: Room) -> None:
        """``room``: ruler tokens (of ``count``) that an extract of the items would have."""
        self._before = before
        self._items = items
        self._count = count
        self._room, self._total = room.new, room.total
        self._said = Said(items, standing=render(before))
        self.salient = self._said.salient
        """Items a reviewer would look for, see :func:`compression.judging.salience.salient`."""

    def findings(self, after: Ledger) -> Findings:
        """The draft beside the extract."""
        new = _New.of(self._before, after)
        taken = max(SMALLEST_ROOM, self._count(new.text))
        words, share = self._words_of(new.text)
        # The extract itself must pass: of a few names said once it may hold a single word.
        extract_words, extract_share = self._extract_words
        missing = self._needed - self._said.spoken_of(new.narrative, new.entries)
        return Findings(
            held=len(self._said.held(new.text)),
            least=int(LEAST * len(self._said.held(self._extracted(min(taken, self._room)).text))),
            extract=len(self._said.held(self._extract.text)),
            words=words,
            words_share=share,
            least_words=min(LEAST_WORDS, OF_WORDS * self._said.vocabulary, extract_words),
            least_share=min(
                MOST_SHARE, LEAST_SHARE + A_WORD * self._said.vocabulary, extract_share
            ),
            missing=tuple(self._said.span_of(third) for third in sorted(missing)),
            thirds=len(self._needed),
            asked=_says(self._extract.text),
            says=_says(new.text),
            closes=_closed(self._before, after),
            small_talk=self._said.vocabulary < FEW_WORDS,
        )

    def filled(self, draft: Ledger, kept: Ledger) -> tuple[Ledger, tuple[str, ...]]:
        """A thin draft with the extract's lines for what it leaves out, and those lines.

        ``kept`` is what of the draft has room in the summary. As many lines as bring it to
        ``ENOUGH`` and speak of each third, in the room that an extract would have taken.
        """
        new = _New.of(self._before, kept)
        room = self._room - self._count(new.text)
        held = set(self._said.held(new.text))
        missing = set(self._needed - self._said.spoken_of(new.narrative, new.entries))
        enough = int(ENOUGH * len(self._said.held(self._extract.text)))
        chosen: list[Addition] = []
        for addition in self._candidates(missing):
            thirds = {self._said.third_of[seq] for seq in addition.sources}
            more = self._said.held(addition.text) - held
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
        """The extract's lines, first those of the thirds that the draft does not speak of."""
        lines = frozenset(self._chosen.add)
        ranked = [one for section in FILLED for one in self._found.ranked(section) if one in lines]
        return sorted(
            ranked,
            key=lambda one: not any(self._said.third_of[seq] in missing for seq in one.sources),
        )

    def applied(self, ledger: Ledger, delta: Delta) -> Ledger:
        """The ledger after a delta of these messages."""
        merged, _ = apply_delta(
            ledger,
            delta,
            first_seq=self._items[0].seq,
            through_seq=self._items[-1].seq,
            user_seqs=[item.seq for item in self._items if item.role == "user"],
        )
        return merged

    def _words_of(self, text: str) -> tuple[float, float]:
        """How many different words of a text the messages hold, and their share of its words."""
        words = telling(text)
        known = weight([word for word in words if any(word in part for part in self._said.words)])
        whole = weight(words)
        return known, known / whole if whole else 0.0

    @cached_property
    def _extract_words(self) -> tuple[float, float]:
        return self._words_of(self._extract.text)

    @cached_property
    def _needed(self) -> frozenset[int]:
        """The thirds of which a draft must speak: those from which the extract has a line."""
        tokens = sum(item.tokens for item in self._items)
        short = tokens < SPREAD_TOKENS or len(self._items) < SPREAD_MESSAGES
        if short or self._said.vocabulary < FEW_WORDS:
            return frozenset()
        return self._said.spoken_of((), self._extract.entries)

    @cached_property
    def _found(self) -> Found:
        return Found(self._items)

    @cached_property
    def _chosen(self) -> Delta:
        return self._found.chosen(self._before, self._room, self._count)

    @cached_property
    def _extract(self) -> _New:
        return self._merged(self._chosen)

    def _extracted(self, room: int) -> _New:
        return self._merged(self._found.chosen(self._before, room, self._count))

    def _merged(self, delta: Delta) -> _New:
        merged, _ = evict(self.applied(self._before, delta), self._total, self._count)
        return _New.of(self._before, merged)


def check_part(before: Ledger, delta: Delta, items: Sequence[Item], count: Count) -> None:
    """Raise :class:`DraftRejected` when one part's answer says next to nothing of its messages.

    So a model that says nothing fails at its first call and is told why, not after the last one.
    """
    # The pieces of a giant message all carry the tokens of the whole.
    items = [replace(item, tokens=count(item.text)) for item in items]
    tokens = sum(item.tokens for item in items)
    new = min(tokens // 2, max(2 * SMALLEST_ROOM, int(PART_SHARE * tokens)))
    room = Room(total=new + count(render(before)), new=new)
    floor = Floor(before, items, count, room=room)
    refusal = floor.findings(floor.applied(before, delta)).refusal
    if refusal:
        raise DraftRejected(refusal)


@dataclass(frozen=True, slots=True, kw_only=True)
class _New:
    """The lines of a draft that did not stand before."""

    entries: tuple[Entry, ...] = ()
    narrative: tuple[NarrativeLine, ...] = ()

    @classmethod
    def of(cls, before: Ledger, after: Ledger) -> _New:
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
        """Line by line."""
        narrative = [line.text for line in self.narrative]
        return "\n".join([*narrative, *(entry.text for entry in self.entries)])


def _plain(text: str) -> str:
    """A line as it is compared with those that stand."""
    return normalise(text).rstrip(".。! ")


def _says(text: str) -> bool:
    """Whether a text is more than a word or two."""
    return weight(stems(text)) >= 2 or len(text.split()) > 2


def _closed(before: Ledger, after: Ledger) -> bool:
    """Whether an entry that was live before is not any more."""
    states = {entry.id: entry.state for entry in after.entries}
    return any(
        entry.state is EntryState.LIVE and states.get(entry.id) is not EntryState.LIVE
        for entry in before.entries
    )
