from __future__ import annotations

from chatapp.context.instructions import BASE, OWN_HEAD, joined, parts


def test_instructions_stand_from_the_general_to_the_particular() -> None:
    """Breaks when: those of one conversation stand before those for all."""
    assert joined("Be brief.\n", " In verse. ") == "\n\n".join(
        (BASE, f"{OWN_HEAD}\nBe brief.", "In verse.")
    )
    assert [origin for origin, _ in parts("x", "y")] == ["chat", "own", "conversation"]


def test_blank_instructions_leave_no_trace() -> None:
    """Requests of people without their own stay as they were, byte for byte.

    Breaks when: the head of a person's own is sent without any.
    """
    assert joined(" \n", "") == BASE
    assert joined("", "In verse.") == f"{BASE}\n\nIn verse."
