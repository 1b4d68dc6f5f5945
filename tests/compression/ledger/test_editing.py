"""A person's edit, and a model's answer in the same form."""

from __future__ import annotations

import pytest

from compression.exceptions import DraftRejected, SummaryInvalid
from compression.ledger.editing import apply_edit, delta_from_markdown
from compression.ledger.ledger import Addition, render
from compression.types import Entry, EntryState, Ledger, NarrativeLine, Origin, Section

LEDGER = Ledger(
    narrative=(
        NarrativeLine(text="They began.", first_seq=1, through_seq=9),
        NarrativeLine(text="They went on.", first_seq=10, through_seq=19),
    ),
    entries=(
        Entry(id=1, section=Section.CONSTRAINTS, text="Never use tabs.", sources=(3,)),
        Entry(id=2, section=Section.PENDING, text="tests", sources=(4,)),
        Entry(id=3, section=Section.FILES, text="old.py", state=EntryState.EVICTED),
    ),
)


def test_saving_it_unchanged_changes_nothing() -> None:
    assert apply_edit(LEDGER, render(LEDGER)) == LEDGER
    assert apply_edit(LEDGER, render(LEDGER).replace("\n", "\r\n") + "\r\n") == LEDGER


def test_it_works() -> None:
    text = render(LEDGER).replace("They went on.", "They rested.")
    text = text.replace("- tests [4]", "- more tests [4, 7]")
    edited = apply_edit(LEDGER, text)
    assert edited.narrative == (
        LEDGER.narrative[0],
        NarrativeLine(text="They rested.", first_seq=10, through_seq=19, origin=Origin.PERSON),
    )
    kept, missing, evicted, new = edited.entries
    assert kept == LEDGER.entries[0]
    assert (missing.id, missing.state, missing.origin) == (2, EntryState.LIFTED, Origin.PERSON)
    assert evicted == LEDGER.entries[2]
    assert new == Entry(
        id=4, section=Section.PENDING, text="more tests", sources=(4, 7), origin=Origin.PERSON
    )
    assert render(edited) == text


def test_a_line_keeps_its_sources_though_they_were_typed_over() -> None:
    edited = apply_edit(LEDGER, render(LEDGER).replace("tabs. [3]", "tabs."))
    assert edited.entries[0] == LEDGER.entries[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [("", "empty"), (" \n", "empty"), ("## Files", "headings only"), ("- x\x00", "NUL"),
     ("just words", "Line 1"), ("## Files\n- a\nb", "Line 3")],
)  # fmt: skip
def test_what_cannot_be_saved_says_why(text: str, words: str) -> None:
    with pytest.raises(SummaryInvalid) as invalid:
        apply_edit(LEDGER, text)
    assert words in invalid.value.message


def test_too_long_an_edit_names_the_figures() -> None:
    with pytest.raises(SummaryInvalid) as invalid:
        apply_edit(LEDGER, render(LEDGER), limit_tokens=3, count=len)
    assert invalid.value.fields["limit"] == 3


def test_a_model_may_answer_in_markdown() -> None:
    delta = delta_from_markdown("Sure!\n## Summary\nWe met.\n## Decisions\n* use sqlite [4, 6-7]")
    assert delta.narrative == "We met."
    assert delta.add == (Addition(section=Section.DECISIONS, text="use sqlite", sources=(4, 6, 7)),)
    with pytest.raises(DraftRejected):
        delta_from_markdown("There is a lot to say.")
