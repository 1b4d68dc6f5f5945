"""The chat's stored data about people; :mod:`chatapp.models` exports it with the rest."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from chatapp.text.lengths import NAME_LENGTH


class UserSettings(models.Model):
    """The settings that a person chose."""

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
    """Whether the browser should notify when a reply has ended in a page that is not being looked
    at."""
    instructions = models.TextField(blank=True, default="")
    """What the person asks of the model in all conversations; part of every request."""

    class Meta:
        verbose_name_plural = "user settings"

    def __str__(self) -> str:
        return f"settings of {self.user_id}"


class DailyUse(models.Model):
    """A person's use of models in one day, stored while there is a daily limit."""

    person = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="daily_uses")
    day = models.DateField()
    """Date in the server's time zone."""
    tokens = models.PositiveBigIntegerField(default=0)
    cost = models.DecimalField(max_digits=16, decimal_places=6, default=0)
    """US dollars."""

    class Meta:
        constraints = [models.UniqueConstraint(fields=["person", "day"], name="daily_use_once")]

    def __str__(self) -> str:
        return f"{self.day}: {self.tokens} tokens of {self.person_id}"


class AccessRecord(models.Model):
    """A record of a look at another person's conversation, or of an action in the admin.

    It outlives the people and the objects it is about, so it stores their names. A record without a
    conversation is about an account, a group or a model.
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
    """The conversation's owner, or the name of the changed object."""
    what = models.CharField(max_length=64)
    """The page ("summary", "messages", "conversation"), or the action."""
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-at"]

    def __str__(self) -> str:
        return f"{self.viewer_name}: {self.what} ({self.conversation_code or self.owner_name})"
