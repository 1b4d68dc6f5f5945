"""The preview of a summary, and what it is said to keep."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatapp.rendering.first_lines import counted, first_lines
from chatapp.rendering.words import labels

SUMMARY = """## Summary
- They planned a trip. [1–4]
- They packed. [5–9]

## Constraints
- Never book a flight before nine [3]
- Answer in British English [5, 7–9]
  with a second line

## Decisions
- Hotel Rialto, because it is quiet [6]

## State
### Pending
- Find a bed in Porto [15]
"""


def shown(summary: str) -> list[tuple[str, str]]:
    return [(one.section, one.text) for one in first_lines(summary)]


def test_it_works() -> None:
    """One line of each section before the second of any, without the numbers of their messages.

    Breaks when: the narrative of many compressions takes the place of the rules.
    """
    assert shown(SUMMARY) == [
        ("summary", "They planned a trip."),
        ("constraints", "Never book a flight before nine"),
        ("decisions", "Hotel Rialto, because it is quiet"),
    ]
    assert labels.kept(counted(SUMMARY)) == "2 rules, 1 decision kept"
    aloud = labels.compressed_aloud(3540, 307, counted(SUMMARY))
    assert aloud == "3.5k to 307 tokens, 2 rules and 1 decision kept"
    assert labels.compressed_aloud(3540, 0, {}) == ""


def test_few_sections_give_their_second_lines() -> None:
    text = "## Constraints\n- One\n- Two [sic]\n- Three\n- Four"
    assert [one for _, one in shown(text)] == ["One", "Two [sic]", "Three"]


@pytest.mark.parametrize(
    ("summary", "said"),
    [
        ("", ""),
        ("no heading\n- at all", ""),
        ("## Summary\n- A story", ""),
        (
            "## Files\n- a.py\n\n### Done\n- it\n\n## Context\n- x\n- y",
            "1 file, 1 finished task kept",
        ),
    ],
)
def test_nothing_is_said_of_what_is_not_there(summary: str, said: str) -> None:
    assert labels.kept(counted(summary)) == said


@given(st.text(alphabet="#- [](),–0123456789\nabConstraints\\u{}", max_size=400))
def test_any_text_has_a_preview(text: str) -> None:
    lines = first_lines(text)
    assert len(lines) <= 3
    assert all("\n" not in one.text and len(one.text) <= 160 for one in lines)
    assert sum(counted(text).values()) >= len(lines)


def test_a_long_text_takes_linear_time() -> None:
    """Breaks when: the numbers at the end are looked for by a pattern that goes back and forth."""
    began = time.monotonic()
    for line in ("[1, " * 50_000, "[" * 200_000, " [" * 100_000, "1" * 200_000 + "]"):
        assert len(shown(f"## Constraints\n- {line}")) == 1
    assert time.monotonic() - began < 1.0
