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
    """Ruler tokens of the whole message, as it is without a mask."""
    quoted: bool = False
    """No search finds it, because the request quotes it anyway, or because it repeats others; it
    can be read among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Original:
    """A message as it was said."""

    seq: int
    role: Role
    text: str
    """What was said, and the arguments of its calls
    (:func:`compression.recall.quoting.with_calls`)."""
    at: datetime | None = None
    tool_name: str = ""


class History(Protocol):
    """The live messages of one conversation that a model does not see in full.

    Those before the boundary, those left out by truncation, and masked ones; never summaries,
    superseded messages, or replies being written. Synchronous: all calls for one search are made in
    one unit of work, so that they see the same conversation.
    """

    @property
    def through(self) -> int:
        """The ``seq`` after which the model sees the conversation itself; 0 if it sees all."""

    def headings(self, seqs: Collection[int] | None = None) -> Sequence[Heading]:
        """All of them, or those with these seqs, in order of seq."""

    def having(self, terms: Terms, *, most: int | None = None) -> Mapping[str, Collection[int]]:
        """Term → seqs of those that contain it: a word in any of its forms, a run as it is.

        With ``most``, it takes no longer in a longer conversation: terms that more messages contain
        are left out, and so may be what stands in arguments of calls. There may be seqs among them
        of which :meth:`headings` knows nothing.
        """

    def originals(self, seqs: Collection[int]) -> Sequence[Original]:
        """Those with these seqs, in order of seq; other numbers are passed over."""
