"""Excerpts that come along with a message."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from compression.recall.excerpts import MOST_EXCERPTS, excerpts, names_in
from compression.recall.quoting import numbers
from tests.compression.recall.histories import TALK, count, history

OLD = (*TALK, "The report is at /srv/data/report-2024.csv, ticket KX-4021.", "Noted.")


def came_along(
    message: str,
    *texts: str,
    seen: Sequence[str] = (),
    any_words: bool = False,
    room: int = 400,
) -> str:
    return excerpts(
        history(*(texts or OLD)),
        message,
        seen=seen,
        any_words=any_words,
        count=count,
        most_tokens=room,
    )


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("see /srv/data/report-2024.csv", ("/srv/data/report-2024.csv",)),
        ("What was KX-4021 again?", ("kx-4021",)),
        ("call parse_header() in utils.py", ("parse_header", "utils.py")),
        ("It was 4021 or so, 3 times.", ("4021",)),
        ("Give me 3 examples in 2 lines.", ()),
        ("Thanks a lot!", ()),
    ],
)
def test_names_of_a_message(text: str, names: tuple[str, ...]) -> None:
    assert names_in(text) == names


def test_a_name_that_stands_only_in_older_messages() -> None:
    text = came_along("Open the ticket KX-4021 again.")
    assert numbers(text) == (9,)
    assert "/srv/data/report-2024.csv" in text


def test_not_what_the_model_sees_anyway() -> None:
    """Breaks when: the tail is not looked at, so that every path of the day is quoted again."""
    assert came_along("Open KX-4021.", seen=["I closed ticket KX-4021 today."]) == ""
    assert came_along("Open KX-4021.", seen=["I closed ticket KX-40211 today."])


def test_not_a_name_that_nobody_spoke_of() -> None:
    """Breaks when: words of a name are enough, without the name."""
    assert came_along("Open ticket KX-9999.") == ""
    assert came_along("Look into /srv/data/other.csv") == ""


def test_words_alone_are_enough_only_for_a_model_without_tools() -> None:
    """Breaks when: any message with one common word is taken for a question about the past."""
    asked = "Where did my sister Ada move?"
    assert came_along(asked) == ""
    assert 5 in numbers(came_along(asked, any_words=True))
    assert came_along("How are tulips watered?", any_words=True) == ""
    assert came_along("Thanks!", any_words=True) == ""


def test_of_each_name_at_least_one_and_three_in_all() -> None:
    """Breaks when: one name that occurs often leaves no room for the others."""
    texts = [*["ticket KX-4021 once more"] * 20, "and QX-7000 was closed", "so was LX-8000"]
    text = came_along("Compare KX-4021, QX-7000 and LX-8000.", *texts)
    assert len(numbers(text)) == MOST_EXCERPTS
    assert all(name in text for name in ("KX-4021", "QX-7000", "LX-8000"))


def test_never_above_what_it_may_cost() -> None:
    long = "KX-4021 " + "word " * 500
    for room in (20, 60, 100, 200):
        text = came_along("KX-4021?", long, long, long, room=room)
        assert count(text) <= room
