"""The passage of a text in which the terms of a query are found."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from chatapp.text.search_terms import PASSAGE, passage
from compression.recall.terms import terms_of


def shown(text: str, query: str) -> str:
    return "".join(f"[{one.text}]" if one.marked else one.text for one in passage_of(text, query))


def passage_of(text: str, query: str) -> tuple:  # type: ignore[type-arg]
    return passage(text, terms_of(query))


def test_it_works() -> None:
    assert shown("No peanut for me.", "peanuts") == "No [peanut] for me."


def test_stop_words_alone_are_marked_as_they_stand() -> None:
    assert shown("To be or not to be?", "to be or not") == "[To be or not] to be?"


def test_scripts_without_spaces_are_marked_within_a_run() -> None:
    assert shown("我对花生过敏。", "花生") == "我对[花生]过敏。"


def test_the_passage_has_the_most_different_terms() -> None:
    text = "alpha " + "x " * 400 + "beta near alpha " + "y " * 400
    assert "[beta] near [alpha]" in shown(text, "alpha beta")
    assert shown(text, "alpha beta").startswith("… ")
    assert shown(text, "alpha beta").endswith(" …")


def test_a_text_that_fits_is_shown_whole() -> None:
    assert shown("Sample: Cooking & Recipes", "recipe") == "Sample: Cooking & [Recipes]"


def test_nothing_found_is_the_beginning() -> None:
    assert shown("word " * 200, "else").startswith("word word")


@given(st.text(max_size=2000), st.text(max_size=80))
def test_any_text_and_any_query(text: str, query: str) -> None:
    terms = terms_of(query)
    parts = passage(text, terms)
    joined = "".join(one.text for one in parts)
    longest = max((len(one) for one in terms.all), default=0)
    # A marked word is never cut; words may be as long as the text.
    assert len(joined) <= PASSAGE + 60 + longest + max((len(one.text) for one in parts), default=0)
    assert all(one.text for one in parts)


@given(st.lists(st.sampled_from(["alpha", "beta", "gamma,", "\n", "delta"]), max_size=300))
def test_what_is_shown_stands_in_the_text(words: list[str]) -> None:
    text = " ".join(words)
    for one in passage(text, terms_of("beta gamma")):
        bare = one.text.removeprefix("… ").removesuffix(" …").strip()
        assert bare in " ".join(text.split())
