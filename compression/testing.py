"""Test doubles for hosts: scripted summarisers, and a transcript in memory.

They keep the same contracts as the real ones and are tested like them. :func:`forbid_real_models`
ensures that a test uses nothing else.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from unittest.mock import patch

from compression.exceptions import SummarizerError
from compression.ledger.ledger import Addition, Delta, apply_delta
from compression.types import Draft, Item, Ledger, Section

MARKER = re.compile(r"\bm\d+\b")
"""The markers that :class:`CountingSummarizer` lists: ``m1``, ``m2`` … anywhere in a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A request to a summariser."""

    items: tuple[Item, ...]
    ledger: Ledger
    focus: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Step:
    answer: Delta | Draft | BaseException
    wait: asyncio.Event | None
    tokens: tuple[int, ...]


@dataclass(slots=True)
class ScriptedSummarizer:
    """Gives the enqueued answers in order, and records its calls.

    ::

        summarizer = ScriptedSummarizer()
        summarizer.enqueue(SummarizerError("The server is down."))
        summarizer.enqueue(says("They talked.", constraints={1: "Always answer in French."}))
    """

    label: str = "scripted"
    calls: list[Call] = field(default_factory=list)
    started: asyncio.Event = field(default_factory=asyncio.Event)
    """Set as soon as a call has begun."""
    cancelled: int = 0
    """Number of calls that were cancelled while they waited."""
    _steps: deque[_Step] = field(default_factory=deque)

    def enqueue(
        self,
        answer: Delta | Draft | BaseException,
        *,
        wait: asyncio.Event | None = None,
        tokens: Sequence[int] = (),
    ) -> None:
        """Enqueue the next answer: a delta to merge, a whole draft, or an error to raise.

        The call first waits for ``wait`` and reports ``tokens`` as written, one after another.
        """
        self._steps.append(_Step(answer=answer, wait=wait, tokens=tuple(tokens)))

    async def draft(
        self,
        items: Sequence[Item],
        ledger: Ledger,
        *,
        focus: str,
        on_tokens: Callable[[int], Awaitable[None]],
    ) -> Draft:
        """The next enqueued answer. Raises SummarizerError when none is left."""
        self.calls.append(Call(items=tuple(items), ledger=ledger, focus=focus))
        self.started.set()
        if not self._steps:
            raise SummarizerError("Nothing was enqueued for this call.")
        step = self._steps.popleft()
        try:
            for tokens in step.tokens:
                await on_tokens(tokens)
            if step.wait is not None:
                await step.wait.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if isinstance(step.answer, BaseException):
            raise step.answer
        if isinstance(step.answer, Draft):
            return step.answer
        return merged(items, ledger, step.answer, model=self.label)


@dataclass(slots=True)
class CountingSummarizer:
    """A summariser that lists the markers (``m1``, ``m2`` …) of the messages it was shown.

    A test can thus check that each message was summarised exactly once, over any number of
    compressions.
    """

    label: str = "counting"
    calls: list[Call] = field(default_factory=list)

    async def draft(
        self,
        items: Sequence[Item],
        ledger: Ledger,
        *,
        focus: str,
        on_tokens: Callable[[int], Awaitable[None]],
    ) -> Draft:
        """A draft with one pending entry: the markers of these items, in order."""
        self.calls.append(Call(items=tuple(items), ledger=ledger, focus=focus))
        markers = [marker for item in items for marker in MARKER.findall(item.text)]
        await on_tokens(len(markers))
        entry = Addition(
            # Pending entries are never evicted.
            section=Section.PENDING,
            text=" ".join(markers) or "no markers",
            sources=tuple(item.seq for item in items),
        )
        return merged(items, ledger, Delta(add=(entry,)), model=self.label)


@dataclass(slots=True)
class ListTranscript:
    """Messages in memory, one list per conversation."""

    conversations: dict[int, list[Item]] = field(default_factory=dict)

    def items(
        self, conversation_id: int, *, after_seq: int, through_seq: int | None = None
    ) -> Sequence[Item]:
        """Live messages with ``after_seq`` < seq <= ``through_seq``, in order of seq."""
        return [
            item
            for item in self.conversations.get(conversation_id, [])
            if item.seq > after_seq and (through_seq is None or item.seq <= through_seq)
        ]


class RealModelCalled(BaseException):
    """A test called a model that is not scripted.

    Not an ``Exception``: the program survives those from summarisers, so the test would pass.
    """


@contextmanager
def forbid_real_models() -> Iterator[None]:
    """A context in which ``PromptSummarizer`` raises RealModelCalled instead of calling a model."""
    from compression.summarizers.prompt import PromptSummarizer

    async def refuse(*args: object, **kwargs: object) -> Draft:
        raise RealModelCalled("A test would have called a real model.")

    # Whole drafts are also made by this method.
    with patch.object(PromptSummarizer, "part", refuse):
        yield


def says(
    narrative: str = "",
    *,
    constraints: dict[int, str] | None = None,
    pending: dict[int, str] | None = None,
) -> Delta:
    """A delta made of a narrative, and of entries by the seq that they cite."""
    entries = [(Section.CONSTRAINTS, constraints or {}), (Section.PENDING, pending or {})]
    return Delta(
        narrative=narrative,
        add=tuple(
            Addition(section=section, text=text, sources=(seq,))
            for section, texts in entries
            for seq, text in texts.items()
        ),
    )


def merged(items: Sequence[Item], ledger: Ledger, delta: Delta, *, model: str) -> Draft:
    """The draft that the real summariser would make from this delta for these items."""
    after, notes = apply_delta(
        ledger,
        delta,
        first_seq=items[0].seq,
        through_seq=items[-1].seq,
        user_seqs=[item.seq for item in items if item.role == "user"],
    )
    return Draft(ledger=after, model=model, prompt_version="test", notes=notes)
