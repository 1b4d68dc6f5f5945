"""The ledger as Markdown and back, without losing a character. Pure.

An entry is written as ``- text [sources]``. Further lines of a text are indented by two spaces, so
that none can be mistaken for a heading or another entry. Characters that would still be lost or
misread (whitespace at either end, unusual line breaks, a bracket that looks like sources) are
written as ``\\u{hex}``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from compression.exceptions import SummaryInvalid
from compression.types import Entry, EntryState, Ledger, NarrativeLine, Section

#: Heading in lower case → section; None is the narrative.
HEADINGS: dict[str, Section | None] = {
    "summary": None,
    "constraints": Section.CONSTRAINTS,
    "decisions": Section.DECISIONS,
    "files": Section.FILES,
    "done": Section.DONE,
    "pending": Section.PENDING,
    "context": Section.CONTEXT,
}
#: Sources that the ranges of one line may stand for; more is a mistake or an attack.
MOST_SOURCES = 10_000

_SOURCES = re.compile(r"\s\[(\d{1,15}(?:[–-]\d{1,15})?(?:, ?\d{1,15}(?:[–-]\d{1,15})?)*)\]\Z")
_ESCAPE = re.compile(r"\\u\{([0-9a-f]{1,6})\}")
_BREAKS = re.compile("[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_HEADING = re.compile(r"(#{1,6})\s*(.*?)[\s:#]*\Z")
_BULLET = re.compile(r"[-*•] ?")


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedLine:
    """One entry or narrative line of a summary's text."""

    section: Section | None
    """None for narrative."""
    text: str
    sources: tuple[int, ...]
    """All sources, ranges expanded; for narrative only the first and the last."""
    number: int
    """Number of its first line in the text, from 1."""


def render(ledger: Ledger) -> str:
    """The summary as the model and the reader see it; empty if the ledger is."""
    by_section: dict[Section, list[str]] = {section: [] for section in Section}
    for entry in ledger.entries:
        if entry.state in (EntryState.LIVE, EntryState.DONE):
            by_section[entry.section].append(line_of(entry))
    blocks = [
        ("## Summary", [line_of(line) for line in ledger.narrative]),
        ("## Constraints", by_section[Section.CONSTRAINTS]),
        ("## Decisions", by_section[Section.DECISIONS]),
        ("## Files", by_section[Section.FILES]),
    ]
    state = [
        "\n".join([heading, *by_section[section]])
        for heading, section in (("### Done", Section.DONE), ("### Pending", Section.PENDING))
        if by_section[section]
    ]
    blocks.append(("## State", ["\n\n".join(state)] if state else []))
    blocks.append(("## Context", by_section[Section.CONTEXT]))
    return "\n\n".join("\n".join([heading, *lines]) for heading, lines in blocks if lines)


def line_of(one: Entry | NarrativeLine) -> str:
    """The Markdown of one entry or narrative line, without a line end."""
    if isinstance(one, Entry):
        sources = format_sources(one.sources)
    elif not one.through_seq:
        sources = ""
    elif one.first_seq == one.through_seq:
        sources = str(one.first_seq)
    else:
        sources = f"{one.first_seq}–{one.through_seq}"
    text = _escape(one.text, sourced=bool(sources))
    return f"- {text} [{sources}]" if sources else f"- {text}"


def format_sources(sources: Iterable[int]) -> str:
    """Seqs as people write them: ``12, 15–18``."""
    ordered = sorted(set(sources))
    if not ordered:
        return ""
    starts = [ordered[0], *(after for before, after in pairwise(ordered) if after != before + 1)]
    ends = [*(before for before, after in pairwise(ordered) if after != before + 1), ordered[-1]]
    return ", ".join(
        str(start) if start == end else f"{start}–{end}"
        for start, end in zip(starts, ends, strict=True)
    )


def parse_markdown(text: str, *, tolerant: bool = False) -> tuple[ParsedLine, ...]:
    """The lines under the known headings.

    With ``tolerant``, meant for a model's answer, text before the first heading or under an
    unknown one is skipped, and a line without a bullet is an entry. Otherwise the first line that
    cannot be read raises :class:`SummaryInvalid`, with its number in ``fields["line"]``.
    """
    parsed = []
    for number, section, raw in _raw_lines(text.replace("\r\n", "\n"), tolerant=tolerant):
        body, sources = _split_sources(raw, number, section)
        body = _ESCAPE.sub(_unescape, body)
        if body.strip() or "\\u{" in raw:
            line = ParsedLine(section=section, text=body, sources=sources, number=number)
            parsed.append(line)
    return tuple(parsed)


