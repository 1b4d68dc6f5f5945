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
from chatapp.models.tools import (
    ApprovalState,
    PersonalKey,
    ToolApproval,
    ToolDefinition,
    ToolPermission,
    ToolServer,
    ToolSwitch,
)

__all__ = [
    "AccessRecord",
    "ApprovalState",
    "Conversation",
    "DailyUse",
    "ImportJob",
    "ImportState",
    "Message",
    "MessageRole",
    "MessageStatus",
    "ModelProfile",
    "PersonalKey",
    "Project",
    "Summary",
    "TitleSource",
    "ToolApproval",
    "ToolDefinition",
    "ToolPermission",
    "ToolServer",
    "ToolSwitch",
    "Turn",
    "TurnStatus",
    "UserSettings",
]
