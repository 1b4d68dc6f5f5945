from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatapp.context.project import LINES_SHARE, ProjectPart, quoted
from chatapp.context.request import build_request, request_sizes
from compression.tokens import default_counter
from compression.types import Entry, EntryState, Ledger, Origin, Section
from tests.chatapp.context.test_request import message, snapshot_of

MARK = f"=== {'7' * 18} ==="
TEXTS = st.text(alphabet="ab é漢\n#-=", min_size=1, max_size=120).filter(str.strip)
SECTIONS = st.sampled_from(list(Section))


def part(*lines: tuple[Section, str]) -> ProjectPart:
    count = default_counter().count
    entries = tuple(
        Entry(id=number, section=section, text=text, origin=Origin.PERSON)
        for number, (section, text) in enumerate(lines, 1)
    )
    tokens = {one.id: count(one.text) for one in entries}
    return ProjectPart(
        slug="novel", name="Novel", version=3, lines=Ledger(entries=entries), tokens=tokens
    )


@given(
    st.lists(st.tuples(SECTIONS, TEXTS), max_size=30),
    st.integers(1_000, 60_000),
    st.floats(0.7, 2.0),
)
def test_the_lines_take_a_twentieth_of_the_budget_at_most(
    lines: list[tuple[Section, str]], window: int, calibration: float
) -> None:
    """Breaks when: frame or headings are left out of the account, or the calibration is."""
    reserve = window // 4
    found = quoted(part(*lines), MARK, window=window, reserve=reserve, calibration=calibration)
    taken = default_counter().count(found.text) * calibration
    assert taken <= LINES_SHARE * (window - reserve)
    assert found.left_out <= len(lines)
    assert bool(found.text) == (found.left_out < len(lines))


def test_rules_come_first_and_marks_in_a_line_are_defused() -> None:
    lines = part((Section.CONTEXT, f"Mira is tall. {MARK}"), (Section.CONSTRAINTS, "No adverbs."))
    text = quoted(lines, MARK, window=20_000, reserve=4_000, calibration=1.1).text
    assert text.index("No adverbs.") < text.index("Mira is tall.")
    assert text.count(MARK) == 3, "one in the head's sentence, two around the lines"


def test_what_fits_stays_the_same_while_the_calibration_is_learned() -> None:
    """Else each reply would change the beginning of the next request.

    Breaks when: the calibration is used as it is.
    """
    lines = part(*((Section.DECISIONS, f"Decision {number} holds.") for number in range(80)))
    texts = {
        quoted(lines, MARK, window=9_000, reserve=2_000, calibration=calibration).text
        for calibration in (1.01, 1.07, 1.1, 1.18, 1.24)
    }
    assert len(texts) == 1


@pytest.mark.parametrize("with_lines", [True, False])
def test_a_request_carries_instructions_and_lines_and_counts_them(with_lines: bool) -> None:
    counter = default_counter()
    project = part((Section.CONSTRAINTS, "No adverbs.")) if with_lines else part()
    bare = snapshot_of([message(1, "user", "Hello")])
    plain = request_sizes(bare, counter, window=20_000, reserve=4_000, calibration=1.1)
    inside = snapshot_of([message(1, "user", "Hello")], project=project)
    sized = request_sizes(inside, counter, window=20_000, reserve=4_000, calibration=1.1)
    system = build_request(inside, sized).messages[0]["content"]
    assert ("No adverbs." in system) is with_lines
    grown = counter.count(system) - counter.count(build_request(bare, plain).messages[0]["content"])
    assert 0 <= grown - (sized.fixed - plain.fixed) <= 2, "but for the line between the two"


def test_a_struck_line_is_not_quoted() -> None:
    entry = Entry(id=1, section=Section.CONTEXT, text="Gone.", state=EntryState.LIFTED)
    struck = ProjectPart(slug="n", name="N", lines=Ledger(entries=(entry,)))
    found = quoted(struck, MARK, window=9_000, reserve=0, calibration=1.0)
    assert (found.text, found.left_out) == ("", 0)
