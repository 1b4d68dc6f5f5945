"""Conversations, their turns, messages and summaries."""

from __future__ import annotations

import uuid
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import F, OuterRef, Q, Subquery

from chatapp.text.lengths import NAME_LENGTH, TITLE_LENGTH
from compression.models import AbstractSummary, Change, CompressibleConversation


class TitleSource(models.TextChoices):
    """The origin of a title; the machine never replaces a person's."""

    NONE = "", "none"
    FIRST_WORDS = "first_words", "first words"
    MODEL = "model", "model"
    PERSON = "person", "person"


class Conversation(CompressibleConversation):
    """An ordered list of messages with one owner."""

    code = models.UUIDField(default=uuid.uuid4, unique=True, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="conversations"
    )
    project = models.ForeignKey(
        "Project", models.SET_NULL, null=True, blank=True, related_name="conversations"
    )
    title = models.CharField(max_length=TITLE_LENGTH, blank=True, default="")
    title_source = models.CharField(
        max_length=16, blank=True, default="", choices=TitleSource.choices
    )
    model = models.CharField(max_length=NAME_LENGTH, blank=True, default="")
    """Empty: the default chat model."""
    system_prompt = models.TextField(blank=True, default="")
    threshold = models.FloatField(null=True, blank=True)
    keep_turns = models.PositiveSmallIntegerField(null=True, blank=True)
    compression_off = models.BooleanField(null=True, blank=True)
    """None, here and in the two fields above: the default."""
    temperature = models.FloatField(null=True, blank=True)
    reasoning_effort = models.CharField(max_length=16, null=True, blank=True)
    answer_tokens = models.PositiveIntegerField(null=True, blank=True)
    """The longest reply, in the provider's tokens. None, here and in the two fields above: the
    model's own choice."""
    preview_first = models.BooleanField(null=True, blank=True)
    """Whether its owner looks at each summary before it is applied; None: no."""
    next_seq = models.PositiveBigIntegerField(default=1)
    event_no = models.PositiveBigIntegerField(default=0)
    seen_event_no = models.PositiveBigIntegerField(default=0)
    """Number of the last event that the owner's screen has shown."""
    truncated_through = models.PositiveBigIntegerField(default=0)
    reasoning_dropped_through = models.PositiveBigIntegerField(null=True, blank=True)
    """The model's reasoning in messages up to this ``seq`` is not sent back to it any more."""
    compressing_messages = models.PositiveIntegerField(default=0)
    """Messages that the present run covers; 0 until that is known."""
    compressing_part = models.JSONField(default=dict, blank=True)
    """The part that the present run is at; empty if there is only one."""
    branched_from = models.ForeignKey(
        "self", models.SET_NULL, null=True, blank=True, related_name="branches"
    )
    continued_from = models.ForeignKey(
        "self", models.SET_NULL, null=True, blank=True, related_name="continuations"
    )
    part = models.PositiveIntegerField(null=True, blank=True)
    """The number of this part of a conversation that was continued in new ones; None: the first.
    None and no default, as for ``first_part``, so that SQLite need not make the table anew."""
    first_part = models.ForeignKey(
        "self", models.SET_NULL, null=True, blank=True, related_name="later_parts"
    )
    draft = models.TextField(blank=True, default="")
    draft_client_msg_id = models.UUIDField(null=True, blank=True)
    """Of the draft, once it was sent: it is queued, or held if ``send_when_done`` is False."""
    send_when_done = models.BooleanField(default=False)
    source_fingerprint = models.CharField(max_length=64, blank=True, default="")
    """SHA-256 of an imported conversation's content, so that importing it again changes nothing."""
    source_key = models.CharField(max_length=64, blank=True, default="")
    """SHA-256 of its source and its id there, which stay when the conversation grows."""
    import_job = models.ForeignKey(
        "ImportJob", models.SET_NULL, null=True, blank=True, related_name="conversations"
    )
    importing = models.BooleanField(default=False)
    """Whether messages are still to be stored; until then the row counts as deleted."""
    pinned_at = models.DateTimeField(null=True, blank=True)
    archived_at = models.DateTimeField(null=True, blank=True)
    deleted_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        indexes = [
            models.Index(fields=["owner", "-updated_at"], name="conversation_owner_recent"),
            models.Index(
                fields=["id"], name="conversation_queued", condition=Q(send_when_done=True)
            ),
            models.Index(
                fields=["compression_lease_expires_at"],
                name="conversation_lease",
                condition=~Q(compression_token=""),
            ),
            models.Index(
                fields=["owner", "source_key"],
                name="conversation_source",
                condition=~Q(source_key=""),
            ),
            models.Index(fields=["id"], name="conversation_importing", condition=Q(importing=True)),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(importing=False) | Q(deleted_at__isnull=False),
                name="conversation_hidden_until_imported",
            ),
            models.UniqueConstraint(
                fields=["owner", "source_fingerprint"],
                condition=~Q(source_fingerprint=""),
                name="conversation_import_once",
            ),
        ]

    def __str__(self) -> str:
        return self.title or str(self.code)

    @property
    def held(self) -> bool:
        """Whether the draft was queued when its reply was stopped, and now waits for a decision."""
        return bool(self.draft and self.draft_client_msg_id) and not self.send_when_done

    @classmethod
    def compression_changes(cls, kind: Change) -> dict[str, Any]:
        """Fields for a stored change: a new event number; a new boundary also ends truncation, and
        drops the reasoning so far.

        A new run resets the messages that it covers and its part, which it does not know yet.
        """
        changes: dict[str, Any] = {"event_no": F("event_no") + 1}
        if kind in {"apply", "restore", "clear"}:
            changes |= {"truncated_through": 0, **cls.without_reasoning()}
        if kind == "claim":
            changes["compressing_messages"] = 0
            changes["compressing_part"] = {}
        return changes

    @classmethod
    def without_reasoning(cls) -> dict[str, Any]:
        """Fields by which the reasoning of all messages so far leaves every later request.

        A reply that is being written is not among them: its reasoning comes after this.
        """
        written = Message.objects.filter(conversation=OuterRef("pk"))
        written = written.exclude(status=MessageStatus.STREAMING).order_by("-seq")
        return {"reasoning_dropped_through": Subquery(written.values("seq")[:1])}

    @classmethod
    def compressible(cls) -> Q:
        """Only conversations that are not deleted, so that no late draft restores anything."""
        return Q(deleted_at__isnull=True)


