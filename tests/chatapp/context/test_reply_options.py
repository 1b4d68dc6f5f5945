from __future__ import annotations

from chatapp.context.reply_options import DEFAULT_OPTIONS, ReplyOptions

CHOSEN = ReplyOptions(temperature=0.0, reasoning_effort="low", answer_tokens=100)


def test_the_longest_reply_never_exceeds_the_room_for_one() -> None:
    """Breaks when: a choice makes the request larger than its window."""
    assert CHOSEN.asked(2000)["max_tokens"] == 100
    assert CHOSEN.asked(50)["max_tokens"] == 50
    assert DEFAULT_OPTIONS.asked(50) == {
        "max_tokens": 50,
        "temperature": None,
        "reasoning_effort": "",
    }


def test_the_manifest_says_what_was_sent_and_what_was_not() -> None:
    """Breaks when: a temperature of 0 counts as none, or what is not sent is not named."""
    assert CHOSEN.as_manifest(2000, temperature=True, effort=False) == {
        "options": {"max_tokens": 100, "temperature": 0.0},
        "not_taken": ["reasoning_effort"],
    }
    assert DEFAULT_OPTIONS.as_manifest(50, temperature=False, effort=False) == {
        "options": {"max_tokens": 50},
        "not_taken": [],
    }
