from __future__ import annotations

from functools import partial

import pytest

from chatapp.conversations import profiles
from chatapp.models import ModelProfile
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


@pytest.mark.parametrize("source", ["operator", "learned"])
def test_what_the_operator_set_or_the_server_taught_stays(source: str) -> None:
    ModelProfile.objects.create(name="one", window=1000, sources={"window": source})
    figures = {
        "window": 4096,
        "max_output_tokens": 512,
        "sources": {"window": "server", "max_output_tokens": "server"},
    }
    profiles.save({"one": figures})
    row = profiles.profile("one")
    assert row is not None
    assert (row.window, row.max_output_tokens) == (1000, 512)
    assert row.sources == {"window": source, "max_output_tokens": "server"}


def test_what_is_learned_is_stored_with_where_it_came_from() -> None:
    profiles.learn("one", "supports_system_role", False)
    row = profiles.profile("one")
    assert row is not None
    assert row.supports_system_role is False
    assert row.sources == {"supports_system_role": "learned"}


def test_the_calibration_learns_from_what_the_provider_reports() -> None:
    assert profiles.learn_usage("unknown", reported=10, counted=10) is None
    profiles.save({"one": {}})
    before = ModelProfile.objects.get().calibration
    after = profiles.learn_usage("one", reported=200, counted=100)
    assert after is not None
    assert before < after <= 2.0
    assert ModelProfile.objects.get().calibration == after


def test_lessons_learned_at_once_are_all_kept() -> None:
    profiles.save({"one": {}})
    facts = ["supports_tools", "supports_usage", "supports_system_role", "supports_json_schema"]
    results = at_once(*[partial(profiles.learn, "one", fact, False) for fact in facts])
    assert results == [None] * 4
    row = ModelProfile.objects.get()
    assert not any(getattr(row, fact) for fact in facts)
    assert row.sources == dict.fromkeys(facts, "learned")