class TurnStatus(models.TextChoices):
    """The status of a turn, open or terminal."""

    WAITING = "waiting"
    COMPRESSING = "compressing"
    STREAMING = "streaming"
    TOOLS = "tools"
    COMPLETE = "complete"
    STOPPED = "stopped"
    INTERRUPTED = "interrupted"
    TRUNCATED = "truncated"
    FILTERED = "filtered"
    BLOCKED = "blocked"
    FAILED = "failed"


class Turn(models.Model):
    """One user message and all that answers it. It has exactly one terminal status."""

    conversation = models.ForeignKey(Conversation, models.CASCADE, related_name="turns")
    user_message = models.ForeignKey(
        "Message", models.CASCADE, null=True, related_name="answering_turns"
    )
    """The message that it answers. Where that is the turn's own, it may be None: the message is
    stored after the turn, which is not written a second time for it."""
    status = models.CharField(max_length=16, choices=TurnStatus.choices, default=TurnStatus.WAITING)
    model = models.CharField(max_length=NAME_LENGTH, blank=True, default="")
    error_code = models.CharField(max_length=64, blank=True, default="")
    error = models.JSONField(null=True, blank=True)
    """The whole error with which the turn ended, as shown: a reload shows the same card."""
    retry_notice = models.JSONField(null=True, blank=True)
    """Why the reply is late: the error after which the model is asked again; None once it comes."""
    finish_reason = models.CharField(max_length=64, blank=True, default="")
    prompt_tokens = models.PositiveBigIntegerField(null=True, blank=True)
    completion_tokens = models.PositiveBigIntegerField(null=True, blank=True)
    cached_tokens = models.PositiveBigIntegerField(null=True, blank=True)
    cost = models.DecimalField(max_digits=12, decimal_places=6, null=True, blank=True)
    """US dollars."""
    started_at = models.DateTimeField(auto_now_add=True)
    first_token_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    lease_token = models.CharField(max_length=64, blank=True, default="")
    lease_expires_at = models.DateTimeField(null=True, blank=True)
    stop_requested_at = models.DateTimeField(null=True, blank=True)
    event_no = models.PositiveBigIntegerField(default=0)
    manifest = models.JSONField(default=dict, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["conversation"],
                condition=Q(finished_at__isnull=True),
                name="turn_one_open",
            ),
        ]
        indexes = [
            models.Index(
                fields=["lease_expires_at"],
                name="turn_open_lease",
                condition=Q(finished_at__isnull=True),
            ),
            models.Index(fields=["conversation", "event_no"], name="turn_changed"),
        ]

    def __str__(self) -> str:
        return f"turn {self.pk}: {self.status}"


