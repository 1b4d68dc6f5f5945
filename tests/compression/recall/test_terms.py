"""Terms of a query, and where in a text they stand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compression.recall.terms import MOST_TERM_LENGTH, MOST_TERMS, Terms, in_pairs, terms_of


def test_it_works() -> None:
    assert terms_of("The Peanuts, and my ALLERGY!") == Terms(words=("peanuts", "allergy"))


def test_stop_words_alone_are_looked_for_as_they_stand() -> None:
    assert terms_of("to be or not to be") == Terms(words=(), runs=("to be or not to be",))


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("What did Ada say about her new boat?", ("ada", "say", "new", "boat")),
        ("Was hat er über den Hafen gesagt?", ("hafen",)),
        ("Qu'est-ce que tu as dit du port ?", ("port",)),
        ("hat", ("hat",)),
        ("the war in 1914", ("war", "1914")),
        ("die cast of the play", ("die", "cast", "play")),
    ],
)
def test_stop_words_are_those_of_the_language_of_the_query(
    query: str, words: tuple[str, ...]
) -> None:
    """Breaks when: all languages' words are left out at once: "die" and "war" are English too."""
    assert terms_of(query).words == words


def test_scripts_without_spaces_are_looked_for_within_a_run() -> None:
    assert terms_of("花生 peanut") == Terms(words=("peanut",), runs=("花生",))


def test_a_question_in_such_a_script_is_searched_in_pairs() -> None:
    """Breaks when: the whole question is looked for, which stands in no message."""
    assert in_pairs(terms_of("我对什么过敏")).runs == ("我对", "对什", "什么", "么过", "过敏")
    assert in_pairs(terms_of("to be or not")).runs == ("to be or not",)
    assert in_pairs(terms_of("花生 peanut")) == Terms(words=("peanut",), runs=("花生",))


def test_a_query_without_words_has_no_terms() -> None:
    for query in ("", "  ", "--", '"', "()", "\x00", "%"):
        assert terms_of(query).all == ()


@given(st.text(max_size=300))
def test_any_query(query: str) -> None:
    for terms in (terms_of(query), in_pairs(terms_of(query))):
        assert len(terms.words) <= MOST_TERMS
        assert len(terms.runs) <= MOST_TERMS
        assert all(0 < len(word) <= MOST_TERM_LENGTH for word in terms.all)
