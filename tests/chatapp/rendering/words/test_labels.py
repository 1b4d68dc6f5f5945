"""Words for people in place of the program's own."""

from __future__ import annotations

import pytest

from chatapp.rendering.words import labels
from compression.types import ContextAction, SummaryStatus, Trigger


@pytest.mark.parametrize(
    ("trigger", "restored_from", "said"),
    [
        ("threshold", None, "at the threshold"),
        ("manual", None, "asked for"),
        ("edit", None, "edited by a person"),
        ("restore", 2, "restored from version 2"),
        ("restore", 0, "the summary removed"),
        ("restore", None, "carried over from the earlier conversation"),
    ],
)
def test_what_a_version_was_made_for(trigger: str, restored_from: int | None, said: str) -> None:
    assert labels.cause(trigger, restored_from, "threshold") == said


def test_a_start_afresh_that_is_taken_back_took_no_summary_away() -> None:
    """Breaks when: what stood there before is not looked at."""
    assert labels.cause("restore", 0, "clear") == "the new start undone"


def test_every_trigger_and_action_has_words() -> None:
    """Breaks when: one is added and shown by the name that the program has for it."""
    assert all(labels.cause(one, None, "") != one for one in Trigger)
    for action in ContextAction:
        assert labels.done_first({"action": action, "reason": ""}) != action


def test_what_became_of_a_version() -> None:
    assert labels.status_label(SummaryStatus.SUPERSEDED) == "replaced"
    assert labels.status_label(SummaryStatus.ACTIVE) == "active"


def test_what_was_done_before_a_request() -> None:
    decision = {"action": "continue", "reason": "There is plenty of room."}
    assert labels.done_first(decision) == "nothing: there is plenty of room."


def test_an_extract_is_no_models() -> None:
    assert labels.maker("extract") == "extract, no model"
    assert labels.maker("fake-model") == "fake-model"
