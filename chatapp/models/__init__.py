"""The chat's stored data. :mod:`chatapp.conversations` decides who may access which row."""

from chatapp.models.activity import DailyCalls, ModelCall
from chatapp.models.connections import Connection
from chatapp.models.conversations import (
    Conversation,
    Message,
    MessageRole,
    MessageStatus,
    Summary,
    TitleSource,
    Turn,
    TurnStatus,
)
from chatapp.models.imports import ImportJob, ImportState
from chatapp.models.people import AccessRecord, DailyUse, UserSettings
from chatapp.models.profiles import ModelProfile
from chatapp.models.projects import Project, ProjectVersion
from chatapp.models.sharing import Share
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
    "Connection",
    "Conversation",
    "DailyCalls",
    "DailyUse",
    "ImportJob",
    "ImportState",
    "Message",
    "MessageRole",
    "MessageStatus",
    "ModelCall",
    "ModelProfile",
    "PersonalKey",
    "Project",
    "ProjectVersion",
    "Share",
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
