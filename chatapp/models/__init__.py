"""The chat's stored data. :mod:`chatapp.conversations` decides who may access which row."""

from chatapp.models.conversations import (
    Conversation,
    Message,
    MessageRole,
    MessageStatus,
    Project,
    Summary,
    TitleSource,
    Turn,
    TurnStatus,
)
from chatapp.models.imports import ImportJob, ImportState
from chatapp.models.people import AccessRecord, DailyUse, UserSettings
from chatapp.models.profiles import ModelProfile

__all__ = [
    "AccessRecord",
    "Conversation",
    "DailyUse",
    "ImportJob",
    "ImportState",
    "Message",
    "MessageRole",
    "MessageStatus",
    "ModelProfile",
    "Project",
    "Summary",
    "TitleSource",
    "Turn",
    "TurnStatus",
    "UserSettings",
]
