"""The stored figures of models."""

from __future__ import annotations

from django.db import models

from chatapp.text.lengths import NAME_LENGTH
from chatapp.text.safety import visible


class ReasoningBack(models.TextChoices):
    """When a model's reasoning is sent back to it."""

    NEVER = "never", "never"
    TOOL_TURNS = "tool_turns", "in tool turns"
    ALWAYS = "always", "always"


class ModelProfile(models.Model):
    """A model's figures, from its server, price data, the operator, or refusals."""

    name = models.CharField(max_length=NAME_LENGTH, unique=True)
    window = models.PositiveBigIntegerField(default=8192)
    """Tokens, as the provider counts them."""
    max_output_tokens = models.PositiveBigIntegerField(null=True, blank=True)
    supports_tools = models.BooleanField(default=True)
    supports_system_role = models.BooleanField(default=True)
    supports_json_schema = models.BooleanField(default=True)
    supports_usage = models.BooleanField(default=True)
    supports_temperature = models.BooleanField(default=True)
    supports_reasoning_effort = models.BooleanField(default=True)
    reasoning_back = models.CharField(
        max_length=16, choices=ReasoningBack.choices, default=ReasoningBack.TOOL_TURNS
    )
    input_price = models.DecimalField(max_digits=12, decimal_places=6, null=True, blank=True)
    cached_input_price = models.DecimalField(max_digits=12, decimal_places=6, null=True, blank=True)
    output_price = models.DecimalField(max_digits=12, decimal_places=6, null=True, blank=True)
    """US dollars per million tokens."""
    calibration = models.FloatField(default=1.1)
    """Provider's tokens for one ruler token."""
    sources = models.JSONField(default=dict, blank=True)
    """Field name → source of its figure."""
    dates = models.JSONField(default=dict, blank=True)
    """Field name → time since when it has that figure, ISO 8601."""
    learned = models.JSONField(default=dict, blank=True)
    """Field name → lesson from refusals, see chatapp.llm.lessons; the figures above stay."""
    longest_prompt = models.PositiveBigIntegerField(default=0)
    longest_at = models.DateTimeField(null=True, blank=True)
    """The longest prompt of the last hour that was answered, as the provider counted it; no window
    can be smaller."""
    available = models.BooleanField(default=True)
    """Whether the server listed the model last time."""
    updated_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        # For the admin's pages; the name is the server's.
        return visible(self.name)