def _raw_lines(text: str, *, tolerant: bool) -> Iterator[tuple[int, Section | None, str]]:
    """Line number, section and whole text of each entry, still escaped."""
    where: Section | str | None = "before"
    current: tuple[int, Section | None, list[str]] | None = None
    blanks = 0
    for number, line in enumerate(text.split("\n"), start=1):
        if current is not None and line.startswith("  "):
            current[2].extend([""] * blanks)
            current[2].append(line[2:])
            blanks = 0
            continue
        if not line.strip():
            blanks += 1
            continue
        if current is not None:
            yield current[0], current[1], "\n".join(current[2])
            current = None
        blanks = 0
        heading = _HEADING.fullmatch(line)
        if heading is not None:
            where = _section_of(heading[2], number, tolerant=tolerant)
        elif where is not None and not isinstance(where, Section):
            if not tolerant:
                _invalid(number, "it stands under no heading", line)
        else:
            current = (number, where, [_body(line, number, where, tolerant=tolerant)])
    if current is not None:
        yield current[0], current[1], "\n".join(current[2])


def _section_of(name: str, number: int, *, tolerant: bool) -> Section | str | None:
    """The section that a heading begins, or ``state`` or ``before``, which hold no entries."""
    key = name.strip().strip("*").strip().casefold()
    if key == "state":
        return "state"
    if key not in HEADINGS:
        if not tolerant:
            _invalid(number, "it is not one of the known headings", name)
        return "before"
    return HEADINGS[key]


def _body(line: str, number: int, section: Section | None, *, tolerant: bool) -> str:
    if line.startswith("- "):
        return line[2:]
    bullet = _BULLET.match(line)
    if bullet is not None:
        return line[bullet.end() :]
    if section is not None and not tolerant:
        _invalid(number, "an entry begins with “- ”", line)
    return line.strip()


def _split_sources(raw: str, number: int, section: Section | None) -> tuple[str, tuple[int, ...]]:
    match = _SOURCES.search(raw[-4000:])
    if match is None:
        return raw, ()
    start = max(0, len(raw) - 4000) + match.start()
    seqs: list[int] = []
    for part in match[1].split(","):
        ends = [int(end) for end in re.split("[–-]", part)]
        if section is None:
            seqs.extend((ends[0], ends[-1]))
            continue
        if ends[-1] - ends[0] + len(seqs) > MOST_SOURCES:
            _invalid(number, "its sources are too many", raw[-80:])
        seqs.extend(range(ends[0], ends[-1] + 1))
    if section is None:
        seqs = [min(seqs), max(seqs)]
    return raw[:start], tuple(sorted(set(seqs)))


def _escape(text: str, *, sourced: bool) -> str:
    text = re.sub(r"\\(?=u\{)", r"\\u{5c}", text)
    text = _BREAKS.sub(lambda found: _code(found[0]), text)
    if text[:1].isspace() or (text[:1] == "\n"):
        text = _code(text[0]) + text[1:]
    if text[-1:].isspace():
        text = text[:-1] + _code(text[-1])
    lookalike = None if sourced else _SOURCES.search(text)
    if lookalike is not None:
        bracket = text.index("[", lookalike.start())
        text = text[:bracket] + _code("[") + text[bracket + 1 :]
    first, *rest = text.split("\n")
    return "\n".join([first, *("  " + line if line else "" for line in rest)])


def _code(character: str) -> str:
    return f"\\u{{{ord(character):x}}}"


def _unescape(match: re.Match[str]) -> str:
    code = int(match[1], 16)
    return chr(code) if 0 < code < 0x110000 and not 0xD800 <= code < 0xE000 else match[0]


def _invalid(number: int, why: str, line: str) -> None:
    raise SummaryInvalid(
        f"Line {number} could not be read: {why}.", fields={"line": number, "text": line[:200]}
    )
