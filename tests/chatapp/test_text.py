from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from chatapp.text import clean, problems, visible

ANY = st.text(alphabet=st.characters())


def test_it_works() -> None:
    assert problems("Grüße, 世界 🎉\n\t") == []
    assert clean("Grüße, 世界 🎉\n\t") == "Grüße, 世界 🎉\n\t"
    assert visible("Grüße, 世界 🎉\n\t") == "Grüße, 世界 🎉\n\t"


def test_each_problem_has_its_sentence() -> None:
    assert ["NUL" in sentence for sentence in problems("a\x00\x00b")] == [True]
    assert ["surrogate" in sentence for sentence in problems("a\udc00b")] == [True]
    assert len(problems("\x00\ud800")) == 2


def test_cleaning_replaces_one_for_one() -> None:
    assert clean("a\x00b\ud83dc") == "a\ufffdb\ufffdc"


@given(ANY)
@example("\x00")
@example("\ud800")
@example("\udfff")
def test_i28_clean_text_is_storable(text: str) -> None:
    """I28.

    Breaks when: ``clean`` leaves out one of NUL, the first and the last surrogate.
    """
    cleaned = clean(text)
    assert problems(cleaned) == []
    assert cleaned.encode().decode() == cleaned
    assert len(cleaned) == len(text)
    assert (cleaned == text) == (problems(text) == [])


def test_i28_the_edges_are_clean() -> None:
    """I28.

    Breaks when: ``_UNSTORABLE`` ends one character early.
    """
    assert clean("\x00\ud800\udbff\udc00\udfff") == "\ufffd" * 5
    assert clean("\x01\ud7ff\ue000\uffff") == "\x01\ud7ff\ue000\uffff"


def test_x09_deceiving_characters_are_shown_or_left_out() -> None:
    assert visible("gpj.\u202eexe\u202c") == "gpj.⟦U+202E⟧exe⟦U+202C⟧"
    assert visible("\x1b]52;c;x\x07\x9b\x7f") == "␛]52;c;x␇\ufffd␡"
    assert visible("a\u200b\ufeff\U000e0041b") == "ab"


def test_joiners_that_scripts_and_emoji_need_stay() -> None:
    assert visible("👩‍💻 می‌خواهم") == "👩‍💻 می‌خواهم"


@given(ANY, ANY)
def test_each_character_is_judged_alone(first: str, second: str) -> None:
    assert visible(first + second) == visible(first) + visible(second)


@given(ANY)
def test_what_is_visible_stays_so(text: str) -> None:
    assert visible(visible(text)) == visible(text)
