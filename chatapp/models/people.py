"""What the chat stores of people; :mod:`chatapp.models` has the rest, and names this too."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from chatapp.text.lengths import NAME_LENGTH


class UserSettings(models.Model):
    """What a person chose for themselves."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="chat_settings"
    )
    theme = models.CharField(
        max_length=8,
        default="system",
        choices=[("system", "system"), ("light", "light"), ("dark", "dark")],
    )
    send_key = models.CharField(
        max_length=16,
        default="enter",
        choices=[("enter", "Enter"), ("modifier-enter", "Ctrl/Cmd+Enter")],
    )
    shortcuts = models.BooleanField(default=True)
    default_model = models.CharField(max_length=NAME_LENGTH, blank=True, default="")
    notify = models.BooleanField(default=False)
    """Whether the browser is asked to say when a reply has ended in a page that is not looked
    at."""

    class Meta:
        verbose_name_plural = "user settings"

    def __str__(self) -> str:
        return f"settings of {self.user_id}"


class DailyUse(models.Model):
    """What a person's calls of models took in one day; kept while there is a daily limit."""

    person = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="daily_uses")
    day = models.DateField()
    """In the server's time zone."""
    tokens = models.PositiveBigIntegerField(default=0)
    cost = models.DecimalField(max_digits=16, decimal_places=6, default=0)
    """US dollars."""

    class Meta:
        constraints = [models.UniqueConstraint(fields=["person", "day"], name="daily_use_once")]

    def __str__(self) -> str:
        return f"{self.day}: {self.tokens} tokens of {self.person_id}"


class AccessRecord(models.Model):
    """Somebody looked at another person's conversation, or did something in the admin.

    It outlives whoever did it, whose conversation it was, and what was looked at or changed: so it
    holds the names that they had. Without a conversation it is of an account, a group or a model.
    """

    viewer = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+"
    )
    viewer_name = models.CharField(max_length=150, default="")
    conversation = models.ForeignKey(
        "Conversation", models.SET_NULL, null=True, related_name="access_records"
    )
    conversation_code = models.UUIDField(null=True)
    owner_name = models.CharField(max_length=150, default="")
    """Whose conversation it is, or the name of what was changed."""
    what = models.CharField(max_length=64)
    """Which page: "summary", "messages", "conversation"; or what was done."""
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-at"]

    def __str__(self) -> str:
        return f"{self.viewer_name}: {self.what} ({self.conversation_code or self.owner_name})"
