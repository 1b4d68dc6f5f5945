"""The ports that a host fills: four small protocols and one function."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from compression.planning.parts import Chunk, Plan
from compression.types import Completion, Draft, Item, Ledger


class TokenCounter(Protocol):
    """Counts tokens by the one ruler."""

    @property
    def estimated(self) -> bool:
        """True when the counts are estimates, to be shown with ``~``."""

    def count(self, text: str) -> int:
        """Ruler tokens of a text; 0 for an empty one."""


class Transcript(Protocol):
    """The host's messages. Synchronous: the store calls it inside its own units of work."""

    def items(
        self, conversation_id: int, *, after_seq: int, through_seq: int | None = None
    ) -> Sequence[Item]:
        """Live messages with ``after_seq`` < seq <= ``through_seq``, in order of seq."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskChange:
    """Messages whose masks were put on or taken off together."""

    batch: int
    """Number of the batch, unique in its conversation."""
    seqs: tuple[int, ...]
    """Oldest first."""
    tokens_freed: int
    """Ruler tokens that their masks free, or freed."""


class Masks(Protocol):
    """The host's record of masked messages. Synchronous: each call is one unit of work."""

    def put_on(self, conversation_id: int, tokens: Mapping[int, int]) -> MaskChange | None:
        """Mask live messages as a new batch, each at most once; None if none could be masked.

        ``tokens``: seq → ruler tokens of the masked message, which are its :attr:`Item.tokens` from
        now on. The host keeps the number from before.
        """

    def take_off(self, conversation_id: int, batch: int) -> MaskChange | None:
        """Unmask what is left of a batch; None if there is nothing.

        These messages have their tokens back, and are :attr:`Item.unmasked`.
        """


class Complete(Protocol):
    """Gets one whole answer of a model; the host does the networking."""

    async def __call__(
        self,
        *,
        system: str,
        user: str,
        schema: Mapping[str, Any] | None,
        max_tokens: int,
        on_tokens: Callable[[int], Awaitable[None]],
    ) -> Completion:
        """The answer. ``on_tokens`` is called with the number of its tokens so far.

        Raises a :class:`compression.exceptions.SummarizerError` with a sentence for a person;
        ``transient`` when asking again may help, ``too_long`` when asking for less may.
        """


class Summarizer(Protocol):
    """Turns a span into a draft."""

    @property
    def label(self) -> str:
        """The model's name, or that of the method."""

    async def draft(
        self,
        items: Sequence[Item],
        ledger: Ledger,
        *,
        focus: str,
        on_tokens: Callable[[int], Awaitable[None]],
    ) -> Draft:
        """A draft that covers ``ledger`` and ``items``; it is not judged yet.

        Raises :class:`compression.exceptions.SummarizerError` when there is no draft.
        """


@runtime_checkable
class PartwiseSummarizer(Summarizer, Protocol):
    """A summariser whose work on a long span is planned, bounded and stored part by part."""

    @property
    def prompt_version(self) -> str:
        """The version of its prompt; finished parts are reused only under the same version."""

    def narrowed(self, factor: float) -> PartwiseSummarizer:
        """A copy with parts shorter by this factor, after its model found one too long."""

    def plan(self, items: Sequence[Item], ledger: Ledger, *, focus: str) -> Plan:
        """The parts into which it would divide ``items``. Synchronous, and slow.

        Raises :class:`compression.exceptions.SummarizerError` when it cannot make any.
        """

    async def part(
        self,
        plan: Plan,
        chunk: Chunk,
        ledger: Ledger,
        *,
        focus: str,
        on_tokens: Callable[[int], Awaitable[None]],
        most_calls: int | None,
    ) -> Draft:
        """A draft that covers ``ledger`` and one chunk of the plan, with at most ``most_calls``.

        Raises as :meth:`Summarizer.draft`.
        """
