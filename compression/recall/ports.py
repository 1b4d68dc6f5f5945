"""The port that a host fills, so that one of its conversations can be searched and read."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from compression.recall.terms import Terms
from compression.types import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """A message without its text."""

    seq: int
    role: Role
    tokens: int
    """Ruler tokens of the whole message."""
    quoted: bool = False
    """The request quotes it anyway, so no search finds it; it can be read among the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Original:
    """A message as it was said."""

    seq: int
    role: Role
    text: str
    at: datetime | None = None
    tool_name: str = ""


class History(Protocol):
    """The live messages of one conversation that a model does not see in full.

    Those before the boundary, those left out by truncation, and masked tool results; never
    summaries, superseded messages, or replies being written. Synchronous: all calls for one search
    are made in one unit of work, so that they see the same conversation.
    """

    @property
    def through(self) -> int:
        """The ``seq`` after which the model sees the conversation itself; 0 if it sees all."""

    def headings(self) -> Sequence[Heading]:
        """All of them, in order of seq."""

    def having(self, terms: Terms) -> Mapping[str, Collection[int]]:
        """Term → seqs of those that contain it: a word in any of its forms, a run as it is."""

    def originals(self, seqs: Collection[int]) -> Sequence[Original]:
        """Those with these seqs, in order of seq; other numbers are passed over."""
