"""The outline of a conversation, as pages, fragments and JSON show it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from chatapp.live.view_models import View


@dataclass(frozen=True, kw_only=True)
class Entry(View):
    """A message in the outline: one of the person's own, or a pinned one."""

    seq: int
    role: str
    line: str
    """Its first line with words; empty if its beginning has none."""
    created_at: datetime
    pinned: bool


@dataclass(frozen=True, kw_only=True)
class Stratum(View):
    """Messages that a compression took into the summary, or that a new start left behind."""

    first_seq: int
    through_seq: int
    version: int
    cleared: bool
    """A new start came after them: the model sees nothing of them."""
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class Outline(View):
    """A page of the outline, or what has changed in it."""

    entries: list[Entry]
    strata: list[Stratum]
    """All that are in force."""
    pins: list[int]
    """``seq`` of every pinned message."""
    gone: list[int] = field(default_factory=list)
    """``seq`` of messages that have changed and are no entries, or none any more."""
    begins_after: int = 0
    """``seq`` of the entry before the page; 0 if there is none."""
    has_newer: bool = False
    last_seq: int
    event_no: int
    complete: bool = True
    """False: too much has changed to be told, and this is the newest page instead."""
