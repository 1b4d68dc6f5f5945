"""What is known of the models behind the server."""

from __future__ import annotations

from django.db import models

from chatapp.text.lengths import NAME_LENGTH
from chatapp.text.safety import visible


class ModelProfile(models.Model):
    """What is known of a model, and from where: server, price data, operator, or refusals."""

    name = models.CharField(max_length=NAME_LENGTH, unique=True)
    window = models.PositiveBigIntegerField(default=8192)
    """Tokens, as the provider counts them."""
    max_output_tokens = models.PositiveBigIntegerField(null=True, blank=True)
    supports_tools = models.BooleanField(default=True)
    supports_system_role = models.BooleanField(default=True)
    supports_json_schema = models.BooleanField(default=True)
    supports_usage = models.BooleanField(default=True)
    input_price = models.DecimalField(max_digits=12, decimal_places=6, null=True, blank=True)
    cached_input_price = models.DecimalField(max_digits=12, decimal_places=6, null=True, blank=True)
    output_price = models.DecimalField(max_digits=12, decimal_places=6, null=True, blank=True)
    """US dollars a million tokens."""
    calibration = models.FloatField(default=1.1)
    """Provider's tokens for one ruler token."""
    sources = models.JSONField(default=dict, blank=True)
    """Field name -> where its figure came from."""
    dates = models.JSONField(default=dict, blank=True)
    """Field name -> since when it is that figure, ISO 8601."""
    learned = models.JSONField(default=dict, blank=True)
    """Field name -> what refusals taught of it, see chatapp.llm.lessons; the figures above stay."""
    longest_prompt = models.PositiveBigIntegerField(default=0)
    longest_at = models.DateTimeField(null=True, blank=True)
    """The longest prompt of the last hour that was answered, as the provider counted: no window is
    smaller."""
    available = models.BooleanField(default=True)
    """Whether the server listed it when last asked."""
    updated_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        # For the admin's pages; the name is the server's.
        return visible(self.name)
