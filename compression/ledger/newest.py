"""The lines by which one ledger goes beyond an earlier one. Pure."""

from __future__ import annotations

from compression.types import EntryState, Ledger, Section

#: Lines that are shown while a summary is written, and characters of each.
MOST_LINES = 3
LENGTH = 160
_VISIBLE = frozenset({EntryState.LIVE, EntryState.DONE})
_ORDER = {section: place for place, section in enumerate(Section)}


def newest_lines(before: Ledger, after: Ledger) -> tuple[str, ...]:
    """At most three texts that ``after`` has and ``before`` lacks: rules first, narrative last."""
    known = {entry.id for entry in before.entries}
    new = [one for one in after.entries if one.id not in known and one.state in _VISIBLE]
    texts = [one.text for one in sorted(new, key=lambda one: _ORDER[one.section])]
    told = set(before.narrative)
    texts += [line.text for line in after.narrative if line not in told]
    return tuple(shortened(text) for text in texts[:MOST_LINES])


def shortened(text: str) -> str:
    """A text on one line, of at most 160 characters."""
    line = " ".join(text[: 4 * LENGTH].split())
    return line if len(line) <= LENGTH else f"{line[: LENGTH - 1].rstrip()}…"
