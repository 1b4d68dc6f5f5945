"""Threads, letters, and the digests that stand for the older ones."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from compression.models import AbstractSummary, CompressibleConversation
from compression.types import Role


class Digest(AbstractSummary):
    conversation = models.ForeignKey("Thread", models.CASCADE, related_name="summaries")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["conversation", "version"], condition=Q(version__gt=0), name="one_digest"
            )
        ]

    objects: ClassVar[models.Manager[Digest]] = models.Manager()

    def __str__(self) -> str:
        return f"version {self.version}"


class Thread(CompressibleConversation):
    """Letters about one thing."""

    subject = models.CharField(max_length=100)

    objects: ClassVar[models.Manager[Thread]] = models.Manager()

    def __str__(self) -> str:
        return self.subject


class Letter(models.Model):
    """One letter; withdrawn ones are kept and not shown to the model."""

    thread = models.ForeignKey(Thread, models.CASCADE, related_name="letters")
    number = models.PositiveIntegerField()
    role: models.CharField[Role, Role] = models.CharField(max_length=16)
    text = models.TextField()
    tokens = models.PositiveIntegerField()
    withdrawn = models.BooleanField(default=False)
    masked = models.BooleanField(default=False)
    mask_batch = models.PositiveIntegerField(null=True)
    unmasked_tokens = models.PositiveIntegerField(default=0)

    objects: ClassVar[models.Manager[Letter]] = models.Manager()

    class Meta:
        ordering = ["number"]
        constraints = [
            models.UniqueConstraint(fields=["thread", "number"], name="one_letter_a_number")
        ]

    def __str__(self) -> str:
        return f"letter {self.number}"
