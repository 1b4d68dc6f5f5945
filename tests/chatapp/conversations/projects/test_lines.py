from __future__ import annotations

import json

import pytest

from chatapp.conversations.projects.lines import (
    MOST_LIFTED,
    MOST_LINES,
    MOST_TOKENS,
    KeptLines,
    Source,
    as_json,
    changed,
    counted,
    read,
    refused,
)
from chatapp.errors import InvalidInput
from chatapp.text.lengths import LINE_LENGTH
from compression.exceptions import SummaryInvalid
from compression.ledger.lines import Act, LineChange
from compression.tokens import CharacterCounter
from compression.types import Section

COUNTER = CharacterCounter()
RULES = Section.CONSTRAINTS


def add(kept: KeptLines, text: str, section: Section = RULES) -> KeptLines:
    return changed(kept, LineChange(act=Act.ADD, text=text, section=section))


def texts(kept: KeptLines) -> list[str]:
    return [line.text for line in kept.lines]


def test_a_line_is_added_once_rewritten_and_struck() -> None:
    source = Source(code="c", seqs=(3, 4))
    change = LineChange(act=Act.ADD, text="No adverbs.", section=RULES)
    kept = changed(KeptLines(), change, source)
    assert add(kept, " no  ADVERBS. ") is kept
    again = changed(kept, LineChange(act=Act.REWRITE, key="e1", text="Few adverbs."))
    assert texts(again) == ["Few adverbs."]
    (line,) = again.lines
    assert again.sources[int(line.key[1:])] == source, "it keeps where it comes from"
    assert changed(again, LineChange(act=Act.REWRITE, key=line.key, text="Few adverbs.")) is again
    gone = changed(again, LineChange(act=Act.STRIKE, key=line.key))
    assert texts(gone) == [], "the last line can be struck too"
    assert "few adverbs." in gone.known
    for wrong in ("e9", "n0", "x", line.key):
        with pytest.raises(SummaryInvalid):
            changed(gone, LineChange(act=Act.STRIKE, key=wrong))


def test_what_was_refused_is_known_and_not_shown() -> None:
    kept = refused(KeptLines(), RULES, "Be brief.")
    assert texts(kept) == []
    assert refused(kept, RULES, "be  brief.") is kept
    assert texts(add(kept, "Be brief.")) == ["Be brief."], "a person may still write it"


def test_what_is_stored_is_read_back() -> None:
    kept = refused(add(add(KeptLines(), "One."), "Two\nlines."), RULES, "No.")
    change = LineChange(act=Act.ADD, text="x", section=RULES)
    kept = counted(changed(kept, change, Source(code="c", seqs=(1,))), COUNTER)
    assert read(json.loads(json.dumps(as_json(kept)))) == kept
    assert read({}) == KeptLines()


def test_lines_are_bounded() -> None:
    """Breaks when: a project's lines, or what it remembers as refused, grow without end."""
    kept = KeptLines()
    for number in range(MOST_LINES):
        kept = add(kept, f"Line {number}.")
    with pytest.raises(InvalidInput):
        add(kept, "One more.")
    for number in range(MOST_LIFTED + 5):
        kept = refused(kept, RULES, f"Refused {number}.")
    assert len(kept.ledger.entries) == MOST_LINES + MOST_LIFTED
    assert "refused 0." not in kept.known
    with pytest.raises(InvalidInput):
        add(KeptLines(), "x" * (LINE_LENGTH + 1))
    heavy = KeptLines()
    for number in range(MOST_TOKENS * 6 // LINE_LENGTH):
        heavy = add(heavy, f"{number} " + "word " * (LINE_LENGTH // 6))
    with pytest.raises(InvalidInput, match="at most"):
        counted(heavy, CharacterCounter())
