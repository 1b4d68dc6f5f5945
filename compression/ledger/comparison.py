"""Two versions of a summary compared: lines added, gone and changed, with the words marked. Pure.

Lines are compared heading by heading. A line that is gone and one that is new, under the same
heading and with most words in common, are one changed line. The work is bounded: of long texts the
words are not compared, and of very long ones no lines are paired.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from compression.ledger.markdown import HEADINGS, ParsedLine, parse_markdown
from compression.types import Section

SIMILAR = 0.4
"""Share of their words that two lines must have in common to be one changed line."""
MOST_WORDS = 120
"""Words of a line, blanks included, up to which it is compared word by word."""
MOST_PAIRED = 60
"""Lines of one heading, gone or new, up to which changed lines are looked for."""

_WORDS = re.compile(r"\w+|\s+|[^\w\s]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A piece of a line; ``kind`` is ``same``, ``added`` or ``gone``."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedLine:
    """One line of a comparison; ``kind`` is ``same``, ``added``, ``gone`` or ``changed``."""

    kind: str
    parts: tuple[Part, ...]
    sources: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedSection:
    """The lines under one heading of either version."""

    section: Section | None
    """None for the narrative."""
    lines: tuple[ComparedLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The difference of two versions."""

    sections: tuple[ComparedSection, ...]
    """Those with a line in either version, in the order of a summary."""
    added: int
    gone: int
    changed: int

    @property
    def differs(self) -> bool:
        """Whether any line is another one."""
        return bool(self.added or self.gone or self.changed)


def compare(before: str, after: str) -> Comparison:
    """The versions' Markdown compared. Whatever stands under no known heading is left out."""
    old, new = _by_section(before), _by_section(after)
    sections = tuple(
        ComparedSection(section=section, lines=tuple(_compared(old[section], new[section])))
        for section in HEADINGS.values()
        if old[section] or new[section]
    )
    kinds = Counter(line.kind for one in sections for line in one.lines)
    return Comparison(
        sections=sections,
        added=kinds["added"],
        gone=kinds["gone"],
        changed=kinds["changed"],
    )


def _by_section(text: str) -> dict[Section | None, list[ParsedLine]]:
    found: dict[Section | None, list[ParsedLine]] = {one: [] for one in HEADINGS.values()}
    for line in parse_markdown(text, tolerant=True):
        found[line.section].append(line)
    return found


def _compared(old: Sequence[ParsedLine], new: Sequence[ParsedLine]) -> Iterator[ComparedLine]:
    """The new lines in their order, each gone one after the line that it followed."""
    places: dict[str, deque[int]] = defaultdict(deque)
    for place, line in enumerate(old):
        places[line.text].append(place)
    same = {n: places[line.text].popleft() for n, line in enumerate(new) if places[line.text]}
    gone = sorted(place for waiting in places.values() for place in waiting)
    pairs = _pairs(old, new, gone, [n for n in range(len(new)) if n not in same])
    standing = {*same.values(), *pairs.values()}
    after: dict[int, list[int]] = defaultdict(list)
    last = -1
    for place in range(len(old)):
        if place in standing:
            last = place
        else:
            after[last].append(place)
    yield from (_whole("gone", old[place]) for place in after[-1])
    for number, line in enumerate(new):
        if number in pairs:
            yield _changed(old[pairs[number]], line)
        else:
            yield _whole("same" if number in same else "added", line)
        stood = same.get(number, pairs.get(number, len(old)))
        yield from (_whole("gone", old[place]) for place in after[stood])


def _pairs(
    old: Sequence[ParsedLine], new: Sequence[ParsedLine], gone: list[int], added: list[int]
) -> dict[int, int]:
    """New line → the old one that it changes, the most similar ones first."""
    if max(len(gone), len(added), 1) > MOST_PAIRED:
        return {}
    words = {place: _words_of(old[place].text) for place in gone}
    likely = []
    for number in added:
        mine = _words_of(new[number].text)
        for place in gone:
            common = len(mine & words[place]) / max(1, len(mine | words[place]))
            if common >= SIMILAR:
                likely.append((-common, number, place))
    pairs: dict[int, int] = {}
    for _, number, place in sorted(likely):
        if number not in pairs and place not in pairs.values():
            pairs[number] = place
    return pairs


def _words_of(text: str) -> frozenset[str]:
    return frozenset(text[:10_000].casefold().split()[:500])


def _whole(kind: str, line: ParsedLine) -> ComparedLine:
    part = Part(kind=kind, text=line.text)
    return ComparedLine(kind=kind, parts=(part,), sources=line.sources)


def _changed(old: ParsedLine, new: ParsedLine) -> ComparedLine:
    parts = tuple(_parts(_WORDS.findall(old.text), _WORDS.findall(new.text)))
    return ComparedLine(kind="changed", parts=parts, sources=new.sources)


def _parts(old: list[str], new: list[str]) -> Iterator[Part]:
    if max(len(old), len(new)) > MOST_WORDS:
        yield Part(kind="gone", text="".join(old))
        yield Part(kind="added", text="".join(new))
        return
    for kind, begin, end, from_, to in SequenceMatcher(None, old, new, False).get_opcodes():
        if kind == "equal":
            yield Part(kind="same", text="".join(old[begin:end]))
            continue
        if end > begin:
            yield Part(kind="gone", text="".join(old[begin:end]))
        if to > from_:
            yield Part(kind="added", text="".join(new[from_:to]))
