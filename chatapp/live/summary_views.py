"""View models of a summary's lines and of a preview, for pages, fragments and JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from chatapp.live.view_models import View


@dataclass(frozen=True, kw_only=True)
class SourceView(View):
    """Messages that a line comes from, one after the other."""

    first: int
    last: int
    earlier: bool = False
    """They are messages of the conversation that this one continues."""


@dataclass(frozen=True, kw_only=True)
class LineView(View):
    """One line of a summary."""

    key: str
    """The line's name within its version."""
    text: str
    sources: list[SourceView]
    pinned: bool = False
    """A person wrote or pinned it, so that no model changes it."""
    forgettable: bool = False
    """It names single messages, which can be kept from being looked up."""
    fresh: bool = False
    """In a preview: it is not in the present summary."""
    kept: bool = False
    """The conversation's project keeps it too."""


@dataclass(frozen=True, kw_only=True)
class SectionView(View):
    """The lines under one heading."""

    section: str
    """Empty for the narrative."""
    lines: list[LineView]


@dataclass(frozen=True, kw_only=True)
class SummaryLines(View):
    """The active summary as lines."""

    code: str
    version: int
    sections: list[SectionView]
    earlier: str = ""
    """Code of the conversation that this one continues; empty if there is none."""
    project: str = ""
    """Name of the project that lines can be kept for; empty for none."""

    @property
    def any(self) -> bool:
        """Whether there is a line."""
        return bool(self.sections)


@dataclass(frozen=True, kw_only=True)
class PreviewView(View):
    """A summary that waits until a person applies or discards it."""

    id: int
    current: bool
    """It can be applied: the summary has not changed since it was written."""
    focus: str
    from_seq: int | None
    """The messages before this one stay word for word, pinned."""
    first_seq: int
    through_seq: int
    message_count: int
    stays: int
    """Messages after it, which stay word for word."""
    source_tokens: int
    summary_tokens: int
    usage_before: float | None
    usage_after: float | None
    model: str
    degraded: bool
    created_at: datetime
    sections: list[SectionView]
    gone: list[str] = field(default_factory=list)
    """Lines of the present summary that are not in it."""
    missing: list[str] = field(default_factory=list)
    """Names, numbers and the like that only the messages would hold."""
