from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial

import pytest

from chatapp.conversations import profiles
from chatapp.llm import lessons
from chatapp.models import ModelProfile
from compression.planning.projection import Report
from compression.tokens import FIRST_CALIBRATION
from tests.chatapp.talking import at_once

pytestmark = [pytest.mark.storage, pytest.mark.django_db(transaction=True)]


def test_it_works() -> None:
    profiles.save({"one": {"window": 4096, "sources": {"window": "server"}}})
    row = profiles.profile("one")
    assert row is not None
    assert (row.window, row.sources) == (4096, {"window": "server"})
    assert profiles.names() == ["one"]
    assert profiles.profile("two") is None


def test_a_complete_list_tells_which_models_are_gone() -> None:
    profiles.save({"one": {}, "two": {}}, complete=True)
    profiles.save({"two": {}, "three": {}}, complete=True)
    assert profiles.names() == ["three", "two"]
    profiles.save({"four": {}})
    assert profiles.names() == ["four", "three", "two"]
    assert profiles.profile("one") is not None


def test_what_the_operator_set_stays() -> None:
    ModelProfile.objects.create(name="one", window=1000, sources={"window": "operator"})
    figures = {
        "window": 4096,
        "max_output_tokens": 512,
        "sources": {"window": "server", "max_output_tokens": "server"},
    }
    profiles.save({"one": figures})
    row = profiles.profile("one")
    assert row is not None
    assert (row.window, row.max_output_tokens) == (1000, 512)
    assert row.sources == {"window": "operator", "max_output_tokens": "server"}


def row() -> ModelProfile:
    return ModelProfile.objects.get()


def aged(by: timedelta) -> None:
    """Have everything that is known be so much older."""
    one = row()
    for lesson in one.learned.values():
        for name in ("first", "last"):
            lesson[name] = (datetime.fromisoformat(lesson[name]) - by).isoformat()
    if one.longest_at is not None:
        one.longest_at -= by
    one.save()


A_BIT = timedelta(minutes=1)


def test_a_refusal_is_believed_for_an_hour_and_two_for_a_week() -> None:
    """One wrong figure left a model at 4,096 tokens for ever.

    Breaks when: a lesson has no end, or one refusal that came twice counts for two.
    """
    profiles.save({"one": {"window": 16_000, "sources": {"window": "server"}}})
    for _ in range(3):
        profiles.learn("one", "window", 4096)
    assert row().window == 16_000, "what the server said is not lost"
    assert profiles.in_force(row()) == {"window": 4096}
    aged(lessons.TRIAL)
    assert profiles.in_force(row()) == {}
    profiles.learn("one", "window", 4096)
    aged(lessons.BELIEVED - A_BIT)
    assert profiles.in_force(row()) == {"window": 4096}
    aged(A_BIT)
    assert profiles.in_force(row()) == {}


def test_a_window_that_a_longer_request_speaks_against_is_forgotten() -> None:
    """Breaks when: a reported prompt does not end the lesson, or one that fits ends it."""
    profiles.save({"one": {"window": 16_000, "sources": {"window": "server"}}})
    profiles.learn("one", "window", 4096)
    profiles.learn_usage("one", [Report(reported=4096, counted=4000)])
    assert profiles.in_force(row()) == {"window": 4096}
    profiles.learn_usage("one", [Report(reported=4097, counted=4000)])
    assert profiles.in_force(row()) == {}
    aged(lessons.TRIAL)
    assert profiles.lessons(row()) == {}


def test_a_window_smaller_than_what_was_just_answered_is_not_believed() -> None:
    """Nor one that nothing fits in. Later the server may have been started with less.

    Breaks when: a figure is stored whatever is known to speak against it.
    """
    profiles.save({"one": {"window": 16_000, "sources": {"window": "server"}}})
    profiles.learn_usage("one", [Report(reported=9000, counted=9000)])
    profiles.learn_usage("one", [Report(reported=20, counted=20)])
    profiles.learn("one", "window", 4096)
    profiles.learn("one", "window", 8)
    assert profiles.in_force(row()) == {}
    aged(lessons.TRIAL + A_BIT)
    profiles.learn("one", "window", 4096)
    assert profiles.in_force(row()) == {"window": 4096}


