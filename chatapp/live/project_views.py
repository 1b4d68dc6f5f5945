"""View models of projects, for pages, fragments and JSON."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from chatapp.live.view_models import View

#: The colours to choose from; an empty one is no colour.
COLOURS = ("rubric", "ochre", "moss", "teal", "slate", "plum")


@dataclass(frozen=True, kw_only=True)
class ProjectLink(View):
    """One project of the list."""

    slug: str
    name: str
    colour: str = ""
    archived: bool = False
    conversations: int = 0
    """Those that are not archived."""


@dataclass(frozen=True, kw_only=True)
class LineOrigin(View):
    """The conversation that a line of a project comes from."""

    code: str
    """Empty if the conversation was deleted."""
    title: str
    seqs: list[int] = field(default_factory=list)

    @property
    def place(self) -> str:
        """The end of the address that leads to the first message; empty if none is named."""
        return f"?around={self.seqs[0]}#m-{self.seqs[0]}" if self.seqs else ""


@dataclass(frozen=True, kw_only=True)
class ProjectLine(View):
    """One line that a project keeps."""

    key: str
    """The line's name within its version."""
    section: str
    text: str
    tokens: int
    origin: LineOrigin | None = None
    """None for a line that a person wrote."""


@dataclass(frozen=True, kw_only=True)
class ProjectLines(View):
    """The lines of a project as they are now."""

    version: int
    lines: list[ProjectLine]
    can_undo: bool = False
    can_redo: bool = False


@dataclass(frozen=True, kw_only=True)
class Suggestion(View):
    """A line of a conversation's summary that the project could keep."""

    section: str
    text: str
    code: str
    """Of the conversation."""
    title: str
    line: str
    """The line's name in the conversation's summary."""


@dataclass(frozen=True, kw_only=True)
class ProjectView(View):
    """A project with its settings."""

    slug: str
    name: str
    colour: str
    instructions: str
    model: str
    """Of new conversations; empty: the person's own default."""
    archived: bool
    created_at: datetime
    lines_version: int


@dataclass(frozen=True, kw_only=True)
class ProjectCost(View):
    """The tokens that a project takes of each request."""

    model: str
    lines: int
    instructions: int
    left_out: int
    """Lines that have no room in this model's window."""
    most: int
    """Tokens that the lines may take of it."""
