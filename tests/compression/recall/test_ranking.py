"""The ranking of a conversation's messages for a question."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from compression.recall.in_memory import ItemsHistory
from compression.recall.ports import Heading, Original
from compression.recall.ranking import MOST_READ, WEIGHTS, ranked
from compression.recall.terms import Terms, in_pairs, terms_of
from compression.types import Item
from tests.compression.recall.histories import TALK, history, items
from tests.growth import growth


def hits(texts: Sequence[str], query: str, *, own_words: bool = False) -> list[int]:
    return ranked(history(*texts), in_pairs(terms_of(query)), own_words=own_words)


def test_it_works() -> None:
    assert hits(TALK, "Where did her sister move?")[0] == 5
    assert hits(TALK, "tulip")[0] == 1


def test_nothing_found_is_nothing() -> None:
    assert hits(TALK, "submarine") == []
    assert hits((), "tulips") == []
    assert hits(TALK, "--") == []


def test_rare_words_count_more_than_common_ones() -> None:
    """Breaks when: terms are weighed alike, however many messages have them."""
    texts = ["garden gate"] * 30 + ["the mill"] + ["garden gate"] * 30
    assert hits(texts, "gate of the mill")[0] == 31


def test_an_answer_is_found_by_the_words_of_its_question() -> None:
    """Breaks when: a short message is scored without its neighbours."""
    texts = ["x"] * 20 + ["Which colours did you choose for the tulips?", "Red, mostly."]
    found = hits([*texts, *["y"] * 20], "colours of the tulips")
    assert found[0] == 21
    assert 22 in found
    assert hits([*texts, *["y"] * 20], "colours of the tulips", own_words=True) == [21]


def test_a_long_message_is_scored_by_its_best_stretch() -> None:
    """Breaks when: terms count that stand pages apart, so that long messages always win."""
    scattered = ("harbour " + "word " * 400) + ("crane " + "word " * 400) + "berth"
    together = "word " * 800 + "the berth beside the crane in the harbour"
    texts = [scattered, together, *["nothing of it"] * 10]
    assert hits(texts, "harbour crane berth")[0] == 2


def test_where_answers_are_long_the_users_words_come_first() -> None:
    """Breaks when: the ranking is not fused with that of the user's messages."""
    answer = "Consider the allergy, the allergy and the peanut allergy. " + "word " * 300
    texts = [text for _ in range(12) for text in ("Go on please, thanks.", answer)]
    texts[6] = "I have a peanut allergy."
    assert hits(texts, "peanut allergy")[0] == 7


def test_what_the_request_quotes_anyway_is_not_found() -> None:
    """Breaks when: pinned messages, which the model sees, take the places of others."""
    said = items(*TALK)
    pinned = [
        Item(seq=one.seq, role=one.role, text=one.text, tokens=one.tokens, pinned=one.seq == 5)
        for one in said
    ]
    found = ranked(ItemsHistory(pinned, through=len(pinned)), terms_of("sister in Oslo"))
    assert 5 not in found
    assert found


class Counting:
    """A history that counts what is read of it."""

    def __init__(self, count: int, text: str) -> None:
        self.count, self.text = count, text
        self.through = count
        self.read = 0

    def headings(self, seqs: Collection[int] | None = None) -> Sequence[Heading]:
        return [
            Heading(seq=seq, role="user", tokens=len(self.text) // 4)
            for seq in range(1, self.count + 1)
        ]

    def having(self, terms: Terms, *, most: int | None = None) -> Mapping[str, Collection[int]]:
        every = range(1, self.count + 1)
        return {term: every[::step] for step, term in enumerate(terms.all, start=1)}

    def originals(self, seqs: Collection[int]) -> Sequence[Original]:
        self.read += len(seqs) * len(self.text)
        return [Original(seq=seq, role="user", text=self.text) for seq in sorted(seqs)]


def test_i25_however_long_the_conversation_little_of_it_is_read() -> None:
    """I25, I26. Breaks when: every message with a term is read, or texts are not bounded."""
    short = Counting(10_000, "a harbour with a crane and a berth for the pilot. " * 4)
    assert len(ranked(short, terms_of("harbour crane berth pilot"))) == 10_000
    around = 1 + 2 * len(WEIGHTS.neighbours)
    assert short.read <= around * WEIGHTS.candidates * len(short.text)
    long = Counting(2_000, "harbour crane " * 5_000)
    ranked(long, terms_of("harbour crane"))
    assert long.read <= MOST_READ


@given(st.lists(st.text(max_size=60), max_size=12), st.text(max_size=60))
def test_any_conversation_and_any_query(texts: list[str], query: str) -> None:
    terms = in_pairs(terms_of(query))
    found = hits(texts, query)
    assert len(found) == len(set(found))
    having = history(*texts).having(terms)
    own = {seq for seqs in having.values() for seq in seqs}
    assert own <= set(found)
    assert set(hits(texts, query, own_words=True)) == own


def test_words_with_one_beginning_are_all_searched() -> None:
    """Endings are cut crudely here: "plane" is no form of "plan", and the index knows that.

    Breaks when: of such words only the first is asked for.
    """
    texts = ["nothing"] * 5 + ["The plane left at nine."] + ["nothing"] * 5
    asked: list[Terms] = []

    class Exact(ItemsHistory):
        def having(self, terms: Terms, *, most: int | None = None) -> Mapping[str, Collection[int]]:
            asked.append(terms)
            return {"plan": [], "plane": [6]}

    there = Exact(items(*texts), through=len(texts))
    assert ranked(there, terms_of("plan plane"))[0] == 6
    assert asked[0].words == ("plan", "plane")


def test_two_forms_of_a_word_count_once() -> None:
    """Breaks when: a word that was asked for in two forms counts more than another."""
    texts = ["x"] * 10 + ["the harbour"] + ["x"] * 10 + ["the crane"] + ["x"] * 10
    assert hits(texts, "harbour harbours crane")[0] == 22


class Seeming(Counting):
    """A history of texts that have few tokens, as spaces do."""

    def headings(self, seqs: Collection[int] | None = None) -> Sequence[Heading]:
        return [replace(one, tokens=9) for one in super().headings(seqs)]


def test_n02_texts_that_are_longer_than_they_seem_are_not_all_looked_at() -> None:
    """N02. Breaks when: the length of what is looked at is taken from the tokens alone."""
    text = "harbour" + " " * 90_000 + "crane"
    terms = terms_of("harbour crane")
    assert growth(lambda count: ranked(Seeming(count, text), terms), 12, 12) < 5
