"""Settings: defaults, clamping, and loud failures."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from pytest_django import Settings

from chatapp.models import Conversation, Summary
from compression import conf
from compression.conf import CompressionSettings
from compression.types import Trigger

MODELS = {"CONVERSATION": "chatapp.Conversation", "SUMMARY": "chatapp.Summary"}


def read(**values: Any) -> CompressionSettings:
    return CompressionSettings.from_mapping(MODELS | values)


def test_it_works() -> None:
    settings = read()
    assert (settings.threshold, settings.soft_threshold, settings.keep_turns) == (0.8, 0.65, 2)
    assert (settings.summary_tokens, settings.prepare_messages) == (1500, 0)
    assert settings.planner.frees(Trigger.BACKGROUND) == 0.20
    assert replace(settings, prepare_messages=4).planner.frees(Trigger.BACKGROUND) == 0.10
    assert settings.tool_result_max_length == 2000
    assert (settings.lease_seconds, settings.renew_seconds) == (30.0, 10.0)
    assert settings.planner.landing == pytest.approx(0.45)
    assert settings.policy.soft == pytest.approx(0.65)


def test_the_hosts_models_are_found() -> None:
    assert conf.conversation_model() is Conversation
    assert conf.summary_model() is Summary


@pytest.mark.parametrize(("given", "kept"), [(0.1, 0.5), (0.5, 0.5), (0.7, 0.7), (1.0, 0.95)])
def test_the_threshold_is_clamped(given: float, kept: float) -> None:
    assert read(THRESHOLD=given).threshold == kept


@pytest.mark.parametrize(
    "wrong",
    [
        {"TRESHOLD": 0.8},
        {"threshold": 0.8},
        {"THRESHOLD": "0.8"},
        {"THRESHOLD": float("nan")},
        {"THRESHOLD": 80},
        {"KEEP_TURNS": 0},
        {"KEEP_TURNS": 1.5},
        {"KEEP_TURNS": True},
        {"SUMMARY_TOKENS": 10},
        {"PREPARE_MESSAGES": -1},
        {"LEASE_SECONDS": 10, "RENEW_SECONDS": 6},
        {"CONVERSATION": ""},
    ],
)
def test_what_is_wrong_fails_loudly_and_names_the_key(wrong: dict[str, Any]) -> None:
    with pytest.raises(ImproperlyConfigured, match=next(reversed(wrong))):
        read(**wrong)


@pytest.mark.parametrize("name", ["chatapp.Nothing", "nonsense", "chatapp.Message"])
def test_a_model_that_cannot_be_the_conversation_is_refused(settings: Settings, name: str) -> None:
    settings.COMPRESSION = MODELS | {"CONVERSATION": name}
    with pytest.raises(ImproperlyConfigured):
        conf.conversation_model()
