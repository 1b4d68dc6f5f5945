"""The chat's stored data about imports; :mod:`chatapp.models` exports it with the rest."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q

from chatapp.text.lengths import NAME_LENGTH


class ImportState(models.TextChoices):
    """The state of an import, open or ended."""

    WAITING = "waiting"
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"


class ImportJob(models.Model):
    """The import of one file. It outlives its request, and its report stays."""

    code = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="imports")
    file_name = models.CharField(max_length=NAME_LENGTH, blank=True, default="")
    size = models.PositiveBigIntegerField(default=0)
    """Bytes."""
    state = models.CharField(
        max_length=16, choices=ImportState.choices, default=ImportState.WAITING
    )
    done = models.PositiveIntegerField(default=0)
    """Conversations that were imported, had been imported before, or were refused."""
    total = models.PositiveIntegerField(null=True, blank=True)
    """None if unknown."""
    messages = models.PositiveBigIntegerField(default=0)
    """Messages stored so far, including those of an unfinished conversation."""
    report = models.JSONField(default=dict, blank=True)
    error = models.JSONField(null=True, blank=True)
    """The error in its usual form, if the import failed."""
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    lease_token = models.CharField(max_length=64, blank=True, default="")
    lease_expires_at = models.DateTimeField(null=True, blank=True)
    undone_at = models.DateTimeField(null=True, blank=True)
    """The time at which its conversations were deleted by Undo, as in their ``deleted_at``."""
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["owner"],
                condition=Q(finished_at__isnull=True),
                name="import_one_a_person",
            ),
        ]

    def __str__(self) -> str:
        return self.file_name or str(self.code)
