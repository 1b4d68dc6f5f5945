"""Excerpts that come along with a message."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pytest

from compression.recall.excerpts import MOST_EXCERPTS, excerpts, names_in
from compression.recall.in_memory import ItemsHistory
from compression.recall.ports import Heading
from compression.recall.quoting import numbers
from tests.compression.recall.histories import TALK, count, history, items

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


class Long(ItemsHistory):
    """A long conversation that notes which messages' headings are read."""

    read: list[Collection[int] | None]

    def __init__(self, *texts: str) -> None:
        super().__init__(items(*texts), through=len(texts))
        self.read = []

    def headings(self, seqs: Collection[int] | None = None) -> Sequence[Heading]:
        self.read.append(seqs)
        return super().headings(seqs)


@pytest.mark.parametrize("any_words", [False, True])
@pytest.mark.parametrize(
    "message", ["Open KX-4021 in the report.", "Open KX-9999.", "Was that ticket report filed?"]
)
def test_i25_only_headings_of_what_the_index_names_are_read(message: str, any_words: bool) -> None:
    """I25. Breaks when: a turn's start reads something of each older message."""
    there = Long(*["report of the day"] * 3_000, OLD[8], *["and so on"] * 500)
    text = excerpts(there, message, seen=(), any_words=any_words, count=count, most_tokens=400)
    assert all(seqs is not None and len(seqs) <= 2 for seqs in there.read)
    assert (3_001 in numbers(text)) == ("4021" in message or (any_words and "9999" not in message))


def test_a_common_word_beside_a_rare_one() -> None:
    """Breaks when: a word that very many messages have hides a message that has a rare one too."""
    texts = [*["the report of the day"] * 2_000, "the report on tulips", *["and so on"] * 9]
    assert numbers(came_along("tulips in a report", *texts, any_words=True)) == (2_001,)
