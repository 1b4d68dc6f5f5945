"""System checks of compression, with stable ids.

========================  ======================================================
``compression.E001``      a required key is missing
``compression.E002``      an unknown key
``compression.E003``      a named model does not exist
``compression.E004``      a named model lacks compression's base class, or its
                          ``conversation`` foreign key
``compression.E005``      a value of the wrong kind or out of its range
========================  ======================================================
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig, apps
from django.conf import settings
from django.core import checks
from django.core.exceptions import FieldDoesNotExist
from django.db.models import Model

from compression.conf import problems
from compression.models import AbstractSummary, CompressibleConversation


@checks.register("compression")
def check_settings(
    app_configs: Sequence[AppConfig] | None = None, **kwargs: Any
) -> list[checks.CheckMessage]:
    """All mistakes in the ``COMPRESSION`` dict and in the two models that it names."""
    values = getattr(settings, "COMPRESSION", {})
    found: list[checks.CheckMessage] = [
        checks.Error(sentence, id=f"compression.{number}") for number, sentence in problems(values)
    ]
    models = {
        key: _find(values[key], base, found)
        for key, base in (("CONVERSATION", CompressibleConversation), ("SUMMARY", AbstractSummary))
        if values.get(key)
    }
    summary, conversation = models.get("SUMMARY"), models.get("CONVERSATION")
    if summary and conversation and not _refers(summary, conversation):
        found.append(
            checks.Error(
                f"{values['SUMMARY']} needs a foreign key `conversation` to "
                f"{values['CONVERSATION']}.",
                id="compression.E004",
            )
        )
    return found


def _find(name: object, base: type[Model], found: list[checks.CheckMessage]) -> type[Model] | None:
    try:
        model = apps.get_model(str(name))
    except (LookupError, ValueError):
        found.append(checks.Error(f"COMPRESSION names {name!r}, no model.", id="compression.E003"))
        return None
    if not issubclass(model, base):
        found.append(
            checks.Error(f"{name} must be a subclass of {base.__name__}.", id="compression.E004")
        )
        return None
    return model


def _refers(summary: type[Model], conversation: type[Model]) -> bool:
    try:
        field = summary._meta.get_field("conversation")
    except FieldDoesNotExist:
        return False
    return field.related_model is conversation
