from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chatapp.text.safety import clean, problems, settled, visible, visible_part, without_hidden

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
    assert visible("a\u200b\ufeff\U000e0041b") == "a⟦U+200B and 2 more⟧b"


#: What people write, each with characters that have no look of their own and are needed.
NEEDED = {
    "a profession": "👩\u200d💻",
    "a heart on fire": "❤\ufe0f\u200d🔥",
    "a family with skin": "👩🏽\u200d🤝\u200d👩🏿",
    "the form of a sign": "☺\ufe0e",
    "a keycap": "1\ufe0f\u20e3",
    "England": "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
    "Scotland": "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
    "Wales": "🏴\U000e0067\U000e0062\U000e0077\U000e006c\U000e0073\U000e007f",
    "Persian": "می\u200cخواهم",
    "Hindi": "क्\u200dष क्\u200cष",
    "Sinhala": "ශ්\u200dරී",
    "Thai": "สวัสดี\u200bครับ",
    "Mongolian": "ᠠ\u180b ᠠ\u180eᠠ",
    "a Japanese name": "葛\U000e0100飾",
    "a compatibility form": "神\ufe00",
    "a slashed zero": "0\ufe00",
    "old Korean": "\u115f\u1161 \u1100\u1160 \u115f\u1160\u11a8",
    "Hebrew": "\u200fשלום!\u200f C++\u200e הוא",
    "German": "Zusammen\xadarbeit",
}
#: What is needed by nothing before and after it.
HIDING = [
    *("\u200b", "\u200d", "\u200c", "\u2060", "\ufeff", "\u3164", "\uffa0", "\u115f", "\xad"),
    *("\ufe0f", "\ufe00", "\U000e0100", "\U000e01ef", "\u180b", "\u200e", "\u202e", "\u2066"),
    *("\u17b4", "\u034f", "\U0001d173", "\U00013430", "\U000e0001", "\ufff9"),
    "\U000e006f\U000e0062\U000e0065\U000e0079",
]


def has_no_look(character: str) -> bool:
    """By Unicode's names and categories, which the code's own list does not know."""
    if character in "\u115f\u1160\u3164\uffa0\u034f\u17b4\u17b5":
        return True
    name = unicodedata.name(character, "")
    prefixed = ("ARABIC", "SYRIAC", "KAITHI")
    is_format = unicodedata.category(character) == "Cf" and not name.startswith(prefixed)
    return is_format or "VARIATION SELECTOR" in name or character == "\u061c"


def test_n07_every_character_without_a_look_is_shown() -> None:
    """N07: all of Unicode, each alone between two letters.

    Breaks when: a range is left out of ``_HIDDEN``.
    """
    hidden = [chr(code) for code in range(0x110000) if has_no_look(chr(code))]
    assert len(hidden) > 400
    for character in hidden:
        if character != "\xad":
            assert visible(f"a{character}b") == f"a⟦U+{ord(character):04X}⟧b"
        assert visible(character * 3) == f"⟦U+{ord(character):04X} and 2 more⟧"
        assert without_hidden(f"{character}.{character * 2}") == "."


@pytest.mark.parametrize("name", NEEDED)
def test_what_scripts_and_emoji_need_stays(name: str) -> None:
    """Breaks when: its line is taken out of ``_NEEDED``."""
    text = NEEDED[name]
    assert visible(text) == visible(f" {text} ").strip() == text
    assert without_hidden(text) == text


@pytest.mark.parametrize("name", NEEDED)
def test_n07_what_is_needed_once_hides_nothing_more(name: str) -> None:
    """N07. Breaks when: a run is judged by its first character."""
    for hiding in ("\u200b", "\U000e0041" * 50, "\ufe0f"):
        text = re.sub(r"[\u200b-\u200d\ufe00-\ufe0f\U000e0100]", rf"\g<0>{hiding}", NEEDED[name])
        if text != NEEDED[name]:
            assert "more⟧" in visible(text)
            assert hiding not in without_hidden(text)


@given(st.lists(st.one_of(st.sampled_from([*NEEDED.values()]), st.sampled_from(HIDING))))
def test_n07_a_text_shows_what_hides_and_keeps_what_is_needed(parts: list[str]) -> None:
    """N07: in any mixture.

    Breaks when: ``_is_needed`` takes what is near for what is beside.
    """
    shown, kept = [], []
    for part in parts:
        hides = part in HIDING
        more = f" and {len(part) - 1} more" if len(part) > 1 else ""
        shown.append(f"⟦U+{ord(part[0]):04X}{more}⟧" if hides else part)
        kept.append("" if hides else part)
    text = " x ".join(parts)
    assert visible(text) == " x ".join(shown)
    assert without_hidden(text) == " x ".join(kept)


MIXED = st.text(alphabet=st.sampled_from("aש!. 1م葛❤🏴💻\u1161\u1100\u20e3" + "".join(HIDING)))


@given(MIXED, st.data())
def test_n07_a_text_that_comes_in_pieces_looks_as_a_whole(text: str, data: st.DataObject) -> None:
    """Breaks when: ``settled`` takes in a character whose neighbours are still to come."""
    cut = data.draw(st.integers(0, len(text)))
    end = settled(text[:cut])
    assert visible_part(text[:cut], 0, end) == visible_part(text, 0, end)
    assert visible_part(text, 0, end) + visible_part(text, end, len(text)) == visible(text)


@given(MIXED)
def test_what_was_taken_out_leaves_nothing_hidden(text: str) -> None:
    assert visible(without_hidden(text)) == without_hidden(text)


@given(ANY | MIXED)
def test_what_is_visible_stays_so(text: str) -> None:
    assert visible(visible(text)) == visible(text)
