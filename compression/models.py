"""The stored data: two abstract models, whose migrations are the host's."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

from django.conf import settings
from django.db import models

from compression.types import SummaryStatus, Trigger

Change = Literal["claim", "promote", "release", "apply", "restore", "edit", "clear"]
"""Kinds of stored changes. The last four write a new version."""
REVIEW_NOTE = 500
"""Characters of a reviewer's note."""


class Review(StrEnum):
    """A reviewer's word on a stored row; without one, nobody has seen it."""

    SEEN = "seen"
    APPROVED = "approved"
    NEEDS_WORK = "needs_work"


class CompressibleConversation(models.Model):
    """A conversation that has a summary, a boundary, and a lease for compressing it."""

    compressed_context = models.TextField(blank=True, default="")
    """The active summary as rendered Markdown; empty when there is none."""
    compressed_at = models.DateTimeField(null=True, blank=True)
    """For display only: every decision uses ``compressed_through``."""
    compressed_through = models.PositiveBigIntegerField(default=0)
    compression_version = models.PositiveIntegerField(default=0)
    compression_token = models.CharField(max_length=64, blank=True, default="")
    compression_lease_expires_at = models.DateTimeField(null=True, blank=True)
    compression_started_at = models.DateTimeField(null=True, blank=True)
    compression_trigger = models.CharField(
        max_length=16, blank=True, default="", choices=[(t.value, t.value) for t in Trigger]
    )
    compression_locks_input = models.BooleanField(default=False)

    class Meta:
        abstract = True

    @classmethod
    def compression_changes(cls, kind: Change) -> dict[str, Any]:
        """Further fields that ``update()`` sets with every stored change of compression.

        A host that numbers its changes overrides this, so that number and change are committed
        together. Called once for each UPDATE, except for renewals of a lease, which no reader
        sees.
        """
        return {}

    @classmethod
    def compressible(cls) -> models.Q:
        """The host's own condition for the machine to write to a conversation.

        A host that marks conversations as deleted excludes them here. A run under way then loses
        its lease at the next renewal, and a late draft finds no row.
        """
        return models.Q()


class AbstractSummary(models.Model):
    """One immutable version of what stands for the older messages.

    The host adds ``conversation``, a foreign key to its conversation with
    ``related_name="summaries"``, and a unique constraint over (conversation, version) where
    version > 0. Rows that never became a version (``ready``, ``rejected``, ``failed``,
    ``discarded``) have version 0.
    """

    version = models.PositiveIntegerField(default=0)
    parent = models.PositiveIntegerField(default=0)
    """The version that was active when this one was made; 0 for none."""
    restored_from = models.PositiveIntegerField(null=True, blank=True)
    status = models.CharField(max_length=16, choices=[(s.value, s.value) for s in SummaryStatus])
    trigger = models.CharField(max_length=16, choices=[(t.value, t.value) for t in Trigger])
    reason = models.TextField(blank=True, default="")
    text = models.TextField(blank=True, default="")
    ledger = models.JSONField(default=list, blank=True)
    narrative = models.JSONField(default=list, blank=True)
    first_seq = models.PositiveBigIntegerField(default=0)
    through_seq = models.PositiveBigIntegerField(default=0)
    message_count = models.PositiveIntegerField(default=0)
    source_fingerprint = models.CharField(max_length=64, blank=True, default="")
    """SHA-256, hexadecimal, over (seq, text) of every live message of the span."""
    source_tokens = models.PositiveBigIntegerField(default=0)
    summary_tokens = models.PositiveIntegerField(default=0)
    usage_before = models.FloatField(null=True, blank=True)
    usage_after = models.FloatField(null=True, blank=True)
    model = models.CharField(max_length=200, blank=True, default="")
    prompt_version = models.CharField(max_length=64, blank=True, default="")
    cost = models.DecimalField(max_digits=12, decimal_places=6, null=True, blank=True)
    """US dollars."""
    duration = models.FloatField(null=True, blank=True)
    """Seconds."""
    degraded = models.BooleanField(default=False)
    audit = models.JSONField(default=dict, blank=True)
    retention = models.FloatField(null=True, blank=True)
    """Share of the salient items of its messages that the text holds; None if that is not known."""
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )
    """None for the machine."""
    created_at = models.DateTimeField(auto_now_add=True)
    review = models.CharField(
        max_length=16, null=True, blank=True, choices=[(one.value, one.value) for one in Review]
    )
    """None: nobody has seen it. What a reviewer says is about the row and changes nothing else.
    None and no default, here and below, so that SQLite need not make the table anew."""
    review_note = models.CharField(max_length=REVIEW_NOTE, null=True, blank=True)
    reviewed_at = models.DateTimeField(null=True, blank=True)
    reviewer = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )

    class Meta:
        abstract = True
