"""The line by which an outline names a message."""

from __future__ import annotations

import pytest

from chatapp.text.first_line import LENGTH, READ, first_line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("When does the harbour open?", "When does the harbour open?"),
        ("\n\n  # A heading\nand more", "A heading"),
        ("---\n> **quoted**  words", "quoted** words"),
        ("```notes.txt\nfirst\n```", "notes.txt"),
        ("港はいつ開きますか。\n二行目", "港はいつ開きますか。"),
        ("?!\n...\nWhat?", "What?"),
        ("<b>not bold</b>", "<b>not bold</b>"),
        ("", ""),
        ("!?\n---", ""),
        ("\n" * READ + "too late", ""),
    ],
)
def test_it_is_the_first_line_with_words(text: str, line: str) -> None:
    assert first_line(text) == line


def test_a_long_line_is_cut_between_words() -> None:
    """Breaks when: the ellipsis comes on top of the length, or a word without spaces is not cut."""
    cut = first_line("word " * 100)
    assert cut.endswith("word…")
    assert len(cut) <= LENGTH
    assert len(first_line("x" * 1_000)) == LENGTH


def test_what_deceives_is_made_visible() -> None:
    """Breaks when: the line is not passed through ``visible``."""
    assert "\u202e" not in first_line("invoice\u202efdp.exe")