def test_the_servers_own_word_ends_what_its_refusals_taught() -> None:
    """Breaks when: a server that was started anew with another window stays at the old one."""
    said = {"window": 16_000, "sources": {"window": "server"}}
    profiles.save({"one": said})
    profiles.learn("one", "window", 4096)
    profiles.save({"one": said})
    assert profiles.in_force(row()) == {"window": 4096}, "the same word is no news"
    profiles.save({"one": said | {"window": 32_000}})
    assert (row().window, profiles.in_force(row())) == (32_000, {})


def test_a_larger_window_is_news_only_where_nobody_had_said_one() -> None:
    """Breaks when: a refusal's figure widens what the server or the operator says."""
    profiles.learn("one", "window", 32_000)
    assert profiles.in_force(row()) == {"window": 32_000}
    assert profiles.in_force(row(), window=4096) == {}
    profiles.save({"one": {"window": 16_000, "sources": {"window": "server"}}})
    assert profiles.in_force(row()) == {}


def test_a_passing_refusal_turns_nothing_off_for_ever() -> None:
    """Of ``response_format``, say: it ends by itself, or as soon as the server takes it.

    Breaks when: a flag that was learned stays, or a success does not count.
    """
    profiles.learn("one", "supports_json_schema", False)
    profiles.learn("one", "supports_usage", False)
    assert profiles.in_force(row()) == {"supports_json_schema": False, "supports_usage": False}
    profiles.learn("one", "supports_usage", True)
    assert profiles.in_force(row()) == {"supports_json_schema": False}
    aged(lessons.TRIAL)
    assert profiles.in_force(row()) == {}
    assert row().supports_json_schema is True


def test_what_was_learned_is_forgotten_when_asked_to() -> None:
    """What the operator set stays. Breaks when: a lesson survives, or an operator's figure goes."""
    ModelProfile.objects.create(name="one", window=9000, sources={"window": "operator"})
    profiles.learn("one", "window", 4096)
    profiles.learn("one", "supports_tools", False)
    profiles.learn_usage("one", [Report(reported=200, counted=100)])
    assert profiles.forget(row().pk) == ["supports_tools", "window", "calibration"]
    assert (row().window, profiles.in_force(row())) == (9000, {})
    assert row().calibration == FIRST_CALIBRATION
    profiles.learn("one", "window", 150 * 10)
    assert profiles.in_force(row()) == {"window": 1500}, "and it may be learned anew"


def test_forgetting_leaves_a_calibration_that_the_operator_set() -> None:
    ModelProfile.objects.create(name="one", calibration=1.5, sources={"calibration": "operator"})
    assert profiles.forget(row().pk) == []
    assert row().calibration == 1.5


def test_the_calibration_learns_from_what_the_provider_reports() -> None:
    profiles.learn_usage("unknown", [Report(reported=10, counted=10)])
    profiles.save({"one": {}})
    before = row().calibration
    profiles.learn_usage("one", [Report(reported=200, counted=100)])
    assert before < row().calibration <= 2.0


def test_reports_that_are_stored_together_teach_what_they_would_one_by_one() -> None:
    """Breaks when: only the last of many counts, or the longest of them is not remembered."""
    reports = [Report(reported=tokens, counted=100) for tokens in (200, 130, 90)]
    profiles.save({"one": {}, "other": {}})
    profiles.learn_usage("one", reports)
    for report in reports:
        profiles.learn_usage("other", [report])
    one, other = (ModelProfile.objects.get(name=name) for name in ("one", "other"))
    assert one.calibration == other.calibration
    assert one.longest_prompt == other.longest_prompt == 200


def test_lessons_learned_at_once_are_all_kept() -> None:
    profiles.save({"one": {}})
    facts = ["supports_tools", "supports_usage", "supports_system_role", "supports_json_schema"]
    results = at_once(*[partial(profiles.learn, "one", fact, False) for fact in facts])
    assert results == [None] * 4
    assert profiles.in_force(row()) == dict.fromkeys(facts, False)
