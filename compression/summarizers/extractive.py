"""A summary without a model: sentences of the conversation, chosen by simple rules.

Used when no model gives a fit draft, and by the demo model. It is deterministic, verbatim and thus
in the conversation's own language, linear in the text, and always within its cap. It claims nothing
that nobody said, but may miss what was only implied.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from compression.exceptions import DraftRejected
from compression.judging import cues
from compression.judging.redaction import redacted
from compression.judging.salience import PATH
from compression.ledger.ledger import Addition, Delta, apply_delta, evict, render
from compression.ledger.markdown import format_sources
from compression.ports import TokenCounter
from compression.types import Draft, EntryState, Item, Ledger, Section

#: Shown where a model's prompt version would be.
PROMPT_VERSION = "extract-1"
LABEL = "extract"
#: Share of the room up to which each section may fill it; the next may use what one leaves.
SHARES = {
    Section.CONSTRAINTS: 0.6,
    Section.PENDING: 0.7,
    Section.DECISIONS: 0.8,
    Section.FILES: 0.88,
    Section.CONTEXT: 1.0,
}
#: Most pending entries, earlier ones included: code cannot know which of them are done.
MOST_PENDING = 5
LONGEST = {Section.DECISIONS: 240, Section.PENDING: 200, Section.CONTEXT: 200}
#: Characters of each of the two quotations in the narrative.
QUOTED = 140
#: Most candidates per section, so that time and memory stay linear.
MOST_CANDIDATES = 400
#: Score of what people tell of themselves; only lines full of numbers and names rank higher.
TOLD_SCORE = 6.0
#: Between the paths or names of a line that holds several.
SEPARATOR = "; "


class ExtractiveSummarizer:
    """Implements :class:`compression.ports.Summarizer` without any model."""

    def __init__(
        self,
        counter: TokenCounter,
        cap_tokens: int,
        *,
        label: str = LABEL,
        degraded: bool = True,
        shortens: bool = True,
    ) -> None:
        """``cap_tokens``: ruler tokens that the rendered summary may have.

        ``degraded`` marks the drafts as a last resort. The demo model's drafts are not marked.
        ``shortens``: new lines take at most half of what the messages do; else they may take all
        the room under the cap, for messages that are read nowhere else from then on.
        """
        self._counter = counter
        self._cap = cap_tokens
        self._label = label
        self._degraded = degraded
        self._shortens = shortens

    @property
    def label(self) -> str:
        """The method's name, shown where a model's would be."""
        return self._label

    async def draft(
        self,
        items: Sequence[Item],
        ledger: Ledger,
        *,
        focus: str,
        on_tokens: Callable[[int], Awaitable[None]],
    ) -> Draft:
        """The extract of ``items``, merged into ``ledger``. Needs no network.

        ``focus`` raises the rank of sentences that contain its words. Raises
        :class:`DraftRejected` when the messages contain no text.
        """
        await on_tokens(0)
        # Takes seconds. On the loop, in slices of 10 ms, ten hops of another task to a thread took
        # 283 ms; with this in a thread they take 0.7 ms, and 58 ms in one case of a hundred.
        draft, tokens = await asyncio.to_thread(self._made, items, ledger, focus)
        await on_tokens(tokens)
        return draft

    def _made(self, items: Sequence[Item], ledger: Ledger, focus: str) -> tuple[Draft, int]:
        """The draft, and its ruler tokens."""
        found = Found(items, focus=focus)
        if not found.first:
            raise DraftRejected("The messages hold no text that could be extracted.")
        room = room_for(items, ledger, self._cap, self._counter.count, shortens=self._shortens)
        delta = found.chosen(ledger, room.new, self._counter.count)
        merged, notes = _merge(ledger, delta, items)
        fitted, evicted = self._fit(merged, ledger, room.total)
        if evicted:
            notes = (*notes, *(f"evicted to fit: {text:.120}" for text in evicted))
        draft = Draft(
            ledger=fitted,
            model=self._label,
            prompt_version=PROMPT_VERSION,
            notes=notes,
            degraded=self._degraded,
        )
        return draft, self._counter.count(render(fitted))

    def _fit(self, merged: Ledger, before: Ledger, total: int) -> tuple[Ledger, tuple[str, ...]]:
        """The ledger within its cap, if eviction and dropping our latest lines can do it."""
        fitted, evicted = evict(merged, total, self._counter.count)
        old = {entry.id for entry in before.entries}
        new = [entry.id for entry in merged.entries if entry.id not in old]
        while new and self._counter.count(render(fitted)) > total:
            dropped = new.pop()
            kept = tuple(entry for entry in merged.entries if entry.id != dropped)
            merged = Ledger(entries=kept, narrative=merged.narrative)
            fitted, evicted = evict(merged, total, self._counter.count)
        return fitted, evicted


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """Ruler tokens that a summary may have, and how many of them may be new."""

    total: int
    new: int


def room_for(
    items: Sequence[Item],
    ledger: Ledger,
    cap_tokens: int,
    count: Callable[[str], int],
    *,
    shortens: bool = True,
) -> Room:
    """The room that an extract of the items has besides what the ledger already holds.

    ``shortens`` as for :class:`ExtractiveSummarizer`.
    """
    standing = count(render(ledger))
    source = sum(item.tokens for item in items)
    total = min(cap_tokens, standing + source // 2) if shortens else cap_tokens
    firm, _ = evict(ledger, 0, count)
    free = total - count(render(firm))
    headings = 24
    new = max(total - standing, min(total // 3, free)) - headings
    return Room(total=total, new=max(0, new))


def thirds_of(items: Sequence[Item]) -> dict[int, int]:
    """The third of the items' tokens that each ``seq`` belongs to: 0, 1 or 2."""
    total = sum(item.tokens for item in items) or 1
    found: dict[int, int] = {}
    passed = 0
    for item in items:
        found[item.seq] = min(2, (2 * passed + item.tokens) * 3 // (2 * total))
        passed += item.tokens
    return found


class Found:
    """The candidates found in one pass over the messages, which takes seconds for long ones."""

    def __init__(self, items: Sequence[Item], *, focus: str = "") -> None:
        self._focus = frozenset(focus.casefold().split())
        self._thirds = thirds_of(items)
        self.first = ""
        self._last = ""
        # Text → (strength, seq), in the order of the messages.
        self._rules: dict[str, tuple[int, int]] = {}
        self._decisions: dict[str, int] = {}
        self._open_ends: dict[str, int] = {}
        self._paths: Counter[str] = Counter()
        self._path_seqs: dict[str, list[int]] = {}
        # A heap of (score, -seq, text) with the lowest score on top.
        self._facts: list[tuple[float, int, str]] = []
        # The best fact of each third.
        self._best: dict[int, tuple[float, int, str]] = {}
        self._seen: set[int] = set()
        for item in items:
            for line in cues.prose_lines("".join(redacted(item.text))):
                self._take(item, line)

    def chosen(self, ledger: Ledger, room: int, count: Callable[[str], int]) -> Delta:
        """The sentences to keep, section by section, as long as there is room."""
        narrative = self.narrative()
        used = count(narrative)
        chosen: list[Addition] = []
        live = [entry for entry in ledger.entries if entry.state is EntryState.LIVE]
        taken = {text for entry in live for text in (entry.text, *entry.text.split(SEPARATOR))}
        open_ends = sum(entry.section is Section.PENDING for entry in live)
        for section, share in SHARES.items():
            most = max(0, MOST_PENDING - open_ends) if section is Section.PENDING else None
            for addition in islice(self.ranked(section), most):
                if addition.text in taken:
                    continue
                cost = count(line_for(addition))
                if used + cost > room * share:
                    if section is Section.CONTEXT or used >= room * share - 12:
                        break
                    continue
                used += cost
                taken.add(addition.text)
                chosen.append(addition)
        chosen.sort(key=lambda one: one.sources)
        return Delta(narrative=narrative, add=tuple(chosen))

    def _take(self, item: Item, line: str) -> None:
        """Collect candidates from one line of an item's prose, without secrets."""
        for path in PATH.findall(line):
            self._path(path, item.seq)
        if item.role == "tool":
            return
        pair = cues.PAIR.match(line)
        for raw in cues.END.split(line):
            sentence = raw.strip(" \t*-#>")[:1000]
            if not any(character.isalnum() for character in sentence):
                continue
            self._sentence(item, sentence, pair=pair is not None)

    def _sentence(self, item: Item, sentence: str, *, pair: bool) -> None:
        if not self.first or item.role == "user":
            self.first = self.first or sentence
            self._last = sentence
        if item.role == "user":
            strength = cues.rule_strength(sentence)
            if strength:
                self._rules.setdefault(_cut(sentence, cues.LONGEST_RULE), (strength, item.seq))
                return
        if len(sentence) <= LONGEST[Section.DECISIONS] and cues.DECISION().search(sentence):
            _keep_newest(self._decisions, sentence, item.seq)
        elif self._is_open_end(sentence):
            _keep_newest(self._open_ends, sentence, item.seq)
        elif _least(sentence) <= len(sentence) <= LONGEST[Section.CONTEXT]:
            self._fact(item, sentence, pair=pair)

    def _is_open_end(self, sentence: str) -> bool:
        """Whether something is said to be left to do; a line ending in a colon heads a list."""
        if len(sentence) > LONGEST[Section.PENDING] or sentence.endswith((":", "：")):
            return False
        return cues.OPEN_END().search(sentence) is not None

    def _fact(self, item: Item, sentence: str, *, pair: bool) -> None:
        numbers = len(set(cues.NUMBER.findall(sentence)))
        names = len(set(cues.NAME.findall(sentence)))
        score = min(3.0, 1.5 * numbers) + min(3.0, names) + (1.0 if pair and numbers else 0.0)
        asked = sentence.endswith(("?", "？"))
        if item.role == "user":
            score += 0.5 if score else 0.0
            score += TOLD_SCORE if not asked and cues.TOLD().search(sentence) else 0.0
        score -= 1.0 if asked else 0.0
        if self._focus:
            score += 3.0 * len(self._focus & set(sentence.casefold().split()))
        key = hash(sentence)
        if score <= 0 or key in self._seen:
            return
        self._seen.add(key)
        entry = (score, -item.seq, sentence)
        third = self._thirds[item.seq]
        self._best[third] = max(entry, self._best.get(third, entry))
        if len(self._facts) < MOST_CANDIDATES:
            heapq.heappush(self._facts, entry)
        else:
            heapq.heappushpop(self._facts, entry)

    def _path(self, path: str, seq: int) -> None:
        self._paths[path] += 1
        seqs = self._path_seqs.setdefault(path, [])
        if not seqs or seqs[-1] != seq:
            del seqs[:-3]
            seqs.append(seq)

    def narrative(self) -> str:
        """The beginning and the end of the span, in the speakers' words."""
        first, last = _cut(self.first, QUOTED), _cut(self._last, QUOTED)
        return first if first == last else f"{first} … {last}"

    def ranked(self, section: Section) -> Iterator[Addition]:
        """The candidates for a section, best first."""
        if section is Section.CONSTRAINTS:
            rules = sorted(self._rules.items(), key=lambda rule: (-rule[1][0], rule[1][1]))
            return _additions(section, ((text, [seq]) for text, (_, seq) in rules))
        if section is Section.PENDING:
            newest = list(self._open_ends.items())[-MOST_PENDING:]
            return _additions(section, ((text, [seq]) for text, seq in reversed(newest)))
        if section is Section.DECISIONS:
            newest = list(self._decisions.items())
            return _additions(section, ((text, [seq]) for text, seq in reversed(newest)))
        if section is Section.FILES:
            often = self._paths.most_common(MOST_CANDIDATES)
            return _additions(section, ((path, self._path_seqs[path]) for path, _ in often))
        # The best of each third first: numbers at the beginning must not crowd out the rest.
        spread = sorted(self._best.values(), reverse=True)
        best = [*spread, *sorted(set(self._facts).difference(spread), reverse=True)]
        return _additions(section, ((text, [-seq]) for _, seq, text in best))


def _additions(section: Section, found: Iterable[tuple[str, list[int]]]) -> Iterator[Addition]:
    for text, seqs in found:
        yield Addition(section=section, text=text, sources=tuple(sorted(set(seqs))))


def line_for(addition: Addition) -> str:
    """The addition's line in the rendered summary."""
    return f"- {addition.text} [{format_sources(addition.sources)}]\n"


def _least(sentence: str) -> int:
    """Characters a sentence needs to say something; fewer in scripts without blanks."""
    return 8 if sentence.isascii() else 4


def _keep_newest(kept: dict[str, int], sentence: str, seq: int) -> None:
    kept.pop(sentence, None)
    kept[sentence] = seq
    if len(kept) > MOST_CANDIDATES:
        del kept[next(iter(kept))]


def _cut(text: str, length: int) -> str:
    """The text cut to this length, at the end of a word where there is one."""
    if len(text) <= length:
        return text
    cut = text.rfind(" ", length // 2, length)
    return text[: cut if cut > 0 else length].rstrip()


def _merge(ledger: Ledger, delta: Delta, items: Sequence[Item]) -> tuple[Ledger, tuple[str, ...]]:
    return apply_delta(
        ledger,
        delta,
        first_seq=items[0].seq,
        through_seq=items[-1].seq,
        user_seqs=[item.seq for item in items if item.role == "user"],
    )
