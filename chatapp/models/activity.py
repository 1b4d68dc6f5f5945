"""The index of the activity log; :mod:`chatapp.models` exports it with the rest.

The lines themselves, with what was asked and answered, are in files. The index outlives nothing:
rows go with their conversation. So the keys have no constraint, and the upkeep finds the rows and
the lines that are left over.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q

from chatapp.text.lengths import NAME_LENGTH


class ModelCall(models.Model):
    """A model call, and where its line is."""

    call = models.UUIDField(unique=True)
    place = models.CharField(max_length=32)
    """The folder of the line: several hosts may each have their own."""
    file = models.CharField(max_length=100)
    offset = models.PositiveBigIntegerField()
    length = models.PositiveBigIntegerField()
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.DO_NOTHING,
        null=True,
        db_constraint=False,
        db_index=False,
        related_name="+",
    )
    conversation = models.ForeignKey(
        "Conversation",
        models.DO_NOTHING,
        null=True,
        db_constraint=False,
        db_index=False,
        related_name="+",
    )
    turn = models.PositiveBigIntegerField(null=True)
    project = models.CharField(max_length=NAME_LENGTH)
    """Slug of the conversation's project when the call ended."""
    kind = models.CharField(max_length=16)
    model = models.CharField(max_length=NAME_LENGTH)
    at = models.DateTimeField()
    """When the request went out."""
    input_tokens = models.PositiveBigIntegerField(null=True)
    output_tokens = models.PositiveBigIntegerField(null=True)
    cached_tokens = models.PositiveBigIntegerField(null=True)
    cost = models.DecimalField(max_digits=12, decimal_places=6, null=True)
    """US dollars."""
    duration = models.FloatField()
    """Seconds."""
    first_token = models.FloatField(null=True)
    """Seconds until the first piece of the reply."""
    error = models.CharField(max_length=64, default="")
    """The code of its error; ``stopped`` if its reader left, which is no failure."""
    failed = models.BooleanField(default=False)

    class Meta:
        verbose_name = "model call"
        indexes = [
            models.Index(fields=["owner", "-at"], name="call_owner"),
            models.Index(fields=["conversation", "-at"], name="call_conversation"),
            models.Index(fields=["owner", "project", "kind", "model", "-at"], name="call_facets"),
            models.Index(fields=["owner", "-at"], name="call_failed", condition=Q(failed=True)),
            models.Index(fields=["place", "file", "offset"], name="call_line"),
            models.Index(fields=["-at"], name="call_at"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} call {self.call}"


class DailyCalls(models.Model):
    """The sum of a person's calls of one day, by project, kind and model."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="daily_calls")
    day = models.DateField()
    """Date in the server's time zone."""
    project = models.CharField(max_length=NAME_LENGTH)
    kind = models.CharField(max_length=16)
    model = models.CharField(max_length=NAME_LENGTH)
    calls = models.PositiveBigIntegerField(default=0)
    errors = models.PositiveBigIntegerField(default=0)
    input_tokens = models.PositiveBigIntegerField(default=0)
    output_tokens = models.PositiveBigIntegerField(default=0)
    cached_tokens = models.PositiveBigIntegerField(default=0)
    cost = models.DecimalField(max_digits=16, decimal_places=6, default=0)
    """US dollars, as far as the models' prices are known."""
    seconds = models.FloatField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "day", "project", "kind", "model"],
                name="daily_calls_once",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.day}: {self.calls} calls of {self.owner_id}"
