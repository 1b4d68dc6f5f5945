"""System checks of compression, with stable ids.

========================  ======================================================
``compression.E001``      a required key is missing
``compression.E002``      an unknown key
``compression.E003``      a named model does not exist
``compression.E004``      a named model lacks compression's base class, or its
                          ``conversation`` foreign key
``compression.E005``      a value of the wrong kind or out of its range
``compression.E006``      ``PROMPTS_DIR`` is no folder, or its prompt cannot be used
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
from compression.summarizers.prompt_files import COMPACT, PromptUnusable, compact


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


@checks.register("compression")
def check_prompt(
    app_configs: Sequence[AppConfig] | None = None, **kwargs: Any
) -> list[checks.CheckMessage]:
    """A prompt of one's own that cannot be used is found now, not at the first summary."""
    folder = getattr(settings, "COMPRESSION", {}).get("PROMPTS_DIR", "")
    if not folder or not isinstance(folder, str):
        return []
    try:
        compact(folder)
    except PromptUnusable as error:
        return [checks.Error(f"{COMPACT} in PROMPTS_DIR: {error}", id="compression.E006")]
    return []


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
