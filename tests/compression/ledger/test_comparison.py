"""Two versions of a summary, compared."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from compression.ledger.comparison import Comparison, compare
from compression.types import Section
from tests.growth import growth

BEFORE = """## Summary
- They began. [1–9]

## Constraints
- Never use tabs. [3]
- Answer in British English. [4]
- Be brief. [5]

## Context
- A harbour. [6]"""


def kinds(found: Comparison) -> list[tuple[str, str]]:
    return [
        (line.kind, "".join(part.text for part in line.parts if part.kind != "gone"))
        for section in found.sections
        for line in section.lines
    ]


def test_lines_added_gone_and_changed_with_their_words() -> None:
    """Breaks when: a changed line is shown as one that is gone and one that is new."""
    after = BEFORE.replace("British English", "British English only").replace(
        "- Be brief. [5]", "- Prices are in euros. [21]"
    )
    found = compare(BEFORE, after)
    assert (found.added, found.changed, found.gone) == (1, 1, 1)
    rules = next(one for one in found.sections if one.section is Section.CONSTRAINTS)
    assert [line.kind for line in rules.lines] == ["same", "changed", "gone", "added"]
    changed = rules.lines[1]
    assert [(part.kind, part.text) for part in changed.parts] == [
        ("same", "Answer in British English"),
        ("added", " only"),
        ("same", "."),
    ]
    assert not compare(BEFORE, BEFORE).differs


def test_the_same_line_under_another_heading_is_another_line() -> None:
    moved = BEFORE.replace("- A harbour. [6]", "- A quay. [6]").replace(
        "- Be brief. [5]", "- Be brief. [5]\n- A harbour. [6]"
    )
    assert ("added", "A harbour.") in kinds(compare(BEFORE, moved))


def test_lines_that_occur_more_than_once_are_counted() -> None:
    twice = BEFORE.replace("- Be brief. [5]", "- Be brief. [5]\n- Be brief. [5]")
    assert (compare(BEFORE, twice).added, compare(twice, BEFORE).gone) == (1, 1)


def test_anything_is_compared() -> None:
    assert compare("", BEFORE).added == 5
    assert compare(BEFORE, "no heading\n\x00").gone == 5


LINES = st.lists(st.sampled_from(["a b c", "a b d", "x", "y z", "a b c d e f g"]), max_size=9)


@given(LINES, LINES)
def test_both_versions_can_be_read_off_the_comparison(old: list[str], new: list[str]) -> None:
    """Breaks when: a line is left out, or shown twice."""
    found = compare(*("## Context\n" + "\n".join(f"- {one}" for one in of) for of in (old, new)))
    lines = [line for section in found.sections for line in section.lines]

    def said(without: str) -> list[str]:
        shown = ["".join(p.text for p in line.parts if p.kind != without) for line in lines]
        return [one for line, one in zip(lines, shown, strict=True) if line.kind != without]

    assert said("gone") == new
    assert sorted(said("added")) == sorted(old)


def test_the_work_is_bounded() -> None:
    """Breaks when: every pair of lines, or of words, is compared however many there are."""

    def lines(size: int) -> None:
        old = "## Context\n" + "\n".join(f"- {n} and a" for n in range(size))
        compare(old, old.replace("and", "or"))

    def words(size: int) -> None:
        compare("## Context\n- " + "a b " * size, "## Context\n- " + "b a " * size + "c")

    assert growth(lines, 500, 4) < 10
    assert growth(words, 500, 4) < 10
