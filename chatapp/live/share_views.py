"""View models of shared links, and of the page that such a link opens."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from chatapp.live.summary_views import SectionView
from chatapp.live.view_models import View, as_json


@dataclass(frozen=True, kw_only=True)
class ShareView(View):
    """A link, as the owner of its conversation sees it. Its token is not stored."""

    share: int
    code: str
    """The code of the conversation."""
    title: str
    through_seq: int
    """The last message that is shown."""
    summaries: bool
    """The summary is shown."""
    tools: bool
    """Calls of tools are shown, with their arguments and results."""
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    working: bool
    """The link opens."""


@dataclass(frozen=True, kw_only=True)
class SharedCall(View):
    """A call of a tool."""

    name: str
    arguments: str


@dataclass(frozen=True, kw_only=True)
class SharedMessage(View):
    """A message, with nothing that is not meant for strangers."""

    role: str
    text: str
    tool_name: str = ""
    calls: list[SharedCall] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class SharedSummary(View):
    """The summary, and the number of messages above it that it stands for."""

    message_count: int
    sections: list[SectionView]

    def as_json(self) -> dict[str, Any]:
        """The lines without their keys and sources, which name messages by number."""
        return {
            "message_count": self.message_count,
            "sections": [
                {"section": one.section, "lines": [line.text for line in one.lines]}
                for one in self.sections
            ],
        }


@dataclass(frozen=True, kw_only=True)
class SharedPage(View):
    """One page of a shared conversation."""

    title: str
    shared_at: datetime
    above: list[SharedMessage]
    """The messages of this page that the summary stands for; empty without a summary."""
    summary: SharedSummary | None
    """If it stands on this page."""
    below: list[SharedMessage]
    following: int = 0
    """What to ask for the next page; 0 on the last one."""

    @property
    def messages(self) -> list[SharedMessage]:
        """All messages of this page."""
        return [*self.above, *self.below]

    def as_json(self) -> dict[str, Any]:
        """The page; ``summary`` stands after so many of its messages as ``summary_after`` says."""
        return {
            "title": self.title,
            "shared_at": as_json(self.shared_at),
            "messages": [one.as_json() for one in self.messages],
            "summary": self.summary.as_json() if self.summary else None,
            "summary_after": len(self.above),
            "following": self.following,
        }
