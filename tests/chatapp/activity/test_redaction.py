"""Secrets in the log: found wherever they stand, and clean texts are looked through once."""

from __future__ import annotations

import pytest

from chatapp.activity import redaction
from chatapp.activity.redaction import CleanTexts, Redaction
from compression.judging.redaction import redacted

SECRET = "a key of no known form"
LONG = "words and words " * 50


def test_secrets_go_from_every_part_of_a_value() -> None:
    """Breaks when: one kind of part is copied as it is."""
    token = "ghp_" + "a1B2" * 9
    found = Redaction([SECRET, "short"])(
        {"a": [f"x {SECRET} y", {"b": (LONG + token,)}], "n": 3, "m": None, "s": "short"}
    )
    assert found["a"][0] == "x [redacted] y"
    assert found["a"][1]["b"] == [LONG + "[redacted]"]
    assert (found["n"], found["m"], found["s"]) == (3, None, "short")


def test_a_clean_text_is_looked_through_once_and_another_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Breaks when: a text with a secret is remembered as clean, or nothing is remembered."""
    looked: list[str] = []
    real = redacted

    def counting(text: str) -> list[str]:
        looked.append(text)
        return list(real(text))

    monkeypatch.setattr(redaction, "redacted", counting)
    clean = CleanTexts()
    secret = f"{LONG} password=hunter22hunter"
    for _ in range(3):
        assert Redaction((), clean)([LONG, secret, "\ud800" * 300])[1].endswith("[redacted]")
    assert [looked.count(one) for one in (LONG, secret)] == [1, 3]


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """I26."""
    monkeypatch.setattr(redaction, "MOST_REMEMBERED", 3)
    clean = CleanTexts()
    for number in range(10):
        clean.redacted(f"{number} {LONG}")
    assert len(clean._digests) == 3
