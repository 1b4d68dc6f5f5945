"""System checks: one stable id for each kind of mistake."""

from __future__ import annotations

from typing import Any

import pytest
from pytest_django import Settings

from compression.checks import check_settings

MODELS = {"CONVERSATION": "chatapp.Conversation", "SUMMARY": "chatapp.Summary"}


def test_it_works() -> None:
    assert check_settings() == []


@pytest.mark.parametrize(
    ("values", "ids"),
    [
        ({}, ["E001", "E001"]),
        (MODELS | {"COLOUR": "red"}, ["E002"]),
        (MODELS | {"SUMMARY": "chatapp.Nothing"}, ["E003"]),
        (MODELS | {"SUMMARY": "nonsense"}, ["E003"]),
        (MODELS | {"SUMMARY": "chatapp.Message"}, ["E004"]),
        (MODELS | {"CONVERSATION": "chatapp.Message"}, ["E004"]),
        (MODELS | {"THRESHOLD": 2}, ["E005"]),
    ],
)
def test_each_mistake_has_its_id(
    settings: Settings, values: dict[str, Any], ids: list[str]
) -> None:
    settings.COMPRESSION = values
    found = check_settings()
    assert [message.id for message in found] == [f"compression.{number}" for number in ids]
    assert all(message.msg.endswith(".") for message in found)
