"""Tool servers, the definitions that they were approved with, and the approval of calls."""

from __future__ import annotations

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models

from chatapp.models.conversations import Conversation, Message, Turn
from chatapp.text.lengths import NAME_LENGTH

#: Characters of a tool's name as models are told it, ``server__tool``; OpenAI's limit.
TOOL_NAME_LENGTH = 64
#: Characters of a server's name, so that room is left for those of its tools.
SERVER_NAME_LENGTH = 24
_FINGERPRINT = 64


class ToolServer(models.Model):
    """An MCP server whose tools conversations can use. Administrators set it up."""

    name = models.CharField(
        max_length=SERVER_NAME_LENGTH,
        unique=True,
        validators=[
            RegexValidator(
                r"\A[a-z0-9]+(-[a-z0-9]+)*\Z",
                "Use small letters and digits, with single hyphens between them.",
            )
        ],
    )
    address = models.CharField(max_length=500, blank=True, default="")
    """Of a server that speaks streamable HTTP; empty for one that is started by a command."""
    command = models.JSONField(default=list, blank=True)
    """A program and its arguments, which speak MCP over standard input and output."""
    private_addresses = models.BooleanField(default=False)
    """The address may lead to this computer or into its network."""
    enabled = models.BooleanField(default=True)
    on_by_default = models.BooleanField(default=False)
    """Switched on in conversations whose owner has not chosen."""
    everyone = models.BooleanField(default=False)
    people = models.ManyToManyField(
        settings.AUTH_USER_MODEL, blank=True, related_name="tool_servers"
    )
    """Who may use it, unless everyone may."""
    credential_name = models.CharField(max_length=NAME_LENGTH, default="Authorization")
    """The header that carries the key, or the command's environment variable."""
    sealed_key = models.TextField(blank=True, default="")
    """The key for everybody, encrypted."""
    personal_keys = models.BooleanField(default=False)
    """Each person enters a key of their own."""
    read_at = models.DateTimeField(null=True, blank=True)
    """When the definitions were last read."""
    problem = models.TextField(blank=True, default="")
    """Why they could not be read then, in a sentence; empty if they were."""

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class PersonalKey(models.Model):
    """A person's own key for a server, encrypted."""

    server = models.ForeignKey(ToolServer, models.CASCADE, related_name="keys")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="tool_keys")
    sealed_key = models.TextField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["server", "person"], name="personal_key_once")
        ]

    def __str__(self) -> str:
        return f"key of {self.person_id} for {self.server_id}"


class ToolDefinition(models.Model):
    """A tool as its server describes it, and as an administrator approved it.

    It is offered to models only while the two are the same; otherwise it is in quarantine.
    """

    server = models.ForeignKey(ToolServer, models.CASCADE, related_name="definitions")
    name = models.CharField(max_length=NAME_LENGTH)
    """The server's own name for it."""
    reported = models.TextField()
    """The raw object as the server last sent it: :func:`compression.tools.approval.exact`."""
    reported_sha256 = models.CharField(max_length=_FINGERPRINT)
    approved = models.TextField(blank=True, default="")
    approved_sha256 = models.CharField(max_length=_FINGERPRINT, blank=True, default="")
    approved_at = models.DateTimeField(null=True, blank=True)
    approved_by = models.CharField(max_length=150, blank=True, default="")
    """The administrator's name, which outlives the account."""
    missing = models.BooleanField(default=False)
    """The server no longer lists it."""

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["server", "name"], name="tool_definition_once")
        ]

    def __str__(self) -> str:
        return f"{self.server.name}: {self.name}"

    @property
    def offered(self) -> bool:
        """Whether models are told of it."""
        return not self.missing and self.reported_sha256 == self.approved_sha256


class ToolSwitch(models.Model):
    """A server that the owner of a conversation switched on or off there."""

    conversation = models.ForeignKey(Conversation, models.CASCADE, related_name="tool_switches")
    server = models.ForeignKey(ToolServer, models.CASCADE, related_name="switches")
    on = models.BooleanField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["conversation", "server"], name="tool_switch_once")
        ]

    def __str__(self) -> str:
        return f"{self.server_id} {'on' if self.on else 'off'} in {self.conversation_id}"


class ToolPermission(models.Model):
    """A tool whose calls need no further approval in a conversation, as long as it is the same."""

    conversation = models.ForeignKey(Conversation, models.CASCADE, related_name="tool_permissions")
    tool = models.CharField(max_length=TOOL_NAME_LENGTH)
    definition_sha256 = models.CharField(max_length=_FINGERPRINT)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["conversation", "tool", "definition_sha256"], name="tool_permission_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.tool} in {self.conversation_id}"


class ApprovalState(models.TextChoices):
    """What became of the question whether a call may run."""

    WAITING = "waiting"
    ALLOWED = "allowed"
    REFUSED = "refused"
    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"


class ToolApproval(models.Model):
    """The question whether one call may run, bound to its id and its exact arguments."""

    conversation = models.ForeignKey(Conversation, models.CASCADE, related_name="tool_approvals")
    turn = models.ForeignKey(Turn, models.CASCADE, related_name="tool_approvals")
    message = models.ForeignKey(Message, models.CASCADE, null=True, related_name="tool_approvals")
    """The assistant's message with the call; the question is shown there."""
    call_id = models.CharField(max_length=NAME_LENGTH)
    tool = models.CharField(max_length=TOOL_NAME_LENGTH)
    definition_sha256 = models.CharField(max_length=_FINGERPRINT)
    arguments = models.TextField()
    """The exact arguments: :func:`compression.tools.approval.exact`."""
    arguments_sha256 = models.CharField(max_length=_FINGERPRINT)
    state = models.CharField(
        max_length=16, choices=ApprovalState.choices, default=ApprovalState.WAITING
    )
    asked_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    decided_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [models.Index(fields=["turn", "call_id"], name="tool_approval_call")]

    def __str__(self) -> str:
        return f"{self.tool} ({self.call_id}): {self.state}"
