"""The lines of a summary and the messages that they come from, side by side, for the review."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from compression.judging.redaction import redact
from compression.judging.salience import normalise
from compression.ledger.lines import Line
from compression.ports import Transcript
from compression.types import Item

MOST_CITED = 150
"""Messages cited by lines that are shown."""
MOST_TOLD = 40
"""Messages of the spans of sentences that are shown besides, while there are fewer in all."""
EXCERPT = 1500
"""Characters of a message that are shown."""
MOST_CHIPS = 60
LONGEST_PASSAGE = 240
"""Characters of the passage that a chip adds to the summary."""
_ROLES = {"user": "Person", "assistant": "Model", "tool": "Tool"}
_ENDS = ".!?。！？\n"


@dataclass(frozen=True, kw_only=True)
class ShownLine:
    """One line of a summary on the page."""

    key: str
    text: str
    raw: str
    """The text as it is stored, for the field in which it is edited."""
    sources: tuple[str, ...]
    """The messages that it comes from, as people write them: "3", "7–9"."""
    seqs: tuple[int, ...]
    """Those of them that are on the page."""
    pinned: bool
    forgettable: bool
    elsewhere: bool = False
    """Its numbers are those of messages of another conversation."""


@dataclass(frozen=True, kw_only=True)
class ShownSection:
    """The lines under one heading."""

    heading: str
    lines: list[ShownLine] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class CitingLine:
    """A line that comes from a message, as that message names it."""

    key: str
    name: str
    """Its heading, with a number from the second line of that heading on."""
    text: str


@dataclass(frozen=True, kw_only=True)
class ShownSource:
    """One message on the page."""

    seq: int
    role: str
    text: str
    cut: bool
    url: str
    lines: tuple[CitingLine, ...]
    """The lines that come from it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A message as a host hands it over."""

    seq: int
    role: str
    text: str


def said_in(transcript: Transcript, conversation_id: int, seqs: Iterable[int]) -> dict[int, Said]:
    """The live messages with these numbers, in order. Reads all between the first and the last."""
    wanted = set(seqs)
    if not wanted:
        return {}
    items = transcript.items(conversation_id, after_seq=min(wanted) - 1, through_seq=max(wanted))
    return {
        one.seq: Said(seq=one.seq, role=one.role, text=one.text)
        for one in items
        if one.seq in wanted
    }


def wanted(lines: Sequence[Line]) -> tuple[int, ...]:
    """The numbers of the messages to show beside these lines, in order."""
    cited = {seq for line in lines if line.section is not None for seq in line.sources}
    found = set(sorted(cited)[-MOST_CITED:])
    told = (
        seq
        for line in reversed(lines)
        if line.section is None and line.sources
        for seq in range(line.sources[-1], line.sources[0] - 1, -1)
    )
    for seq in told:
        if len(found) >= MOST_TOLD:
            break
        found.add(seq)
    return tuple(sorted(found))


def comes_from(line: Line, shown: Mapping[int, Said]) -> tuple[int, ...]:
    """The messages on the page that a line comes from; for a sentence, those of its span."""
    if line.section is None and line.sources:
        first, last = line.sources[0], line.sources[-1]
        return tuple(seq for seq in shown if first <= seq <= last)
    return tuple(seq for seq in line.sources if seq in shown)


def citing(sections: Sequence[ShownSection]) -> dict[int, list[CitingLine]]:
    """The lines that come from each message on the page."""
    found: dict[int, list[CitingLine]] = {}
    for section in sections:
        numbers: dict[int, int] = {}
        for line in section.lines:
            for seq in line.seqs:
                numbers[seq] = number = numbers.get(seq, 0) + 1
                name = section.heading if number == 1 else f"{section.heading} {number}"
                one = CitingLine(key=line.key, name=name, text=line.text)
                found.setdefault(seq, []).append(one)
    return found


def role_words(role: str) -> str:
    """Who wrote a message."""
    return _ROLES.get(role, role)


def not_in(missing: object, text: str) -> tuple[str, ...]:
    """What an audit found only in the messages, as far as the text still lacks it.

    An imported audit may have any shape.
    """
    if not isinstance(missing, list | tuple):
        return ()
    present = normalise(text)
    words = dict.fromkeys(one for one in missing if isinstance(one, str) and one.strip())
    return tuple(one for one in words if normalise(one) not in present)


def passage(items: Iterable[Item], detail: str) -> tuple[str, int | None]:
    """The sentence in which a detail was said first, without secrets, and its message.

    The detail itself, and None, if no sentence short enough has it.
    """
    sought = normalise(detail)
    for item in items:
        if sought not in normalise(item.text):
            continue
        for sentence in _sentences(item.text):
            if sought in normalise(sentence) and len(sentence) <= LONGEST_PASSAGE:
                return redact(sentence)[0], item.seq
        return detail, item.seq
    return detail, None


def _sentences(text: str) -> Iterator[str]:
    """The sentences of a text; a dot within a number or a name ends none."""
    start = 0
    for place, letter in enumerate(text):
        ends = letter in _ENDS and (letter != "." or text[place + 1 : place + 2].isspace())
        if ends:
            if said := text[start : place + 1].strip():
                yield said
            start = place + 1
    if said := text[start:].strip():
        yield said
