"""Renderings that are kept: the same, bounded, and worth it."""

from __future__ import annotations

import threading

from django.utils.html import escape
from hypothesis import example, given
from hypothesis import strategies as st

from chatapp.rendering import kept
from chatapp.rendering.kept import Body, Kept
from chatapp.rendering.markdown import render
from chatapp.templatetags.chat import feed
from chatapp.text.safety import visible
from tests.chatapp.rendering.samples import message, page
from tests.growth import cost

LONG = "A **paragraph** with `code` and [a link](https://x.example), said at some length.\n\n" * 60


def test_it_works() -> None:
    made: list[str] = []

    def make(text: str) -> str:
        made.append(text)
        return text.upper()

    held = Kept(make)
    assert [held("a" * 300) for _ in range(3)] == ["A" * 300] * 3
    assert made == ["a" * 300]
    assert held("b") == held("b") == "B"
    assert made[1:] == ["b", "b"]


@given(st.text(alphabet=st.characters(), max_size=30), st.integers(1, 30))
@example("\ud800", 300)
def test_i22_what_is_kept_is_what_would_be_made(text: str, times: int) -> None:
    """I22. Breaks when: two texts share a key, or the key is not made of all of the text."""
    for _ in range(2):
        assert kept.markdown(text * times) == render(text * times)
        assert kept.verbatim(text * times) == escape(visible(text * times))


def test_i26_what_is_kept_is_bounded_and_the_newest_stays() -> None:
    """I26. Breaks when: nothing is dropped, or what is used is dropped before what is not."""
    made: list[str] = []

    def make(text: str) -> str:
        made.append(text)
        return text

    held = Kept(make, 20_000)
    first = "first " * 100
    for number in range(500):
        held(first)
        held(f"{number} " * 200)
        assert held.held <= 20_000
    assert made.count(first) == 1
    huge = "x" * 15_000
    assert held(huge) == held(huge)
    assert made.count(huge) == 2


def test_threads_may_share_it() -> None:
    held = Kept(render, 50_000)
    texts = [f"{number} *a*\n\n" * 40 for number in range(60)]
    wrong: list[str] = []

    def look() -> None:
        wrong.extend(text for text in texts * 3 if held(text) != render(text))

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert held.held <= 50_000


def test_rendering_ahead_stops_after_a_moment() -> None:
    """Breaks when: ``ahead`` renders all that it is given, however long that takes."""
    kept.markdown.clear()
    dear = [Body(kept.markdown, f"{number} " + "*a _b_ [c](d) " * 900) for number in range(12)]
    left = kept.ahead(dear)
    assert 0 < len(left) < len(dear)
    rounds = 1
    while left:
        left, rounds = kept.ahead(left), rounds + 1
    assert rounds <= len(dear)
    assert kept.ahead(dear) == []


def test_a_page_that_is_loaded_again_parses_nothing() -> None:
    """Breaks when: articles are rendered by ``markdown.render``."""
    loaded = page([message(seq, "assistant", f"{seq} {LONG}") for seq in range(1, 31)])

    def cold() -> None:
        kept.markdown.clear()
        feed(loaded)

    assert cost(lambda: feed(loaded)) < 0.5 * cost(cold)
