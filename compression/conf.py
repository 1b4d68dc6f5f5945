"""Settings of compression, read from the ``COMPRESSION`` dict in Django's settings.

::

    COMPRESSION = {"CONVERSATION": "chat.Conversation", "SUMMARY": "chat.Summary"}

Every other key has a documented default; an unknown key is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from django.apps import apps
from django.conf import settings as django_settings
from django.core.exceptions import ImproperlyConfigured

from compression.models import AbstractSummary, CompressibleConversation
from compression.planning import defaults
from compression.planning.planner import PlannerSettings
from compression.planning.policy import PolicySettings
from compression.summarizers.prompt_files import Prompt, compact

REQUIRED = ("CONVERSATION", "SUMMARY")


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressionSettings:
    """The settings; each field is a key of ``COMPRESSION``, written there in upper case."""

    conversation: str
    """``"app.Model"``, the host's concrete :class:`CompressibleConversation`."""
    summary: str
    """``"app.Model"``, the host's concrete :class:`AbstractSummary`."""
    threshold: float = defaults.THRESHOLD
    """Share of the budget at which compression starts; clamped to 0.5 to 0.95."""
    soft_threshold: float = defaults.SOFT_THRESHOLD
    """Share of the budget at which masking and background preparation start; 0.1 to 0.95."""
    keep_turns: int = defaults.KEEP_TURNS
    """Turns that stay verbatim if they fit into the tail's share; at least 1."""
    summary_tokens: int = defaults.SUMMARY_TOKENS
    """Most ruler tokens of a summary (never more than 0.10 of the budget); at least 100."""
    prepare_messages: int = defaults.PREPARE_MESSAGES
    """Prepare a summary in the background once this many messages precede those that are kept, if
    that frees 0.10 of the budget; 0 turns this off."""
    tool_result_max_length: int = defaults.TOOL_RESULT_MAX_LENGTH
    """Characters of a tool result, and of a call's arguments, that the summariser is shown; at
    least 100."""
    max_calls: int = defaults.MAX_CALLS
    """Most model calls for one summary; the extract takes the oldest parts beyond them."""
    probe: bool = defaults.PROBE
    """Examine each new summary with one more call: see :mod:`compression.judging.probe`."""
    prompts_dir: str = ""
    """A folder with a ``compact.md`` of your own, see :mod:`compression.summarizers.prompt_files`;
    empty, or without the file: the packaged prompt."""
    lease_seconds: float = defaults.LEASE_SECONDS
    """Seconds until a lease expires unless renewed. A crash locks no longer than this."""
    renew_seconds: float = defaults.RENEW_SECONDS
    """Seconds between renewals; at most half of ``lease_seconds``."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "threshold", defaults.clamped(self.threshold))

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> CompressionSettings:
        """Read the dict. Raises ImproperlyConfigured with a sentence for each mistake."""
        found = problems(values)
        if found:
            raise ImproperlyConfigured(" ".join(problem for _, problem in found))
        return cls(**{key.lower(): value for key, value in values.items()})

    @property
    def planner(self) -> PlannerSettings:
        """The settings for the planner."""
        return PlannerSettings(
            threshold=self.threshold,
            keep_turns=self.keep_turns,
            summary_tokens=self.summary_tokens,
            prepare_messages=self.prepare_messages,
        )

    @property
    def policy(self) -> PolicySettings:
        """The settings for the policy."""
        return PolicySettings(threshold=self.threshold, soft_threshold=self.soft_threshold)


_LIMITS: dict[str, tuple[type, float, float]] = {
    # A threshold outside its range is clamped, not refused, so any share is allowed here.
    "THRESHOLD": (float, 0.0, 1.0),
    "SOFT_THRESHOLD": (float, defaults.LOWEST_SOFT_THRESHOLD, defaults.HIGHEST_THRESHOLD),
    "KEEP_TURNS": (int, 1, defaults.MOST_KEEP_TURNS),
    "SUMMARY_TOKENS": (int, 100, 1_000_000),
    "PREPARE_MESSAGES": (int, 0, 1_000_000),
    "TOOL_RESULT_MAX_LENGTH": (int, 100, 10_000_000),
    "MAX_CALLS": (int, 1, 10_000),
    "LEASE_SECONDS": (float, 0.1, 3600.0),
    "RENEW_SECONDS": (float, 0.01, 1800.0),
}


def problems(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The mistakes in a ``COMPRESSION`` dict: pairs of a check's id and a sentence."""
    known = {field.name.upper() for field in fields(CompressionSettings)}
    found = [
        ("E001", f"COMPRESSION has no {key}: name the model as 'app.Model'.")
        for key in REQUIRED
        if not values.get(key)
    ]
    found += [
        ("E002", f"COMPRESSION has an unknown key {key!r}.") for key in values if key not in known
    ]
    for key, (kind, low, high) in _LIMITS.items():
        if key in values and not _within(values[key], kind, low, high):
            number = "whole number" if kind is int else "number"
            sentence = f"COMPRESSION[{key!r}] must be a {number} from {low:g} to {high:g}."
            found.append(("E005", sentence))
    if not isinstance(values.get("PROBE", False), bool):
        found.append(("E005", "COMPRESSION['PROBE'] must be True or False."))
    if not isinstance(values.get("PROMPTS_DIR", ""), str):
        found.append(("E005", "COMPRESSION['PROMPTS_DIR'] must be the path of a folder."))
    if not found:
        lease = values.get("LEASE_SECONDS", defaults.LEASE_SECONDS)
        if values.get("RENEW_SECONDS", defaults.RENEW_SECONDS) > lease / 2:
            sentence = "COMPRESSION['RENEW_SECONDS'] must be at most half of LEASE_SECONDS."
            found.append(("E005", sentence))
    return found


def _within(value: object, kind: type, low: float, high: float) -> bool:
    if isinstance(value, bool) or not isinstance(value, int if kind is int else (int, float)):
        return False
    return low <= value <= high


def settings() -> CompressionSettings:
    """The current settings. Raises ImproperlyConfigured when they are wrong."""
    return CompressionSettings.from_mapping(getattr(django_settings, "COMPRESSION", {}))


def prompt() -> Prompt:
    """The instructions that summaries are asked for with. Raises PromptUnusable."""
    return compact(settings().prompts_dir)


def conversation_model() -> type[CompressibleConversation]:
    """The host's conversation model. Raises ImproperlyConfigured when there is none."""
    model: type[CompressibleConversation] = _model(
        settings().conversation, CompressibleConversation
    )
    return model


def summary_model() -> type[AbstractSummary]:
    """The host's summary model. Raises ImproperlyConfigured when there is none."""
    model: type[AbstractSummary] = _model(settings().summary, AbstractSummary)
    return model


def _model(name: str, base: Any) -> Any:
    try:
        model = apps.get_model(name)
    except (LookupError, ValueError):
        raise ImproperlyConfigured(f"COMPRESSION names {name!r}, which is no model.") from None
    if not issubclass(model, base):
        raise ImproperlyConfigured(f"{name} must be a subclass of compression's {base.__name__}.")
    return model
