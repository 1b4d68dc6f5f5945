"""A person's edit of a summary, and a model's answer in the same Markdown form. Pure."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import replace

from compression.exceptions import DraftRejected, SummaryInvalid
from compression.ledger.ledger import Addition, Delta
from compression.ledger.markdown import ParsedLine, parse_markdown
from compression.types import Entry, EntryState, Ledger, NarrativeLine, Origin, Section

__all__ = ["apply_edit", "delta_from_markdown", "parse_markdown"]


def apply_edit(
    ledger: Ledger,
    text: str,
    *,
    limit_tokens: int | None = None,
    count: Callable[[str], int] | None = None,
) -> Ledger:
    """The ledger after a person saved ``text`` as the whole summary.

    A line equal to an entry in section and text keeps that entry's id, sources and origin. Any
    other line becomes an entry of the person. An entry whose line is missing is lifted, and the
    machine will not add it again. Changed narrative becomes the person's and is not changed again.
    ``limit_tokens``, counted by ``count``, is twice the cap. Raises :class:`SummaryInvalid`, which
    names the line or the size.
    """
    if "\x00" in text:
        line = text.count("\n", 0, text.index("\x00")) + 1
        raise SummaryInvalid(f"Line {line} holds a NUL character, which cannot be stored.")
    if not text.strip():
        raise SummaryInvalid("The summary is empty. To go on without one, use Clear.")
    if limit_tokens is not None and count is not None:
        size = count(text)
        if size > limit_tokens:
            raise SummaryInvalid(
                f"The summary has {size:,} tokens; at most {limit_tokens:,} are allowed.",
                fields={"tokens": size, "limit": limit_tokens},
            )
    lines = parse_markdown(text)
    if not lines:
        raise SummaryInvalid("The summary has headings only. To go on without one, use Clear.")
    narrative = _edited_narrative(ledger, [line for line in lines if line.section is None])
    return Ledger(entries=_edited_entries(ledger, lines), narrative=narrative)


def _edited_entries(ledger: Ledger, lines: tuple[ParsedLine, ...]) -> tuple[Entry, ...]:
    """The old entries in their order, kept or lifted, then the person's new ones."""
    waiting: dict[tuple[Section, str], deque[int]] = defaultdict(deque)
    for entry in ledger.entries:
        if entry.state in (EntryState.LIVE, EntryState.DONE):
            waiting[entry.section, entry.text].append(entry.id)
    next_id = max((entry.id for entry in ledger.entries), default=0) + 1
    added: list[Entry] = []
    for line in lines:
        if line.section is None:
            continue
        same = waiting.get((line.section, line.text))
        if same:
            same.popleft()
            continue
        done = line.section is Section.DONE
        entry = Entry(
            id=next_id + len(added),
            section=line.section,
            text=line.text,
            sources=line.sources,
            origin=Origin.PERSON,
            state=EntryState.DONE if done else EntryState.LIVE,
        )
        added.append(entry)
    missing = {id_ for ids in waiting.values() for id_ in ids}
    kept = (
        replace(entry, state=EntryState.LIFTED, origin=Origin.PERSON)
        if entry.id in missing
        else entry
        for entry in ledger.entries
    )
    return (*kept, *added)


def _edited_narrative(ledger: Ledger, lines: list[ParsedLine]) -> tuple[NarrativeLine, ...]:
    unchanged: dict[str, deque[NarrativeLine]] = defaultdict(deque)
    for old in ledger.narrative:
        unchanged[old.text].append(old)
    edited = []
    for line in lines:
        if unchanged[line.text]:
            edited.append(unchanged[line.text].popleft())
            continue
        new = NarrativeLine(
            text=line.text,
            first_seq=line.sources[0] if line.sources else 0,
            through_seq=line.sources[-1] if line.sources else 0,
            origin=Origin.PERSON,
        )
        edited.append(new)
    return tuple(edited)


def delta_from_markdown(text: str) -> Delta:
    """The changes in an answer that a model wrote as Markdown headings instead of JSON.

    Such an answer cannot resolve, supersede or lift. Raises :class:`DraftRejected` when it has no
    known heading.
    """
    try:
        lines = parse_markdown(text, tolerant=True)
    except SummaryInvalid as error:
        raise DraftRejected(f"The model's summary could not be read: {error.message}") from error
    narrative = " ".join(line.text.strip() for line in lines if line.section is None)
    add = tuple(
        Addition(section=line.section, text=line.text.strip(), sources=line.sources)
        for line in lines
        if line.section is not None
    )
    if not narrative and not add:
        raise DraftRejected("The model's summary has none of the headings asked for.")
    return Delta(narrative=narrative, add=add)
