"""The sentences for people, and what may never be in them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chatapp.llm import errors
from chatapp.llm.errors import MAX_PROVIDER_MESSAGE, LLMError, ServerTimeout, clean_words

KINDS = [
    kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, LLMError)
]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind is not LLMError])
def test_every_error_has_a_code_and_a_sentence_that_say_what_to_do(kind: type[LLMError]) -> None:
    error = kind()
    assert error.code.startswith("llm_")
    assert error.message[0].isupper()
    assert error.message.endswith(".")
    assert f"{kind.__name__} " in (errors.__doc__ or "")
    assert error.code in (errors.__doc__ or "")
    assert json.loads(json.dumps(error.as_dict()))["code"] == error.code


def test_codes_are_unique() -> None:
    codes = [kind.code for kind in KINDS]
    assert len(set(codes)) == len(codes)


def test_a_timeout_names_its_limit() -> None:
    error = ServerTimeout.of("between_tokens", 60.0)
    assert error.fields == {"limit": "between_tokens", "seconds": 60.0}
    assert "60 s" in error.message


@pytest.mark.parametrize(
    ("words", "clean"),
    [
        ("plain words", "plain words"),
        ("two\nlines\x00\x1b[31m", "two lines [31m"),
        ("<html><body><h1>Bad</h1><script>alert(1)</script> gateway</body>", "Bad gateway"),
        ("<img src=x onerror=alert(1)", "img src=x onerror=alert(1)"),
        ("Incorrect API key provided: sk-proj-abcdef123456.", "Incorrect API key provided: …"),
        ("key sk-ab**********yz here", "key … here"),
        ("Bearer abcdef is wrong", "Bearer … is wrong"),
        ("see https://user:secret@host/v1", "see https://…@host/v1"),
        ("GET /v1?api_key=abc123&x=1", "GET /v1…&x=1"),
        ("right\u202eto left\ud800", "right to left"),
    ],
)
def test_a_servers_words_are_cleaned(words: str, clean: str) -> None:
    assert clean_words(words) == clean


def test_the_key_itself_is_removed_whatever_it_looks_like() -> None:
    assert clean_words("no user hunter2hunter2 here", secrets=("hunter2hunter2", "")) == (
        "no user … here"
    )


@given(st.text(max_size=2000))
def test_clean_words_are_short_and_can_be_stored(words: str) -> None:
    clean = clean_words(words * 3)
    assert len(clean) <= MAX_PROVIDER_MESSAGE
    assert "<" not in clean
    assert "\x00" not in clean
    clean.encode("utf-8")
