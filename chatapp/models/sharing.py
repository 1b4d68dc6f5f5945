"""Links by which anybody can read a conversation; :mod:`chatapp.models` exports them."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from chatapp.text.lengths import TITLE_LENGTH


class Share(models.Model):
    """A read-only link to a conversation as it was when the link was made.

    The token in the link is not stored, only its SHA-256: whoever reads the database cannot open
    the links in it.
    """

    conversation = models.ForeignKey(
        "Conversation", models.CASCADE, related_name="shares", verbose_name="conversation"
    )
    token_sha256 = models.CharField(max_length=64, unique=True, editable=False)
    title = models.CharField(max_length=TITLE_LENGTH, blank=True, default="")
    through_seq = models.PositiveBigIntegerField()
    """The last message that is shown; later ones never are."""
    event_no = models.PositiveBigIntegerField()
    """Of the conversation, when the link was made: what was superseded later is still shown."""
    summary_version = models.PositiveIntegerField(default=0)
    """The version that is shown; 0 for none."""
    with_tools = models.BooleanField(default=False)
    """Whether calls of tools are shown, with their arguments and results."""
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = "shared link"

    def __str__(self) -> str:
        return f"link {self.pk} to {self.conversation_id}"

    @classmethod
    def working(cls) -> Q:
        """Links that open: neither revoked nor expired by the database's clock, their conversation
        not deleted, its owner's account not closed."""
        return Q(
            Q(expires_at__isnull=True) | Q(expires_at__gt=Now()),
            revoked_at__isnull=True,
            conversation__deleted_at__isnull=True,
            conversation__owner__is_active=True,
        )