class MessageRole(models.TextChoices):
    """The author of a message."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class MessageStatus(models.TextChoices):
    """Whether a message's text is complete."""

    COMPLETE = "complete"
    STREAMING = "streaming"
    PARTIAL = "partial"


class Message(models.Model):
    """One entry of a conversation. Live unless superseded; never deleted by compression."""

    conversation = models.ForeignKey(Conversation, models.CASCADE, related_name="messages")
    seq = models.PositiveBigIntegerField()
    turn = models.ForeignKey(Turn, models.CASCADE, null=True, related_name="messages")
    role = models.CharField(max_length=16, choices=MessageRole.choices)
    text = models.TextField(blank=True, default="")
    reasoning = models.TextField(blank=True, default="")
    added_context = models.TextField(blank=True, default="")
    """Text that the program added to this message, and sends with it unchanged from then on."""
    reasoning_field = models.CharField(max_length=32, null=True, blank=True)
    """The name under which the model server sent the reasoning; None if it takes none back. None
    and no default, because SQLite would make the table anew, without the triggers of the search."""
    reasoning_tokens = models.PositiveBigIntegerField(null=True, blank=True)
    """Ruler tokens of the reasoning, which are not in ``token_count``."""
    tool_calls = models.JSONField(default=list, blank=True)
    tool_call_id = models.CharField(max_length=NAME_LENGTH, blank=True, default="")
    tool_name = models.CharField(max_length=NAME_LENGTH, blank=True, default="")
    seconds = models.FloatField(null=True, blank=True)
    """The time that a tool took for its result, or a model for its reasoning; None if unknown."""
    status = models.CharField(
        max_length=16, choices=MessageStatus.choices, default=MessageStatus.COMPLETE
    )
    masked_at = models.DateTimeField(null=True, blank=True)
    mask_batch = models.PositiveBigIntegerField(null=True, blank=True)
    """The batch with which it was masked last, also after that was undone: 1, 2, 3 …"""
    unmasked_tokens = models.PositiveBigIntegerField(null=True, blank=True)
    """``token_count`` before it was masked."""
    pinned_at = models.DateTimeField(null=True, blank=True)
    superseded_at = models.DateTimeField(null=True, blank=True)
    client_msg_id = models.UUIDField(null=True, blank=True)
    token_count = models.PositiveBigIntegerField(default=0)
    """Ruler tokens, counted once, when the message is stored."""
    event_no = models.PositiveBigIntegerField(default=0)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["conversation_id", "seq"]
        constraints = [
            models.UniqueConstraint(fields=["conversation", "seq"], name="message_seq"),
            models.UniqueConstraint(
                fields=["conversation", "client_msg_id"], name="message_client_msg_id"
            ),
        ]
        indexes = [
            models.Index(fields=["conversation", "event_no"], name="message_changed"),
            models.Index(
                fields=["conversation", "seq"],
                name="message_pinned",
                condition=Q(pinned_at__isnull=False),
            ),
            models.Index(
                fields=["conversation", "mask_batch"],
                name="message_masked",
                condition=Q(mask_batch__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.role} {self.seq}"


class Summary(AbstractSummary):
    """A stored version of a conversation's summary."""

    conversation = models.ForeignKey(Conversation, models.CASCADE, related_name="summaries")

    class Meta:
        verbose_name_plural = "summaries"
        constraints = [
            models.UniqueConstraint(
                fields=["conversation", "version"],
                condition=Q(version__gt=0),
                name="summary_version",
            ),
            models.UniqueConstraint(
                fields=["conversation"],
                condition=Q(status="ready"),
                name="summary_one_ready",
            ),
            models.UniqueConstraint(
                fields=["conversation"],
                condition=Q(status="preview"),
                name="summary_one_preview",
            ),
            models.UniqueConstraint(
                fields=["conversation"],
                condition=Q(status="partial"),
                name="summary_one_partial",
            ),
        ]
        indexes = [
            models.Index(fields=["created_at"], name="summary_made"),
            models.Index(fields=["status", "review"], name="summary_to_review"),
        ]
        permissions = [("view_audit", "Can see what an audit found only in the originals")]

    def __str__(self) -> str:
        return f"version {self.version}" if self.version else self.status
