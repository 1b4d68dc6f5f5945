"""Connections to model servers besides the one that the settings name."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models
from django.db.models.functions import Lower

from chatapp.llm.servers.names import SERVER_NAME_LENGTH, SUMMARIES


def not_reserved(name: str) -> None:
    """Refuse the name of the server of ``SUMMARY_BASE_URL``."""
    if name.lower() == SUMMARIES:
        raise ValidationError("This name stands for the server of SUMMARY_BASE_URL.")


class Connection(models.Model):
    """A model server with its key, and which of its models are offered to whom."""

    name = models.CharField(
        max_length=SERVER_NAME_LENGTH,
        validators=[
            RegexValidator(
                r"\A\w+([ .-]\w+)*\Z",
                "Use letters and digits, with single spaces, dots or hyphens between them.",
            ),
            not_reserved,
        ],
    )
    """Conversations name it with their model, so it stays as it is."""
    address = models.CharField(max_length=500)
    private_addresses = models.BooleanField(default=False)
    """The address may lead to this computer or into its network."""
    sealed_key = models.TextField(blank=True, default="")
    """The key, encrypted."""
    enabled = models.BooleanField(default=True)
    everyone = models.BooleanField(default=False)
    people = models.ManyToManyField(
        settings.AUTH_USER_MODEL, blank=True, related_name="connections"
    )
    """Who is offered its models, unless everyone is."""
    listed = models.JSONField(default=list, blank=True)
    """The models as the server listed them last: name, and window if it says."""
    offered = models.JSONField(default=list, blank=True)
    """The names of those that may be chosen."""
    looked_at = models.DateTimeField(null=True, blank=True)
    """When they were listed last."""
    problem = models.TextField(blank=True, default="")
    """Why the last look failed, in a sentence; empty if it did not."""

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                Lower("name"),
                name="connection_name_once",
                violation_error_message="There is a connection of this name already.",
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def models_offered(self) -> list[str]:
        """The offered models that the server listed last, in its order."""
        chosen = set(self.offered)
        return [one["name"] for one in self.models_listed if one["name"] in chosen]

    @property
    def models_listed(self) -> list[dict[str, Any]]:
        """The models of the last look."""
        return [one for one in self.listed if isinstance(one, dict) and "name" in one]
