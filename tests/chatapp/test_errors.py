"""The chat's errors as people and programs see them."""

from __future__ import annotations

import pytest

from chatapp import errors
from chatapp.errors import ChatError, InvalidInput, MessageTooLarge

KINDS = [
    kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, ChatError)
]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind is not ChatError])
def test_every_error_is_documented_with_its_code_and_status(kind: type[ChatError]) -> None:
    error = kind()
    (line,) = [row for row in (errors.__doc__ or "").splitlines() if f"─ {kind.__name__} " in row]
    assert f" {error.code} " in line
    assert f" {error.status}" in line
    assert error.message[0].isupper()
    assert kind.code != ChatError.code


def test_a_message_that_is_too_large_says_by_how_much() -> None:
    error = MessageTooLarge.from_figures(
        window=4096, reserve=1024, fixed=500, constraints=72, message=5000
    )
    assert error.status == 413
    assert error.fields == {
        "window": 4096,
        "budget": 3072,
        "reserve": 1024,
        "fixed": 500,
        "constraints": 72,
        "message": 5000,
        "over": 2500,
    }
    assert "5,000" in error.message
    assert "2,500" in error.message


@pytest.mark.parametrize(("constraints", "part"), [(0, "model have"), (9, "rules that hold have")])
def test_instructions_that_are_too_large_are_said_to_be_that(constraints: int, part: str) -> None:
    """Breaks when: a message is to be shortened by more than it has."""
    error = MessageTooLarge.from_figures(
        window=4096, reserve=1024, fixed=3900, constraints=constraints, message=10
    )
    assert f"{part} about {3900 + constraints:,} tokens, this message 10" in error.message
    assert f"room for 3,072 in all. Shorten the instructions by about {838 + constraints}" in (
        error.message
    )


def test_the_error_of_one_field() -> None:
    error = InvalidInput.of("title", "The title is too long.")
    assert error.as_dict()["fields"] == {"title": "The title is too long."}
    assert error.message == "The title is too long."
